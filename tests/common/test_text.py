"""Text of others is safe to print."""

from common.text import in_brief, visible


def test_a_corpus_cannot_steer_the_terminal():
    assert visible("¡Olé!\x1b[2J a\u200bb") == "¡Olé!<U+001B>[2J a<U+200B>b"


def test_long_text_is_cut():
    assert in_brief("a" * 100) == "a" * 100
    assert in_brief("\x1b" + "a" * 100) == "<U+001B>" + "a" * 99 + "…"
    assert in_brief("abc", 2) == "ab…"
