"""Whether both sides have the languages of the config, judged by the sentences."""

import dataclasses
from math import sqrt

import pytest

from data.config import DataConfig
from data.corpus.language import describe_languages, find_language, sample
from data.pairs import Pairs
from data.sources.phrasebook import phrasebook

ENGLISH_SIDE, SPANISH_SIDE, _ = map(list, zip(*phrasebook()["phrases:train"], strict=True))
CONFIG = DataConfig()
IN_ORDER = "It is the house of my father.", "Esta es la casa de mi padre y de mi madre."
GERMAN = "Das ist das Haus meines Vaters."


def told(pairs: Pairs, config: DataConfig = CONFIG) -> list[str]:
    return list(describe_languages(config, pairs, "mine.jsonl"))


def test_the_phrasebook_is_in_order_one_way_and_exchanged_the_other():
    assert told(Pairs(ENGLISH_SIDE, SPANISH_SIDE)) == []
    [line] = told(Pairs(SPANISH_SIDE, ENGLISH_SIDE))
    exchanged, shown = (int(number) for number in line.partition("in ")[2].split()[:3:2])
    assert exchanged == shown > 500


@pytest.mark.parametrize(
    ("sentence", "language"),
    [
        ("Where is the café?", "en"),
        ("El hotel está en la playa.", "es"),
        ("¡No lo sé, señor!", "es"),
        ("Das Haus ist groß und die Katze schläft.", "de"),
        *dict.fromkeys(("No.", "Tom Jackson", "", "1,250", "de the", "ORDEN 7"), None).items(),
    ],
)
def test_the_language_of_a_sentence(sentence, language):
    assert find_language(sentence) == language


def made(exchanged, in_order, silent=0):
    pairs = [IN_ORDER[::-1]] * exchanged + [IN_ORDER] * in_order + [("Tom", "Tom")] * silent
    return Pairs(*map(list, zip(*pairs, strict=True)))


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (made(19, 0, silent=900), []),
        (made(20, 0, silent=900), ["source and target look exchanged: in 20 of 20"]),
        (made(50, 450), []),
        (made(51, 449), ["some pairs look exchanged: in 51 of 500"]),
        (made(80, 20), ["some pairs look exchanged: in 80 of 100"]),
        (made(81, 19), ["source and target look exchanged: in 81 of 100"]),
    ],
)
def test_evidence_is_needed_on_both_sides(pairs, said):
    assert [line.removeprefix("mine.jsonl: ").partition(" pairs the")[0] for line in told(pairs)] == said


def test_copies_are_said_and_names_are_none():
    assert told(Pairs([IN_ORDER[0]] * 60, [IN_ORDER[0], IN_ORDER[1], IN_ORDER[1]] * 20)) == [
        "mine.jsonl: in 20 of 60 pairs the target is a copy of the source: were they translated?"
    ]
    assert told(Pairs(["Tom Jackson", IN_ORDER[0]] * 50, ["Tom Jackson", IN_ORDER[1]] * 50)) == []


def test_another_language_is_said_with_its_side():
    seen = "of 100 sentences of the {0} (data.{0}={1}) read as another language, most of them as"
    foreign = Pairs([IN_ORDER[0]] * 100, [IN_ORDER[1], GERMAN] * 50)
    assert told(foreign) == [f"mine.jsonl: 50 {seen.format('target', 'es')} de"]
    untranslated = Pairs([IN_ORDER[1]] * 20 + [IN_ORDER[0]] * 80, ["La casa es grande y bonita."] * 100)
    assert told(untranslated) == [f"mine.jsonl: 20 {seen.format('source', 'en')} es"]


@pytest.mark.parametrize(
    ("changes", "file", "advice"),
    [
        ({}, "mine.tsv", "set data.columns=[es,en] (with data.source=es data.target=en to translate from es)"),
        ({"columns": ["es", "en"]}, "a.txt.gz", "set data.columns=[en,es] (with data.source=es data.target=en "),
        ({}, "a.csv", "exchange the names in its first line, or, if it has none, set data.columns=[es,en] (with "),
        ({}, "news.LANG", "exchange the names of its two files"),
        ({}, "news.LANG.txt", "exchange the names of its two files"),
        ({}, "OWNER/NAME:en-es:train", "exchange the names en and es in it"),
    ],
)
def test_the_line_names_what_to_set(changes, file, advice):
    [line] = describe_languages(dataclasses.replace(CONFIG, **changes), made(30, 0), file)
    assert line.startswith(
        f"{file}: source and target look exchanged: in 30 of 30 pairs the source (data.source=en) reads as es and the "
        f"target as en; if they are, {advice}"
    )


def test_nothing_is_said_of_languages_that_are_not_known():
    assert told(made(30, 0), DataConfig(columns=["en", "tlh"], target="tlh")) == []


@pytest.mark.parametrize("period", [2, 3, 7])
@pytest.mark.parametrize("first", [0, 1])
def test_a_sample_has_the_share_of_a_corpus_with_a_period(period, first):
    numbers = [str(int(i % period == first)) for i in range(9000)]
    drawn = sum(source == "1" for source, _ in sample(Pairs(numbers, numbers)))
    assert drawn == pytest.approx(1000 / period, abs=4 * sqrt(1000 / period * (1 - 1 / period)))
