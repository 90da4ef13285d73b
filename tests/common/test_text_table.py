"""Tables on a terminal and in Markdown."""

import re

import pytest

from common.text import visible
from common.text_table import Table, as_markdown, as_text

TABLE = Table("Fruit", "Ripe | raw.", ["name", "count", "share"], [["fig", "1,200", "99.0%"], ["kiwi_*<b>", "8", ""]])


def test_numbers_stand_to_the_right_and_text_to_the_left():
    assert as_text(TABLE).split("\n") == [
        "FRUIT",
        "Ripe | raw.",
        "name       count  share",
        "fig        1,200  99.0%",
        "kiwi_*<b>      8",
    ]


HOSTILE = [
    "<script>alert(1)</script>",
    "a | b | c",
    "a\n| --- |\n\n# Title\n\n<img src=x onerror=alert(1)>",
    "`code` ``more`` ```fence",
    "a\\| b",
    "[click](javascript:alert(1)) ![x](y) [^1]",
    "&lt;script&gt; &#60;b&#62;",
    "$x$ ~~gone~~ **bold** __bold__",
    "\u2028| a |\u2029\x0b\x0c\x85\r| b |",
    "\x1b[2J\x1b]0;title\x07\u202e\ud800",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_corpus_breaks_a_table_or_becomes_anything_but_text(text):
    table = Table("Title", text, ["sentence", text], [[text, "3"], ["a", text]])
    title, note, body = as_markdown(table).split("\n\n")
    assert title == "## Title" and "\n" not in note
    rows = body.split("\n")
    assert len(rows) == 4 and rows[1] == "| --- | --- |"
    for row in rows:
        bare = re.sub(r"\\.", "", row)  # without what a backslash makes plain
        assert bare.count("|") == 3
        assert not set(bare) & set("<>`*_[]&$~\\") and bare.isprintable()
    assert note == re.sub(r"([\\`*_\[\]<>|~&$])", r"\\\1", visible(text))
    lines = as_text(table).split("\n")
    assert len(lines) == 5 and all(line.isprintable() for line in lines)
