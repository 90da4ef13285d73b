"""Text of others is safe to print."""

from common.text import as_list_item, in_brief, visible


def test_a_corpus_cannot_steer_the_terminal():
    assert visible("¡Olé!\x1b[2J a\u200bb") == "¡Olé!<U+001B>[2J a<U+200B>b"


def test_long_text_is_cut():
    assert in_brief("a" * 100) == "a" * 100
    assert in_brief("\x1b" + "a" * 100) == "<U+001B>" + "a" * 99 + "…"
    assert in_brief("abc", 2) == "ab…"


def test_usual_names_need_no_quotes():
    for name in ("en", "mine.tsv", "/data/a b.tsv", "phrasebook:grammar", "Sentence 1", "_", "español"):
        assert as_list_item(name) == name
    assert (as_list_item("no"), as_list_item("1")) == ('"no"', '"1"')
