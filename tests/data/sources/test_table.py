"""Tables as people have them: named columns, headers, CSV, Excel's quoting, ids; nothing is guessed."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from data.pairs import Pairs
from data.sources.lines import Malformed
from data.sources.table import Cells
from tests.data.sources.reading import SKIPPING, load, refused

ENGLISH = ["Yes, I do.", 'She said "no".', "We eat.", "He, too.", "1984", "Wait, please, Ana."]
SPANISH = ["Sí.", 'Dijo "no".', "Comemos.", "Él, también.", "1984", "Espera, Ana."]
READ = Pairs(ENGLISH, SPANISH)
IDS = [str(1276 + 3 * number) for number in range(6)]
HASHES = [f"{int(number) * 7919:08x}a1" for number in IDS]


def write(folder: Path, *columns: list[str], header: str = "") -> None:
    lines = ["\t".join(cells) for cells in zip(*columns, strict=True)]
    (folder / "a.tsv").write_text("\n".join([*filter(None, [header]), *lines, ""]), encoding="utf-8")


@pytest.mark.parametrize(
    ("columns", "cells"),
    [
        (["id", "en", "es"], [IDS, ENGLISH, SPANISH]),
        (["_", "en", "_", "es"], [IDS, ENGLISH, IDS, SPANISH]),
        (["es", "_", "_", "_", "en"], [SPANISH, IDS, IDS, IDS, ENGLISH]),
        (["en", "es", "_"], [ENGLISH, SPANISH, IDS]),
        (["en", "es"], [ENGLISH, SPANISH, ["CC-BY 2.0 (France) #1 (Ana)"] * 6]),
    ],
)
def test_columns_are_read_by_name_and_skipped(tmp_path, columns, cells):
    write(tmp_path, *cells)
    assert load(tmp_path, columns=columns)[0] == READ
    assert load(tmp_path, columns=columns, source="es", target="en")[0] == Pairs(SPANISH, ENGLISH)


@pytest.mark.parametrize("ids", [IDS, [f"s-{number}" for number in IDS], [f"0.{number}" for number in IDS], HASHES])
def test_a_column_of_ids_is_not_taken_for_a_language(tmp_path, ids):
    ids = [cell[-10:] for cell in ids]
    write(tmp_path, ids, ENGLISH, SPANISH)
    assert refused(tmp_path) == (
        f"a.tsv:1: column 1 of 3 does not look like text ({', '.join(ids[:3])}): set "
        "data.columns=[_,en,es], or data.columns=[en,es,_] if it is en after all"
    )
    assert load(tmp_path, columns=["_", "en", "es"])[0] == READ
    assert load(tmp_path, columns=["en", "es", "_"])[0] == Pairs(ids, ENGLISH)
    write(tmp_path, ENGLISH, ids, SPANISH)
    told = refused(tmp_path)
    assert "a.tsv:1: column 2 of 3 does not" in told and "set data.columns=[en,_,es], or" in told


@pytest.mark.parametrize("values", [["news", "law", "sport", "web"], ["CK", "Ana Blanco", "Spamster"]])
def test_a_column_of_few_short_values_is_no_language(tmp_path, values):
    write(tmp_path, ["eng"] * 12, ENGLISH * 2, SPANISH * 2)
    assert "column 1 of 3 does not look like text (eng, eng, eng): set data.columns=[_,en,es], or" in refused(tmp_path)
    rows = 10 * len(values)
    cells = [f"I see {number}." for number in range(rows)], [f"Veo {number}." for number in range(rows)]
    write(tmp_path, values * 10, *cells)
    assert f"1 of 3 does not look like text ({', '.join(values[:3])}): set data.columns=[_,en,es]" in refused(tmp_path)
    write(tmp_path, values * 9, *(side[: 9 * len(values)] for side in cells))  # more than a tenth are distinct
    assert load(tmp_path)[1].rows == 9 * len(values)
    long = [f"{value} of this and that" for value in values]  # as sentences with many translations
    write(tmp_path, long * 10, *cells)
    assert load(tmp_path)[0].sources == long * 10


@pytest.mark.parametrize(
    ("before", "columns"),
    [
        (lambda en, es: ("eng", en, "spa", es), "[_,en,_,es]"),
        (lambda en, es: ("en", "es", en, es), "[_,_,en,es]"),
        (lambda en, es: (str(len(en)), "English", en, "7", "Spanish", es), "[_,_,en,_,_,es]"),
    ],
)
@pytest.mark.parametrize("header", ["stop", "skip"])
def test_columns_of_language_codes_are_no_header(tmp_path, before, columns, header):
    rows = [before(en, es) for en, es in zip(ENGLISH, SPANISH, strict=True)]
    write(tmp_path, *map(list, zip(*rows, strict=True)))
    told = refused(tmp_path, header=header)
    assert told.startswith(f"a.tsv:1: {len(rows[0])} columns, as in most lines, which data.columns=[en,es] does not")
    assert f"data.columns={columns} names them" in told
    assert load(tmp_path, header=header, columns=columns[1:-1].split(","))[0] == READ


def test_more_columns_than_are_named_stop_with_the_columns_that_are_meant(tmp_path):
    write(tmp_path, IDS, ENGLISH, IDS, SPANISH)
    for changes in ({}, {"columns": ["id", "en", "es"]}):
        named = ",".join(changes.get("columns", ["en", "es"]))
        assert refused(tmp_path, **changes) == (
            f"a.tsv:1: 4 columns, as in most lines, which data.columns=[{named}] does not name. "
            "data.columns=[_,en,_,es] names them in order, with _ for one to skip"
        )
    assert "data.columns=[_,en,_,es] names them" in refused(tmp_path, malformed="skip")
    write(tmp_path, ENGLISH, SPANISH)
    found = "a.tsv:1: 2 columns, as in most lines, which data.columns=[_,en,es] does not name"
    assert refused(tmp_path, columns=["_", "en", "es"]).startswith(f"{found}. data.columns=[en,es] names them")


HEADERS = ["en\tes", "EN\tES", "English\tSpanish", "inglés\tEspañol", "source\ttarget", "src\ttgt", '"en"\t"es"',
           "en-US\tes_MX", "English sentence\tSpanish translation", "eng\tspa", "\ufeffen\tes", "Original\tTraducción",
           "English text\tTranslation", "Sentence 1\tSentence 2", "texto_1\ttexto_2"]  # fmt: skip


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_is_no_pair_unless_someone_says_so(tmp_path, header):
    write(tmp_path, ENGLISH, SPANISH, header=header)
    cells = header.removeprefix("\ufeff").replace("\t", ", ")
    assert refused(tmp_path) == (
        f"a.tsv:1: a header ({cells}) instead of a pair: data.header=skip leaves it out, data.header=keep reads it "
        "as a pair"
    )
    pairs, report = load(tmp_path, header="skip")
    assert (pairs, report.rows) == (READ, 6)
    assert len(load(tmp_path, header="keep")[0]) == load(tmp_path, header="keep")[1].rows == 7


def test_a_header_tells_when_the_columns_are_others(tmp_path):
    write(tmp_path, IDS, SPANISH, ENGLISH, header="id\tes\ten")
    asked = "data.header=skip data.columns=[_,es,en] leaves it out"
    assert f"a.tsv:1: a header (id, es, en) instead of a pair: {asked}, " in refused(tmp_path)
    assert refused(tmp_path, header="skip", columns=["id", "en", "es"]) == (
        "a.tsv:1: a header (id, es, en) that does not agree with data.columns=[id,en,es]: set data.columns=[_,es,en]"
    )
    assert load(tmp_path, header="skip", columns=["id", "es", "en"])[0] == READ


@pytest.mark.parametrize(
    "first",
    ["English\tInglés", "Spanish\tEspañol", "I speak English.\tHablo español.", "Text\tTexto", "Source\tFuente",
     "no\tes", "English.\tespañol.", "Original\tOriginal", "Translation\tTraducción", "Text 1\tTexto 1"],
)  # fmt: skip
def test_a_pair_about_languages_is_no_header(tmp_path, first):
    write(tmp_path, ENGLISH, SPANISH, header=first)
    for header in ("stop", "skip"):
        assert len(load(tmp_path, header=header)[0]) == 7


def test_a_header_may_follow_blank_lines(tmp_path):
    write(tmp_path, ENGLISH, SPANISH, header="\n \t\nEnglish\tSpanish")
    assert refused(tmp_path).startswith("a.tsv:3: a header (English, Spanish) instead of a pair: data.header=skip ")
    pairs, report = load(tmp_path, header="skip")
    assert (pairs, report.rows) == (READ, 6)
    (tmp_path / "a.tsv").write_text(f"{'x' * 20_000}\tuno\nen\tes\n")  # a long pair comes first
    assert load(tmp_path, header="skip")[1].rows == 2


def test_a_line_after_a_header_keeps_its_number(tmp_path):
    (tmp_path / "a.tsv").write_text("en\tes\none\tuno\ntwo\n")
    assert refused(tmp_path, header="skip").startswith("a.tsv:3: no tab in the line")
    (tmp_path / "a.tsv").write_text("en\tes\n")
    assert refused(tmp_path, header="skip") == "a.tsv has no sentence pairs: it needs lines with one each"


@pytest.mark.parametrize("marks", ['",', "", '"'], ids=["as Excel", "all", "where needed"])
def test_quoting_is_no_text_unless_someone_says_so(tmp_path, marks):
    """Cells with one of ``marks`` stand in quotation marks, or all of them."""

    def quote(cell: str) -> str:
        return '"' + cell.replace('"', '""') + '"' if set(cell) & set(marks or cell) else cell

    write(tmp_path, list(map(quote, ENGLISH)), list(map(quote, SPANISH)))
    line, cell = (2, '"She said ""no""."') if marks == '"' else (1, '"Yes, I do."')
    assert refused(tmp_path) == (
        f"a.tsv:{line}: cells in quotation marks, as Excel writes them, such as {cell}: data.quoting=csv removes "
        "the marks, data.quoting=keep reads them as text"
    )
    assert load(tmp_path, quoting="csv")[0] == READ
    assert load(tmp_path, quoting="keep")[0].sources[1] == '"She said ""no""."'


@pytest.mark.parametrize(
    "text",
    [
        '"Fire!"\t"¡Fuego!"\nHello, Tom.\tHola, Tom.\nBye.\tAdiós.\n' * 3,  # a cry among sentences with bare commas
        '"Yes," he said.\t"Sí", dijo.\n"No," she said.\t"No", dijo.\n' * 5,
        '"Yes," he said, "now."\t"Sí", dijo él, "ahora."\n' * 5 + '"Fire!"\t"¡Fuego!"\n',
        '"Fire!"\t"¡Fuego!"\nBye.\tAdiós.\n',
    ],
)
def test_sentences_in_quotation_marks_are_read_as_they_stand(tmp_path, text):
    (tmp_path / "a.tsv").write_text(text)
    lines = text.splitlines()
    pairs, _ = load(tmp_path)
    assert ["\t".join(pair) for pair in zip(pairs.sources, pairs.targets, strict=True)] == lines


@pytest.mark.parametrize("line", ['"a\tb', 'a\t"b', '"a"b\tc', '"a""\tb', '"'])
def test_a_quotation_mark_that_is_not_closed_is_malformed(tmp_path, line):
    with pytest.raises(Malformed):
        Cells("\t", quoted=True).split(line)
    (tmp_path / "a.tsv").write_text(f"x\ty\n{line}\n")
    told = "a.tsv:2: a quotation mark opens a cell and none closes it (data.quoting=keep reads marks as text)"
    assert refused(tmp_path, quoting="csv").startswith(f"{told}. data.malformed=skip drops and ")


# CSV


def write_csv(folder: Path, rows: Iterable[Sequence[str]], **format: Any) -> None:
    with open(folder / "a.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file, **format).writerows(rows)


CELL = st.text(st.sampled_from('ab",;\t\n ñ'), max_size=6)


@settings(max_examples=100)
@given(
    rows=st.lists(st.tuples(CELL, CELL), min_size=1),
    separator=st.sampled_from(",;\t"),
    end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
@example(
    [("None", "null"), ("N/A", "nan"), ("NA", "#N/A"), ("Two\nlines.", "Dos\r\n\nlíneas.")], ",", "\n", csv.QUOTE_ALL
)
def test_csv_is_read_by_the_names_in_its_first_line(tmp_path_factory, rows, separator, end, quoting):
    folder, columns = tmp_path_factory.getbasetemp(), [("es", "id", "English"), *((es, "7", en) for en, es in rows)]
    write_csv(folder, columns, delimiter=separator, lineterminator=end, quoting=quoting)
    tidy = [(" ".join(en.split()), " ".join(es.split())) for en, es in rows]
    if any(map("".join, tidy)):
        pairs, report = load(folder, "a.csv")
        assert list(zip(pairs.sources, pairs.targets, strict=True)) == [row for row in tidy if any(row)]
        assert (report.rows, report.malformed) == (len(rows), 0)


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("a,b", "does not name the columns en and es: data.columns=[a,b] data.source=a data.target=b names them, or, "),
        ("source,target", "does not name the columns en and es: data.columns=[source,target] data.source=source data."),
        ("Good morning.,Hola.", "does not name the columns en and es: change it to these names, or, if it is a pair, "),
        ("en,es,English", "names a language twice: rename one of the columns"),
    ],
)
def test_csv_without_names_for_both_languages_is_refused(tmp_path, header, told):
    (tmp_path / "a.csv").write_text(f"{header}\nx,y\n")
    in_words = header.replace(",", ", ")
    assert refused(tmp_path, "a.csv").startswith(f"a.csv:1: the first line ({in_words}) {told}")


def test_csv_without_names_is_read_in_the_order_of_the_columns(tmp_path):
    write_csv(tmp_path, zip(IDS, SPANISH, ENGLISH, strict=True))
    for header in ("skip", "keep"):
        assert load(tmp_path, "a.csv", header=header, columns=["_", "es", "en"])[0] == READ
    assert "column 1 of 3 does not look like text" in refused(tmp_path, "a.csv", header="skip")
    write_csv(tmp_path, [("source", "target"), *zip(ENGLISH, SPANISH, strict=True)])
    assert load(tmp_path, "a.csv", header="skip")[0] == READ
    assert load(tmp_path, "a.csv", header="keep")[0].sources == ["source", *ENGLISH]
    assert load(tmp_path, "a.csv", header="skip", quoting="keep", **SKIPPING)[0].sources[0] == '"She said ""no""."'


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("Hello, you,Hola", "2 commas in the line; it needs exactly one, between the two sentences"),
        ("Hello", "no comma in the line; it needs exactly one, between the two sentences"),
        ('"Hello,Hola', "a quotation mark opens a cell and none closes it (data.quoting=keep reads marks as text)"),
        ('"Hi" all,Hola', "a quotation mark opens a cell and none closes it (data.quoting=keep reads marks as text)"),
    ],
)
def test_a_bad_line_of_csv_costs_no_other_line(tmp_path, line, told):
    (tmp_path / "a.csv").write_text('en,es\n"a\nb",c\n' + line + "\n" + "x,y\n" * 200 + 'last,"z"\n')
    assert refused(tmp_path, "a.csv") == f"a.csv:4: {told}. data.malformed=skip drops and counts such lines"
    pairs, report = load(tmp_path, "a.csv", **SKIPPING)
    assert pairs == Pairs(["a b", *["x"] * 200, "last"], ["c", *["y"] * 200, "z"])
    assert (report.rows, report.malformed) == (203, 1)


# Rows that are left out


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl", "n.LANG"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_blank_lines_are_left_out_and_counted_in_every_form(tmp_path, name, split):
    """A pair of which one side is empty stays a pair; only training drops it."""
    (tmp_path / "a.tsv").write_text("\none\tuno\n\n \t \u2003\n\tdos\n\t\t\n")
    objects = '\n{"en": "one", "es": "uno"}\n\n \t\u200b\n{"en": "", "es": "dos"}\n{"en": "", "es": " "}\n'
    (tmp_path / "a.jsonl").write_text(objects)
    (tmp_path / "n.en").write_text("\none\n\n \t\n\n\n")
    (tmp_path / "n.es").write_text("\nuno\n\n\u2003\ndos\n\n")
    pairs, report = load(tmp_path, name, split)
    assert pairs == Pairs(["one", ""], ["uno", "dos"])
    assert (report.rows, report.malformed, report.empty) == (6, 0, 4)


@pytest.mark.parametrize(("share", "bad"), [(0.01, 2), (0.01, 3), (0.0, 1), (1.0, 199)])
def test_no_more_than_a_share_of_a_files_lines_is_dropped(tmp_path, share, bad):
    (tmp_path / "a.tsv").write_text("x\ty\n" * (200 - bad) + "no tab\n" * bad)
    changes: dict[str, Any] = {"malformed": "skip", "max_malformed": share}
    if bad <= 200 * share:
        pairs, report = load(tmp_path, **changes)
        assert (len(pairs), report.rows, report.malformed) == (200 - bad, 200, bad)
        return
    assert refused(tmp_path, **changes) == (
        f"a.tsv: {bad} of 200 lines are malformed, above data.max_malformed={share:g}; the first is "
        f"a.tsv:{201 - bad}: no tab in the line; it needs exactly one, between the two sentences. "
        f"Fix the lines, or drop them anyway with data.max_malformed={0.02 if bad == 3 else 0.01}"
    )
