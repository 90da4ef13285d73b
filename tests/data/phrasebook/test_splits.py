"""What the phrasebook trains on and what it holds out."""

import hashlib
import unicodedata
from collections import Counter

import pytest

from common.errors import UserError
from data.config import DataConfig
from data.pairs import concatenate, fold
from data.phrasebook.splits import hand_written
from data.sources.corpus import load_source


@pytest.fixture(scope="module")
def by_english(sentences):
    return {sentence.english: sentence for sentence in sentences}


def test_there_is_enough_of_everything(parts):
    sizes = {" ".join(key): len(pairs) for key, pairs in parts.items()}
    assert sizes["grammar train"] >= 40_000
    assert sizes["phrases train"] + sizes["phrases test"] >= 1_200
    assert (sizes["grammar test"], sizes["grammar valid"], sizes["phrases test"]) == (1000, 500, 150)


def test_no_held_out_sentence_is_anywhere_else_on_either_side(parts):
    for key, held_out in parts.items():
        if key[1] != "train":
            others = concatenate([pairs for name, pairs in parts.items() if name != key])
            assert not set(map(fold, held_out.sources)) & set(map(fold, others.sources)), key
            assert not set(map(fold, held_out.targets)) & set(map(fold, others.targets)), key


@pytest.mark.parametrize("split", ["valid", "test"])
def test_each_held_out_sentence_has_a_word_in_a_construction_that_training_never_has_there(parts, by_english, split):
    trained = [by_english[english] for english in parts["grammar", "train"].sources]
    known = {(s.construction, lemma) for s in trained for lemma in s.lemmas}
    for english in parts["grammar", split].sources:
        sentence = by_english[english]
        assert any((sentence.construction, lemma) not in known for lemma in sentence.lemmas), english


@pytest.mark.parametrize("split", ["valid", "test"])
def test_and_yet_training_knows_all_its_words_and_its_construction(parts, by_english, split):
    trained = [by_english[english] for english in parts["grammar", "train"].sources]
    lemmas, constructions = {lemma for s in trained for lemma in s.lemmas}, Counter(s.construction for s in trained)
    for english in parts["grammar", split].sources:
        assert set(by_english[english].lemmas) <= lemmas, english
        assert constructions[by_english[english].construction] >= 100, english


def test_the_held_out_sentences_are_spread_over_the_constructions(parts, by_english):
    tested = Counter(by_english[english].construction for english in parts["grammar", "test"].sources)
    assert len(tested) >= 0.7 * len({s.construction for s in by_english.values()})
    assert max(tested.values()) <= 50


def test_the_hand_written_phrases_are_clean():
    phrases = hand_written()
    pairs = list(zip(phrases.sources, phrases.targets, strict=True))
    assert ("You are welcome.", "De nada.") in pairs
    assert len(set(pairs)) == len(pairs) >= 1_200
    for english, spanish in pairs:
        for text in (english, spanish):
            assert text == unicodedata.normalize("NFC", " ".join(text.split())), text
            assert text[-1] in '.?!…"»', text
        assert spanish.count("¿") == spanish.count("?"), spanish
        assert spanish.count("¡") == spanish.count("!"), spanish
        assert ("?" in english) == ("?" in spanish), (english, spanish)


def test_a_source_of_training_names_part_and_split(parts):
    config = DataConfig(source="es", target="en")
    pairs, report = load_source(config, "phrasebook:phrases", "test")
    assert (pairs.sources, pairs.targets) == (parts["phrases", "test"].targets, parts["phrases", "test"].sources)
    content = "".join(f"{en}\t{es}\n" for en, es in zip(pairs.targets, pairs.sources, strict=True))
    assert report.sha256 == hashlib.sha256(content.encode()).hexdigest()
    assert (report.file, report.rows) == ("phrasebook:phrases:test", 150)
    assert load_source(config, "phrasebook:grammar:valid", "train")[0].targets == parts["grammar", "valid"].sources


@pytest.mark.parametrize(
    "name",
    [
        "phrasebook",
        "phrasebook:words",
        "phrasebook:phrases:valid",
        "phrasebook:grammar:dev",
        "phrasebook:grammar:test:x",
    ],
)
def test_what_is_not_there_is_refused_with_what_is(name):
    with pytest.raises(UserError, match=r"phrasebook:grammar:test, phrasebook:grammar:train") as caught:
        load_source(DataConfig(), name, "valid")
    assert "\n" not in str(caught.value)


def test_other_languages_are_refused():
    with pytest.raises(UserError, match="columns are en and es"):
        load_source(DataConfig(columns=["en", "fr"], target="fr"), "phrasebook:grammar", "train")
