"""Every text form of a corpus gives the same pairs, and what cannot be read is named in one line or counted."""

import csv
import gzip
import hashlib
import io
import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import UserError
from data.config import DataConfig
from data.pairs import Pairs
from data.sources.source import load_source
from tests.data.sources.reading import SKIPPING, load, refused

ENGLISH = ['"Hello', "NA", "# no", " n\u0303ame\u00a0 x ", "a\u2028b\x0bc", "", "😀 007"]
SPANISH = ["Hola", "null", 'bye"', "e\u0301l", "▁", "vacío", "1,5"]
READ = Pairs(['"Hello', "NA", "# no", "ñame x", "a b c", "", "😀 007"], [*SPANISH[:3], "él", *SPANISH[4:]])


def table(*columns: list[str]) -> str:
    return "".join("\t".join(cells) + "\n" for cells in zip(*columns, strict=True))


def objects(wrap=lambda en, es: {"en": en, "es": es}, ascii_only=False) -> str:
    rows = zip(ENGLISH, SPANISH, strict=True)
    return "".join(json.dumps(wrap(en, es), ensure_ascii=ascii_only) + "\n" for en, es in rows)


def comma_separated(*columns: list[str]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(zip(*columns, strict=True))
    return file.getvalue()


FORMS = {  # the name in the config, and the files that it stands for
    "two columns": ("train.tsv", {"train.tsv": table(ENGLISH, SPANISH)}),
    "three columns": ("folder/spa.txt", {"folder/spa.txt": table(ENGLISH, SPANISH, ["CC-BY (Ana)"] * 7)}),
    "csv": ("train.csv", {"train.csv": "id,es,en\n" + comma_separated(list("1234567"), SPANISH, ENGLISH)}),
    "objects in ASCII": ("train.jsonl", {"train.jsonl": objects(ascii_only=True)}),
    "more keys": ("train.jsonl", {"train.jsonl": objects(lambda en, es: {"id": 3, "es": es, "en": en, "x": [None]})}),
    "a translation beside": (
        "train.jsonl",
        {"train.jsonl": objects(lambda en, es: {"en": en, "es": es, "translation": "by hand"})},
    ),
    "nested": (
        "train.jsonl",
        {"train.jsonl": objects(lambda en, es: {"en": 1, "translation": {"fr": "x", "es": es, "en": en}})},
    ),
    "parallel": ("news.LANG", {"news.en": table(ENGLISH), "news.es": table(SPANISH)}),
    "parallel, in the middle": (
        "LANGUAGE/LANG-es.LANG.txt",
        {"LANGUAGE/en-es.en.txt": table(ENGLISH), "LANGUAGE/es-es.es.txt": table(SPANISH)},
    ),
}


def write(folder: Path, files: dict[str, str], packed: bool = False) -> list[str]:
    """Write the files, and return the SHA-256 of each."""
    digests = []
    for name, text in files.items():
        content = gzip.compress(text.encode()) if packed else text.encode()
        path = folder / (name + ".gz" if packed else name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        digests.append(hashlib.sha256(content).hexdigest())
    return digests


@pytest.mark.parametrize("direction", ["en-es", "es-en"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_pairs(tmp_path, form, end, packed, direction):
    name, files = FORMS[form]
    digests = write(tmp_path, {file: text.replace("\n", end) for file, text in files.items()}, packed)
    source, target = direction.split("-")
    name += ".gz" * packed
    pairs, report = load(tmp_path, name, source=source, target=target)
    assert pairs == (READ if direction == "en-es" else Pairs(READ.targets, READ.sources))
    assert (report.file, report.rows, report.malformed) == (str(tmp_path / name), 7, 0)
    both = hashlib.sha256(" ".join(digests).encode()).hexdigest()
    assert report.sha256 == (digests[0] if len(digests) == 1 else both)


def test_the_last_line_may_end_in_nothing_and_gzip_may_have_several_parts(tmp_path):
    for name, files in FORMS.values():
        write(tmp_path, {file: text.removesuffix("\n") for file, text in files.items()})
        assert load(tmp_path, name)[0] == READ
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"one\tuno\ntw") + gzip.compress(b"o\tdos\n"))
    assert load(tmp_path, "a.tsv.gz")[0] == Pairs(["one", "two"], ["uno", "dos"])


@pytest.mark.parametrize("name", ["PAIRS.TSV", "Pairs.Csv", "pairs.JSONL", "NEWS.tsv.GZ", "un año #1.tsv", "añós.tsv"])
def test_names_as_other_systems_write_them(tmp_path, name):
    """Endings in capitals, and accents that a file system took apart."""
    ending = name.lower().removesuffix(".gz").rpartition(".")[2]
    text = {"tsv": table(ENGLISH, SPANISH), "jsonl": objects(), "csv": "en,es\n" + comma_separated(ENGLISH, SPANISH)}
    write(tmp_path, {unicodedata.normalize("NFD", name): text[ending]})
    if name.endswith("GZ"):
        (tmp_path / name).write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    assert load(tmp_path, name)[0] == READ


def test_keys_columns_and_files_are_named_by_the_columns(tmp_path):
    files = {"a.jsonl": '{"x": "one", "y": "uno"}\n', "a.csv": "x,y\none,uno\n", "n.x": "one\n", "n.y": "uno\n"}
    write(tmp_path, files)
    for name in ("a.jsonl", "a.csv", "n.LANG"):
        assert load(tmp_path, name, columns=["x", "y"], source="y", target="x")[0] == Pairs(["uno"], ["one"])
    write(tmp_path, {"b.jsonl": '{"source": "one", "translation": "uno"}\n'})
    named = {"columns": ["source", "translation"], "source": "source", "target": "translation"}
    assert load(tmp_path, "b.jsonl", **named)[0] == Pairs(["one"], ["uno"])


SKIP = ". data.malformed=skip drops and counts such lines"
HALVES = "text with NUL or half a surrogate pair, not plain text"
INVALID = "invalid UTF-8 at byte 1 of the line"
NO_OBJECT, TWICE = "not a JSON object", "the key en occurs twice in an object"
BAD_LINES = {  # by file and a good line, bad lines and the problem
    ("a.tsv", b"x\ty\n"): [
        (b"no tab", "no tab in the line; it needs exactly one, between the two sentences"),
        (b"a\tb\tc", "2 tabs in the line; it needs exactly one, between the two sentences"),
        (b"a\0\tb", "a NUL character in the line; remove it"),
        (b"a\rb\tc", "a carriage return inside the line; end lines with LF or CRLF"),
    ],
    ("a.txt", b"x\ty\tz\n"): [
        (b"a\tb", "1 tab in the line; it needs exactly two"),
        (b"a\tb\tc\td", "3 tabs in the line; it needs exactly two"),
    ],
    ("a.jsonl", b'{"en": "x", "es": "y"}\n'): [
        *((line, NO_OBJECT) for line in (b'{"en": "a", "es": "b"', b'{"en": "a"} {"es": "b"}', b"9" * 10_000)),
        *((line, NO_OBJECT) for line in (b'{"en": ' * 100_000, b'{"en": 1' + b"0" * 5000)),
        (b'["a", "b"]', "a list, not an object"),
        (b'{"en": "a", "fr": "b"}', "the object has no es, only en, fr"),
        (b'{"en": "a", "es": null}', "es is null, not plain text"),
        (b'{"en": NaN, "es": "c"}', "en is a number, not plain text"),
        (b'{"en": "a", "translation": "c"}', "translation is text, not an object"),
        (b'{"translation": {"en": "a"}, "es": "b"}', "the object has no es, only en"),
        (rb'{"en": "a\ud800", "es": "b"}', f"en is {HALVES}"),
        (rb'{"en": "a", "es": "\ude00\ud83d"}', f"es is {HALVES}"),
        (rb'{"en": "a", "es": "b\u0000"}', f"es is {HALVES}"),
        (b'{"en": "a\0", "es": "b"}', "a NUL character in the line; remove it"),
        (b'{"en": "a", "en": "b", "es": "c"}', TWICE),
        (b'{"id": 1, "translation": {"es": "a", "en": "b", "en": "b"}}', TWICE),
        (rb'{"en": "a", "x\u001b\n": 1, "x\u001b\n": 2}', "the key x<U+001B><U+000A> occurs twice in an object"),
    ],
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize(
    ("name", "good", "bad", "problem"),
    [(*file, *line) for file, lines in BAD_LINES.items() for line in lines],
    ids=range(sum(map(len, BAD_LINES.values()))),
)
def test_a_bad_line_is_named_or_skipped_and_counted(tmp_path, name, good, bad, problem, packed):
    content = good + good + bad + b"\n" + good
    name, content = (name + ".gz", gzip.compress(content)) if packed else (name, content)
    (tmp_path / name).write_bytes(content)
    assert refused(tmp_path, name) == f"{name}:3: {problem}{SKIP}"
    pairs, report = load(tmp_path, name, **SKIPPING)
    assert (pairs, report.rows, report.malformed) == (Pairs(["x"] * 3, ["y"] * 3), 4, 1)
    assert report.sha256 == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("side", ["en", "es"])
@pytest.mark.parametrize(("bad", "problem"), [(b"a\0", "a NUL character in the line; remove it"), (b"\xff", INVALID)])
def test_a_bad_line_of_one_parallel_file_costs_its_pair(tmp_path, side, bad, problem):
    for language in ("en", "es"):
        middle = bad if language == side else b"fine"
        text = language.encode() + " ñ".encode()
        (tmp_path / f"n.{language}").write_bytes(b"%s1\n%s\n%s3\n" % (text, middle, text))
    assert refused(tmp_path, "n.LANG") == f"n.{side}:2: {problem}{SKIP}"
    pairs, report = load(tmp_path, "n.LANG", **SKIPPING)
    assert (pairs, report.rows, report.malformed) == (Pairs(["en ñ1", "en ñ3"], ["es ñ1", "es ñ3"]), 3, 1)


@pytest.mark.parametrize("malformed", ["stop", "skip"])
@pytest.mark.parametrize("ends", [("en", "es"), ("es", "en")])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
def test_parallel_files_have_as_many_lines(tmp_path, ends, malformed, packed):
    write(tmp_path, {f"n.{ends[0]}": "a\nb\n\n", f"n.{ends[1]}": "a\nb\n\n\nc\n\nd\n"}, packed)
    gz = ".gz" * packed
    told = f"n.{ends[0]}{gz} has no line 5, but n.{ends[1]}{gz} has one: they are not parallel"
    assert refused(tmp_path, f"n.LANG{gz}", malformed=malformed) == told


@pytest.mark.parametrize("longer", ["en", "es"])
def test_blank_lines_at_the_end_of_one_parallel_file_are_empty_rows(tmp_path, longer):
    write(tmp_path, {"n.en": "a\n\nb\n", "n.es": "x\n\ny\n"})
    (tmp_path / f"n.{longer}").open("a").write("\n \u2003\r\n")
    pairs, report = load(tmp_path, "n.LANG")
    assert (pairs, report.rows, report.empty) == (Pairs(["a", "b"], ["x", "y"]), 5, 3)


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "a.LANG"])
def test_a_byte_order_mark_is_no_text_and_gzip_without_its_name_and_an_empty_file_are_named(tmp_path, name):
    lines = {"a.jsonl": b'{"en": "x", "es": "y"}\n', "a.csv": b"en,es\nx,y\n"}
    line, first = lines.get(name, b"x\ty\n"), name.replace("LANG", "en")

    def write_all(content: bytes) -> str:
        for language in ("en", "es"):
            (tmp_path / name.replace("LANG", language)).write_bytes(content)
        return name

    for encoding in ("utf-8", "latin-1"):
        told = refused(tmp_path, write_all(gzip.compress(line)), encoding=encoding)
        assert told == f"{first}:1: this is gzip; its name must end in .gz"
    for content in (b"", b"\xef\xbb\xbf"):
        assert refused(tmp_path, write_all(content)) == f"{name} has no sentence pairs: it needs lines with one each"
    expected = load(tmp_path, write_all(line))
    pairs, report = load(tmp_path, write_all(b"\xef\xbb\xbf" + line))
    assert (pairs, report.rows, report.malformed) == (expected[0], 1, 0)
    assert report.sha256 != expected[1].sha256  # it is that of the file's bytes


@pytest.mark.parametrize("name", ["a.tsv.gz", "a.jsonl.gz", "n.LANG.gz"])
def test_a_damaged_gzip_file_stops_whatever_is_skipped(tmp_path, name):
    line = '{"en": "x", "es": "%d"}' if name == "a.jsonl.gz" else "x\t%d"
    whole = gzip.compress("".join(f"{line % number}\n" for number in range(1000)).encode())
    turned = bytearray(whole)
    turned[-8] ^= 1  # the checksum of the text

    def refused_with(content: bytes, malformed: str) -> str:
        for language in ("en", "es"):
            (tmp_path / name.replace("LANG", language)).write_bytes(content)
        return refused(tmp_path, name, malformed=malformed)

    file = name.replace("LANG", "en")
    for content in (whole[:-4], whole[: len(whole) // 2], whole[:5], b"x\ty\n", whole + b"more", bytes(turned)):
        for malformed in ("skip", "stop"):
            assert refused_with(content, malformed).startswith(f"cannot read {file}: not a whole gzip file (")
    assert refused_with(b"", "stop").startswith(f"{name} has no sentence pairs")


KNOWN = "known are .tsv, .txt, .csv, .jsonl, .parquet, .tmx and NAME.LANG"
TABS, SHEET = "save it as tab-separated text (.tsv)", "save it as CSV (.csv) or as tab-separated text (.tsv)"
OTHER_ENDINGS = dict.fromkeys(("xml", "zip", "tar", "tgz", "tar.gz"), KNOWN)
OTHER_ENDINGS |= {
    "xlsx": SHEET,
    "ods": SHEET,
    "numbers": SHEET,
    "sdlxliff": "export it as TMX (.tmx)",
    "json": "write one object per line (.jsonl)",
}


@pytest.mark.parametrize(("ending", "advice"), OTHER_ENDINGS.items())
def test_an_ending_of_another_form_is_named_with_what_to_do(tmp_path, ending, advice):
    (tmp_path / f"a.{ending}").write_bytes(b"x\ty\n")
    assert refused(tmp_path, f"a.{ending}") == f"data.train: cannot read a.{ending}; {advice}"


NOT_A_PAIR = "; it needs exactly one, between the two sentences"
AN_OBJECT = 'JSON lines have one object per line: {"en": "…", "es": "…"}'
WHOLE = [  # a file of which no line can be read: its text, the problem of its first line, and what to do
    ("a.tsv", "one\rtwo\tdos\r", "a carriage return inside the line; end lines with LF or CRLF",
     "If it ends all lines, save the file with other line endings"),
    *(("a.tsv", f'"Yes, I do."{mark}"Sí."\n"No."{mark}"No."\n"I see."{mark}"Veo."\n', f"no tab in the line{NOT_A_PAIR}",
       f"Its lines have {name} instead of tabs: {TABS}") for mark, name in ((",", "commas"), (";", "semicolons"))),
    ("a.txt", "one ||| uno\ntwo ||| dos\n", f"no tab in the line{NOT_A_PAIR}",
     "Its lines have ||| instead of tabs: " + TABS),
    ("a.csv", "one\tuno\ntwo\tdos\n", f"no comma in the line{NOT_A_PAIR}",
     "Its lines have tabs instead of commas: " + TABS),
    ("a.tsv", "one\ntwo\n", f"no tab in the line{NOT_A_PAIR}",
     "No other of the first lines can be read: is the file in another form?"),
    ("a.jsonl", '{"id": 1, "src": "one", "tgt": "uno"}\n' * 3, "the object has no en and no es, only id, src, tgt",
     "data.columns=[src,tgt] data.source=src data.target=tgt names them"),
    ("a.jsonl", '{"Spanish": "uno", "English": "one"}\n' * 3, "the object has no en and no es, only Spanish, English",
     "data.columns=[Spanish,English] data.source=English data.target=Spanish names them"),
    ("a.jsonl", '[{"en": "one", "es": "uno"}]\n', "a list, not an object", AN_OBJECT),
    ("a.jsonl", '[\n{"en": "one",\n"es": "uno"},\n]\n', "not a JSON object", AN_OBJECT),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "problem", "advice"), WHOLE)
def test_a_fault_of_the_whole_file_is_not_to_be_skipped(tmp_path, name, text, problem, advice):
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    assert refused(tmp_path, name, header="keep", quoting="keep") == f"{name}:1: {problem}. {advice}"
    told = refused(tmp_path, name, header="keep", quoting="keep", **SKIPPING)
    counted = f"all of its {text.count(chr(10)) or 1} lines are malformed. {name}:1: {problem}. {advice}"
    assert told == f"{name} has no sentence pairs: {counted}"


# What random lines are made of: text of 1 to 4 bytes, halves of it, and every byte that means something to a parser.
PIECES = [b"a", b"b ", b"\t", b"\t", b"\t", b"\r", b"\0", b"\xff", b"\xc3", b"\xb1", b"\xef\xbb\xbf", b"\x1f\x8b"]
PIECES += [text.encode() for text in ("ñ", "n\u0303", "漢", "😀", "\u2028", "\x85", '"', "\\", "\x0b", "\x1c")]
RANDOM_LINE = st.lists(st.sampled_from(PIECES), max_size=6).map(b"".join)
PAIR_LINE = st.tuples(RANDOM_LINE, RANDOM_LINE).map(b"\t".join)
LINES = st.lists(st.one_of(PAIR_LINE, PAIR_LINE, RANDOM_LINE), max_size=8)


def lines_in(content: bytes) -> list[bytes]:
    """Lines end at line feeds; after the last one there is another line only if there is something in it.

    A byte order mark at the start is no text.
    """
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return lines if lines[-1] else lines[:-1]


def as_text(line: bytes) -> str | None:
    """What a person would take these bytes for: None if they are no line of text."""
    body = line[:-1] if line.endswith(b"\r") else line
    text = body.decode("utf-8", errors="replace")
    return None if text.encode() != body or set(text) & {"\0", "\r"} else text


def tidy(text: str) -> str:
    return unicodedata.normalize("NFC", " ".join(text.replace("\ufeff", " ").split()))


def check_skipping(folder: Path, name: str, expected: list[tuple[str, str] | None]) -> None:
    """``expected`` has an entry a line, None if the line is bad."""
    good = [pair for pair in expected if pair and tidy("".join(pair))]
    malformed = expected.count(None)
    empty = len(expected) - malformed - len(good)
    for source, target in (("en", "es"), ("es", "en")):
        as_it_stands: dict[str, Any] = {"header": "keep", "quoting": "keep"}  # the pieces have what looks like quoting
        config = DataConfig(root=str(folder), source=source, target=target, **as_it_stands, **SKIPPING)
        if not good:
            with pytest.raises(UserError, match="has no sentence pairs"):
                load_source(config, name, "train")
            continue
        pairs, report = load_source(config, name, "train")
        kept = list(zip(*((pairs.sources, pairs.targets)[:: 1 if source == "en" else -1]), strict=True))
        assert kept == [(tidy(first), tidy(second)) for first, second in good]
        assert (report.rows, report.malformed, report.empty) == (len(expected), malformed, empty)


@pytest.mark.slow
@settings(max_examples=150)
@given(lines=LINES, end=st.sampled_from([b"\n", b"\r\n"]), ended=st.booleans(), packed=st.booleans())
def test_skipping_loses_and_alters_no_good_line_of_a_table(tmp_path_factory, lines, end, ended, packed):
    folder = tmp_path_factory.getbasetemp()
    content = end.join(lines) + (end if ended else b"")
    name = "r.tsv.gz" if packed else "r.tsv"
    (folder / name).write_bytes(gzip.compress(content) if packed else content)
    found = lines_in(content)
    widths = [line.count(b"\t") + 1 for line in found if line.decode(errors="replace").strip()]
    columns = 3 if widths.count(3) > widths.count(2) else 2
    expected: list[tuple[str, str] | None] = []
    for text in map(as_text, found):
        cells = [] if text is None else text.split("\t")
        blank = ("", "") if text is not None and not tidy(text) else None
        expected.append((cells[0], cells[1]) if len(cells) == columns else blank)
    check_skipping(folder, name, expected)
