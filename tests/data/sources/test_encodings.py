"""A file in another encoding is reported with the data.encoding that reads it."""

import gzip
from pathlib import Path

import pytest

from data.config import DataConfig
from data.pairs import Pairs
from data.sources.encodings import guess_encoding
from tests.data.sources.reading import load, refused

ENGLISH = ["Hello.", "The girl eats.", "Where is “Ana”?", "He costs € 3.", "See you tomorrow!"]
SPANISH = ["Hola.", "La niña come.", "¿Dónde está “Ana”?", "Él cuesta 3 €.", "¡Hasta mañana!"]


def write(folder: Path, encoding: str, packed: bool = False) -> tuple[str, Pairs]:
    """Write a table as far as the encoding has its characters; return its name and its pairs."""
    lines = [f"{en}\t{es}\n" for en, es in zip(ENGLISH, SPANISH, strict=True)]
    content = "".join(lines).encode(encoding, errors="ignore")
    name = "my corpus.tsv" + ".gz" * packed
    (folder / name).write_bytes(gzip.compress(content) if packed else content)
    rows = [line.split("\t") for line in content.decode(encoding).splitlines()]
    tidy = [[" ".join(cell.split()) for cell in row] for row in rows]
    return name, Pairs([row[0] for row in tidy], [row[1] for row in tidy])


ENCODINGS = ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be"]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_another_encoding_is_named_and_read_with_the_setting_that_the_message_gives(tmp_path, encoding, packed):
    name, pairs = write(tmp_path, encoding, packed)
    for changes in ({}, {"malformed": "skip", "max_malformed": 0.1}):
        message = refused(tmp_path, name, **changes)
        advice = f"The file looks like {encoding}, not UTF-8: set data.encoding={encoding}, or convert it to UTF-8"
        assert message.endswith(advice) and "data.malformed=" not in message
    assert load(tmp_path, name, encoding=encoding)[0] == pairs


def test_parallel_files_and_objects_have_an_encoding_too(tmp_path):
    (tmp_path / "n.en").write_bytes(b"girl\n")
    (tmp_path / "n.es").write_bytes("niña\n".encode("latin-1"))
    (tmp_path / "a.jsonl").write_bytes('{"en": "girl", "es": "niña"}\n'.encode("latin-1"))
    for name in ("n.LANG", "a.jsonl"):
        assert "data.encoding=latin-1" in refused(tmp_path, name)
        assert load(tmp_path, name, encoding="latin-1")[0] == Pairs(["girl"], ["niña"])


def test_one_bad_line_in_utf8_is_no_other_encoding(tmp_path):
    lines = [f"{en}\t{es}\n".encode() for en, es in zip(ENGLISH, SPANISH, strict=True)]
    (tmp_path / "a.tsv").write_bytes(b"".join([*lines, b"ni\xf1a\tgirl\n"]))
    advice = "data.malformed=skip drops and counts such lines"
    assert refused(tmp_path, "a.tsv") == f"a.tsv:6: invalid UTF-8 at byte 3 of the line. {advice}"


def test_an_encoding_of_other_letters_is_not_guessed(tmp_path):
    (tmp_path / "a.tsv").write_bytes("Good morning.\tДоброе утро.\n".encode("cp1251") * 3)
    told = refused(tmp_path, "a.tsv")
    assert told.endswith(". The file is not UTF-8: set data.encoding=ENCODING, or convert it to UTF-8")
    assert load(tmp_path, "a.tsv", encoding="cp1251")[0].targets == ["Доброе утро."] * 3


def test_utf_16_needs_a_byte_order_mark(tmp_path):
    name, _ = write(tmp_path, "utf-16-le")
    assert refused(tmp_path, name, encoding="utf-16").startswith(f"cannot read {name} in data.encoding: ")


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16"])
def test_a_file_in_utf8_is_not_read_as_other_letters(tmp_path, encoding):
    name, _ = write(tmp_path, "utf-8")
    told = refused(tmp_path, name, encoding=encoding)
    assert told.startswith(f"{name} is UTF-8, not data.encoding={encoding}: set data.encoding=utf-8, and ")
    (tmp_path / "plain.tsv").write_text("one\tuno\n")
    if encoding != "utf-16":
        assert load(tmp_path, "plain.tsv", encoding=encoding)[0] == Pairs(["one"], ["uno"])


@pytest.mark.parametrize("encoding", ["mac_roman", "cp850", "cp437"])
def test_older_western_encodings_are_not_taken_for_cp1252(encoding):
    text = "Mañana comerá él aquí según la ocasión.\t¿Qué pasó? ¡Tú sabrás! El pingüino está solo.\n" * 20
    assert guess_encoding(text.encode(encoding)) == ""
    assert guess_encoding(text.encode("latin-1")) == "latin-1"
    assert guess_encoding(text.replace("¡", "“").encode("cp1252")) == "cp1252"


def test_a_byte_that_the_encoding_lacks_is_named_or_counted(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"ni\xf1a\tgirl\nx\x81\ty\n")
    told = refused(tmp_path, "a.tsv", encoding="cp1252")
    assert told.startswith("a.tsv:2: invalid cp1252 at character 2 of the line")
    pairs, report = load(tmp_path, "a.tsv", encoding="cp1252", malformed="skip", max_malformed=0.5)
    assert (pairs, report.rows, report.malformed) == (Pairs(["niña"], ["girl"]), 2, 1)


@pytest.mark.parametrize("name", ["nonsense", "rot13", "hex", "undefined", "", "a\0b"])
def test_what_is_no_encoding_of_text_is_refused(name):
    with pytest.raises(ValueError, match="is not an encoding that Python knows"):
        DataConfig(encoding=name)
    for known in ("utf-8", "UTF8", "latin-1", "mac_roman"):
        assert DataConfig(encoding=known).encoding == known


def test_guesses_on_bytes():
    assert guess_encoding(b"") == guess_encoding(b"plain\n") == guess_encoding("ñ\n".encode()) == "utf-8"
    assert guess_encoding("a\tñ\n".encode("utf-32")) == "utf-32"
