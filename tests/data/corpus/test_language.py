"""Whether English and Spanish look exchanged, judged by the sentences."""

import dataclasses

import pytest

from data.config import DataConfig
from data.corpus.language import count_exchanged, describe_exchange, find_language
from data.pairs import Pairs
from data.sources.phrasebook import phrasebook

ENGLISH_SIDE, SPANISH_SIDE = map(list, zip(*phrasebook()["phrases:train"], strict=True))
CONFIG = DataConfig()


def test_every_exchanged_sentence_that_shows_its_language_is_seen():
    exchanged, shown = count_exchanged(Pairs(SPANISH_SIDE, ENGLISH_SIDE), "en")
    assert exchanged == shown > 500
    assert count_exchanged(Pairs(SPANISH_SIDE, ENGLISH_SIDE), "es") == (0, shown)


def test_the_language_of_a_sentence():
    languages = {
        "Where is the café?": "en",  # one Spanish letter against two English words
        "El hotel está en la playa.": "es",
        "I don’t know.": "en",
        "¡Fuego!": "es",
    } | dict.fromkeys(("No.", "Tom Jackson", "", "de the"))
    assert {sentence: find_language(sentence) for sentence in languages} == languages


def made(exchanged, in_order, silent=0):
    pairs = [("Es la casa.", "It is the house.")] * exchanged + [("It is the house.", "Es la casa.")] * in_order
    return Pairs(*map(list, zip(*pairs, *[("Tom", "Tom")] * silent, strict=True)))


def test_evidence_is_needed_on_both_sides():
    assert count_exchanged(made(3, 2, silent=40), "en") == (3, 5)
    assert describe_exchange(CONFIG, made(19, 0, silent=900), "mine.tsv") is None
    assert describe_exchange(CONFIG, made(20, 0, silent=900), "mine.tsv") is not None
    assert describe_exchange(CONFIG, made(80, 20), "mine.tsv") is None
    assert describe_exchange(CONFIG, made(81, 19), "mine.tsv") is not None


@pytest.mark.parametrize(
    ("changes", "file", "advice"),
    [
        ({}, "mine.tsv", "set data.columns=[es,en] (with data.source=es data.target=en to translate from Spanish)"),
        ({"columns": ["es", "en"]}, "a.txt.gz", "set data.columns=[en,es] (with data.source=es data.target=en "),
        ({}, "a.csv", "exchange the names in its first line, or, if it has none, set data.columns=[es,en] (with "),
        ({}, "news.LANG", "exchange the names of its two files"),
        ({}, "news.LANG.txt", "exchange the names of its two files"),
        ({}, "OWNER/NAME:en-es:train", "exchange the names en and es in it"),
    ],
)
def test_the_line_names_what_to_set(changes, file, advice):
    line = describe_exchange(dataclasses.replace(CONFIG, **changes), made(30, 0), file)
    assert line is not None and line.startswith(
        f"{file}: source and target look exchanged: in 30 of 30 pairs the source (data.source=en) reads as Spanish "
        f"and the target as English; if they are, {advice}"
    )


def test_nothing_is_said_of_other_languages():
    config = DataConfig(columns=["en", "pt"], target="pt")
    assert describe_exchange(config, made(30, 0), "mine.tsv") is None


def test_a_large_corpus_is_sampled_from_end_to_end():
    exchanged, shown = count_exchanged(made(5000, 5000), "en")
    assert (exchanged, shown) == (500, 1000)
