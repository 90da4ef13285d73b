"""Tables in CSV: what is translated is what the columns' cells alone would be, and nothing else changes."""

import csv
import io
import re

import pytest

from common.errors import UserError
from evaluation.documents.table import translate_table
from evaluation.documents.translate import translate_document

ROWS = [
    ["id", "name", "price", "description"],
    ["Red-1", "The cat", "1,50", 'Tom sees "a" house.\r\nIt is red, and old.'],
    ["B 2", "", "20"],
    ["C", "Nobody", "3", "A cat; a house.", "extra"],
]


def table(separator, end, quoting):
    output = io.StringIO()
    csv.writer(output, delimiter=separator, lineterminator=end, quoting=quoting).writerows(ROWS)
    return output.getvalue()


@pytest.mark.parametrize(
    ("separator", "end", "quoting"), [(",", "\n", csv.QUOTE_MINIMAL), (";", "\r\n", csv.QUOTE_ALL), ("\t", "\n", 0)]
)
def test_cells_of_the_columns_are_translated_as_they_would_be_alone(translator, params, separator, end, quoting):
    document = "\ufeff" + table(separator, end, quoting)
    translated, texts = translate_table(translator, params, document, ["description", "name"])
    rows = list(csv.reader(io.StringIO(translated[1:], newline=""), delimiter=separator))
    alone = {cell: translate_document(translator, params, cell, "text")[0] for row in ROWS[1:] for cell in row[1:4:2]}
    expected = [[alone[cell] if place in (1, 3) else cell for place, cell in enumerate(row)] for row in ROWS[1:]]
    assert rows == [ROWS[0], *expected] and translated[0] == "\ufeff" and len(texts) >= 4
    assert re.findall(r"\r\n?|\n", translated) == re.findall(r"\r\n?|\n", document)
    assert ('"id"' in translated) == (quoting == csv.QUOTE_ALL)
    assert not translate_table(translator, params, document.rstrip(), ["name"])[0].endswith("\n")


@pytest.mark.parametrize(
    ("document", "columns", "message"),
    [
        ("id,name\n1,x\n", [], "--columns NAME,…: this table has id, name"),
        ("id,name\n1,x\n", ["nme"], "there is no nme; the nearest is name; this table has id, name"),
        ("", ["name"], "this table has no header"),
        ('id,name\n1,"x" y\n', ["name"], "line 2: "),
        ("id,name\n1,\0\n", ["name"], "line 2 has a NUL byte"),
    ],
)
def test_mistakes_are_one_line(translator, params, document, columns, message):
    with pytest.raises(UserError) as error:
        translate_table(translator, params, document, columns)
    assert message in str(error.value)
