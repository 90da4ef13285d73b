"""Translation memories: what is text in them, which languages count, and files that are broken or mean harm."""

import gzip

import pytest

from data.pairs import Pairs
from tests.data.sources.reading import load, refused

HEAD = '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n<header srclang="en"/>\n<body>\n'
TAIL = "</body>\n</tmx>\n"


def unit(**texts: str) -> str:
    """A unit in one line; en_US stands for en-US."""
    variants = (f'<tuv xml:lang="{name.replace("_", "-")}"><seg>{text}</seg></tuv>' for name, text in texts.items())
    return f"<tu>{''.join(variants)}</tu>\n"


def write(folder, *units: str, head: str = HEAD, tail: str = TAIL, encoding: str = "utf-8") -> None:
    (folder / "a.tmx").write_bytes((head + "".join(units) + tail).encode(encoding))


SEGMENTS = {
    "Tom &amp; Ana &lt;3 &#241;": "Tom & Ana <3 ñ",
    '<bpt i="1">&lt;b></bpt>Bold<ept i="1">&lt;/b></ept> text<ph x="2">{0}</ph>.': "Bold text.",
    "A <hi>very <it pos='begin'>\\i</it>big</hi> house <ut>{x}</ut>here": "A very big house here",
    "Two\n   lines<!-- no text -->.": "Two lines.",
    "<![CDATA[1 < 2]]>": "1 < 2",
    "<ph>%s<sub>hidden</sub></ph>Open": "Open",
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_text_is_what_stands_between_the_codes(tmp_path, encoding):
    head = HEAD.replace('"1.0"', f'"1.0" encoding="{encoding.removesuffix("-sig")}"')
    write(tmp_path, *(unit(en=text, es="ñ") for text in SEGMENTS), head=head, encoding=encoding)
    pairs, report = load(tmp_path, "a.tmx")
    assert pairs == Pairs(list(SEGMENTS.values()), ["ñ"] * len(SEGMENTS))
    assert (report.rows, report.malformed) == (len(SEGMENTS), 0)


def test_a_language_stands_for_its_forms_and_itself_comes_first(tmp_path):
    rows = [unit(en_US="color", es_MX="color"), unit(en_GB="colour", en="hue", fr="couleur", ES="tono")]
    old = '<tu><tuv lang="EN"><seg>old</seg></tuv><tuv lang="es_ES"><seg>viejo</seg></tuv></tu>'
    write(tmp_path, *rows, old)
    assert load(tmp_path, "a.tmx")[0] == Pairs(["color", "hue", "old"], ["color", "tono", "viejo"])
    (tmp_path / "b.tmx.gz").write_bytes(gzip.compress((tmp_path / "a.tmx").read_bytes()))
    assert load(tmp_path, "b.tmx.gz", source="es", target="en")[0].sources == ["color", "tono", "viejo"]
    write(tmp_path, unit(en_US="color", en_GB="colour", eng="no", es_419="color"))
    forms = {"columns": ["en-GB", "es-419"], "source": "en-GB", "target": "es-419"}
    assert load(tmp_path, "a.tmx", **forms)[0] == Pairs(["colour"], ["color"])


def test_with_a_namespace_and_in_lines_beyond_what_16_bits_count(tmp_path):
    write(tmp_path, "\n" * 70_000, unit(en="a", es="b"), unit(en="c"), head='<tmx xmlns="urn:x"><body>\n')
    assert refused(tmp_path, "a.tmx").startswith("a.tmx:70003: the unit has no es, only en. ")


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (unit(en="a", fr="b"), "the unit has no es, only en, fr"),
        ("<tu/>", "the unit has no en, only nothing"),
        ('<tu><tuv xml:lang="en"/><tuv xml:lang="es"/></tu>', "a variant has no <seg>"),
    ],
)
def test_a_bad_unit_is_named_or_skipped_and_counted(tmp_path, bad, problem):
    good = unit(en="good", es="bien")
    write(tmp_path, good, bad, good)
    skip = "data.malformed=skip drops and counts such units"
    assert refused(tmp_path, "a.tmx") == f"a.tmx:7: {problem}. {skip}"
    pairs, report = load(tmp_path, "a.tmx", malformed="skip", max_malformed=0.5)
    assert (len(pairs), report.rows, report.malformed) == (2, 3, 1)


def test_other_languages_are_named_with_the_settings_that_read_them(tmp_path):
    write(tmp_path, *[unit(de_DE="eins", fr_FR="un")] * 3)
    advice = "data.columns=[de,fr] data.source=de data.target=fr names them"
    assert refused(tmp_path, "a.tmx") == f"a.tmx:6: the unit has no en, only de-DE, fr-FR. {advice}"
    assert load(tmp_path, "a.tmx", columns=["de", "fr"], source="de", target="fr")[0] == Pairs(["eins"] * 3, ["un"] * 3)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (HEAD + unit(en="a", es="b") + "<tu><seg></tu>", ":7: broken XML: Opening and ending tag mismatch: seg line 7"),
        (HEAD + unit(en="a", es="b"), ":7: broken XML: Premature end of data"),
        (HEAD + unit(en="a", es="b") + unit(en="&foo;", es="b") + TAIL, ":7: broken XML: Entity 'foo' not defined"),
        (HEAD + unit(en="a\0", es="b") + TAIL, ":6: broken XML: "),
        ("one\tuno\n", ":1: broken XML: Start tag expected"),
        ("", ":1: broken XML: the file is empty"),
        ("<xliff><file/></xliff>", " has no sentence pairs: it needs units with one each: is it TMX, with <tu>?"),
    ],
)
@pytest.mark.parametrize("malformed", ["stop", "skip"])
def test_a_broken_file_stops_with_its_line(tmp_path, content, told, malformed):
    write(tmp_path, head=content.replace(' SYSTEM "tmx14.dtd"', ""), tail="")
    assert refused(tmp_path, "a.tmx", malformed=malformed).startswith(f"a.tmx{told}")


def test_entities_are_neither_expanded_nor_read_from_elsewhere(tmp_path):
    """A billion laughs, and a file of this machine."""
    (tmp_path / "secret.txt").write_text("secret")
    laughs = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(9))
    outside = f'<!ENTITY file SYSTEM "{(tmp_path / "secret.txt").as_uri()}">'
    head = f'<!DOCTYPE tmx [<!ENTITY l0 "ha">{laughs}{outside}]>\n<tmx>\n<body>\n'
    for name in ("l2", "file"):
        write(tmp_path, unit(en="good", es="bien"), unit(en=f"a &{name};", es="b"), head=head)
        told = refused(tmp_path, "a.tmx")
        assert told.startswith(f"a.tmx:5: the entity &{name}; is not expanded: write its text instead. ")
        assert load(tmp_path, "a.tmx", malformed="skip", max_malformed=0.5)[0] == Pairs(["good"], ["bien"])
    write(tmp_path, unit(en="&l9;", es="b"), head=head)
    assert "broken XML: Maximum entity amplification factor exceeded" in refused(tmp_path, "a.tmx")
