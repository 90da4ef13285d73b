"""Tables on a terminal and in Markdown."""

from data.card_text import Table, as_markdown, as_text, in_words, visible

TABLE = Table("Fruit", "Ripe | raw.", ["name", "count", "share"], [["fig", "1,200", "99.0%"], ["kiwi_*<b>", "8", ""]])


def test_numbers_stand_to_the_right_and_text_to_the_left():
    assert as_text(TABLE).split("\n") == [
        "FRUIT",
        "Ripe | raw.",
        "name       count  share",
        "fig        1,200  99.0%",
        "kiwi_*<b>      8",
    ]


def test_markdown_shows_every_character_as_it_stands():
    assert as_markdown(TABLE).split("\n") == [
        "## Fruit",
        "",
        r"Ripe \| raw.",
        "",
        "| name | count | share |",
        "| --- | --- | --- |",
        "| fig | 1,200 | 99.0% |",
        r"| kiwi\_\*\<b\> | 8 |  |",
    ]


def test_reasons_without_a_pair_are_not_told():
    assert in_words({"empty": 0, "mismatched": 1200, "over_long": 1}) == "1,200 mismatched, 1 over_long"
    assert in_words({"empty": 0}) == "none"


def test_a_corpus_cannot_steer_the_terminal():
    assert visible("¡Olé!\x1b[2J a\u200bb") == "¡Olé!<U+001B>[2J a<U+200B>b"
