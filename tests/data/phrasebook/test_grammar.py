"""Every sentence of the grammar, read as text with the word lists beside it: what agrees, what is spelled how."""

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from data.phrasebook import spanish
from data.phrasebook.grammar import CONSTRUCTIONS, generate

ROOT = Path(__file__).parents[3]
WORDS = ROOT / "data" / "phrasebook" / "words"
DETERMINERS = {
    **dict.fromkeys("el un ese este algún ningún buen mal primer tercer mucho cuánto tanto".split(), ("m", False)),
    **dict.fromkeys("la una esa esta alguna ninguna mucha cuánta tanta".split(), ("f", False)),
    **dict.fromkeys("los unos esos estos muchos pocos varios demasiados cuántos tantos nuestros".split(), ("m", True)),
    **dict.fromkeys("las unas esas estas muchas pocas varias demasiadas cuántas tantas nuestras".split(), ("f", True)),
    "nuestro": ("m", False),
    "nuestra": ("f", False),
    **dict.fromkeys("mi tu su".split(), (None, False)),
    **dict.fromkeys("mis tus sus dos tres cuatro cinco seis siete diez doce veinte".split(), (None, True)),
}
COPULAS = "es son era eran fue fueron está están estaba estaban parece parecen".split()
STRESSED_A = "agua águila aula arpa hacha".split()


def table(name):
    lines = (WORDS / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


def noun_forms():
    """Each form of each noun with the genders and numbers it may have."""
    forms: dict[str, set[tuple[str, bool]]] = {}
    for words, genders, _, number, _ in table("nouns"):
        for word, gender in zip(words.split("/"), genders.split("/"), strict=True):
            if number != "plural":
                forms.setdefault(word, set()).add((gender, False))
            forms.setdefault(word if number == "plural" else spanish.plural(word), set()).add((gender, True))
    return forms


def adjective_forms():
    forms: dict[str, set[tuple[str, bool]]] = {}
    for word, *_ in table("adjectives"):
        for gender in "mf":
            for plural in (False, True):
                forms.setdefault(spanish.agree(word, gender == "f", plural), set()).add((gender, plural))
    return forms


def verb_forms(infinitives):
    tenses = ("present", "preterite", "imperfect", "future", "conditional", "subjunctive")
    forms = {form for verb in infinitives for tense in tenses for form in spanish.paradigm(verb, tense)}
    commands = {spanish.command(verb) for verb in infinitives}
    return forms | commands | {spanish.gerund(verb) for verb in infinitives} | set(infinitives)


NOUNS, ADJECTIVES = noun_forms(), adjective_forms()
# A form that may be a verb after a pronoun (los traje, la cuenta) tells nothing of the word before it.
VERBS = verb_forms([row[0].split()[0] for row in table("verbs") + table("person_verbs")] + ["traer", "dar", "mostrar"])


@pytest.fixture(scope="module")
def spanish_words(sentences):
    """The words of each Spanish sentence, lower case, cut where punctuation cuts."""
    return [
        (sentence.spanish, re.findall(r"[^\W\d_]+", re.sub(r"\w+[ei]nta y una?\b", "veinte", part.lower())))
        for sentence in sentences
        for part in re.split(r"[.,;:¿?¡!]", sentence.spanish)
    ]


def agrees(found, gender, plural):
    return any((gender in (None, g)) and plural == p for g, p in found)


@pytest.mark.slow
def test_enough_of_everything(sentences):
    assert len(sentences) == 48_000
    assert len({(s.english, s.spanish) for s in sentences}) == 48_000
    assert len({lemma for s in sentences for lemma in s.lemmas}) >= 950
    assert len({s.construction for s in sentences}) >= 100


def test_every_construction_has_its_share(sentences):
    counts = Counter(s.construction for s in sentences)
    assert set(counts) == set(CONSTRUCTIONS)
    assert min(counts.values()) >= 80


def test_no_sentence_has_two_translations(sentences):
    assert len({s.english for s in sentences}) == len({s.spanish for s in sentences}) == len(sentences)


def test_fewer_are_a_part_of_more(sentences):
    assert generate(500) == sentences[:500]


def test_same_in_another_process():
    script = (
        "import hashlib; from data.phrasebook.grammar import generate;"
        "print(hashlib.sha256(repr(generate(6000)).encode()).hexdigest())"
    )
    here = hashlib.sha256(repr(generate(6000)).encode()).hexdigest()
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.stdout.strip() == here, run.stderr


def test_lemmas_are_content_words(sentences):
    for sentence in sentences:
        assert all(lemma and " " not in lemma for lemma in sentence.lemmas), sentence
        assert len(set(sentence.lemmas)) == len(sentence.lemmas), sentence


def test_punctuation_and_length(sentences):
    for sentence in sentences:
        for text in (sentence.english, sentence.spanish):
            assert re.fullmatch(r"[¿¡]?[A-ZÁÉÍÓÚÑ].*[.?!]", text), text
            assert not re.search(r"\s\s|\s[.,?!]|^\s|\s$", text), text
            assert 2 <= len(text.split()) <= 14, text
        assert sentence.spanish.count("¿") == sentence.spanish.count("?") == sentence.english.count("?")
        assert sentence.spanish.count("¡") == sentence.spanish.count("!") == sentence.english.count("!")


def test_no_word_is_doubled(sentences):
    for sentence in sentences:
        for text in (sentence.english, sentence.spanish):
            words = re.findall(r"\w+", text.lower())
            doubled = {word for word, following in pairwise(words) if word == following}
            assert not doubled, text


def test_contractions_and_conjunctions(sentences):
    for sentence in sentences:
        text = sentence.spanish.lower()
        assert not re.search(r"\b(a|de) el\b", text), text
        assert not re.search(r"\by h?[ií](?!e)", text), text
        assert not re.search(r"\be (?!h?[ií])", text), text
        assert not re.search(r"\bo h?[oó]", text), text


def test_a_and_an(sentences):
    consonant = re.compile(r"uni[^n]|use|usu|u[^aeiou]i?v|one\b")
    for sentence in sentences:
        for article, word in re.findall(r"\b(an?) (\w+)", sentence.english.lower()):
            vowel = (word[0] in "aeiou" and not consonant.match(word)) or word.startswith(("hour", "honest"))
            assert (article == "an") == vowel, sentence.english


def test_determiners_agree_with_nouns(spanish_words):
    checked = 0
    for text, words in spanish_words:
        for determiner, noun in pairwise(words):
            if determiner in DETERMINERS and noun in NOUNS and noun not in VERBS:
                gender, plural = DETERMINERS[determiner]
                gender = "f" if noun in STRESSED_A and determiner in ("el", "un", "ningún", "algún") else gender
                checked += 1
                assert agrees(NOUNS[noun], gender, plural), text
    assert checked > 40_000


def test_stressed_a(spanish_words):
    for text, words in spanish_words:
        for determiner, noun in pairwise(words):
            assert not (determiner in ("la", "una") and noun in STRESSED_A), text


def test_adjectives_agree_with_the_noun_before_them(spanish_words):
    checked = 0
    for text, words in spanish_words:
        for determiner, noun, adjective in zip(words, words[1:], words[2:], strict=False):
            if (
                determiner in DETERMINERS
                and noun in NOUNS
                and noun not in VERBS
                and adjective in ADJECTIVES.keys() - VERBS
            ):
                gender, plural = DETERMINERS[determiner]
                gender = None if noun in STRESSED_A else gender
                possible = {(g, p) for g, p in NOUNS[noun] if p == plural and gender in (None, g)}
                checked += 1
                assert possible & ADJECTIVES[adjective], text
    assert checked > 2_000


def test_predicates_agree_with_their_subject(spanish_words):
    checked = 0
    for text, words in spanish_words:
        rest = [word for word in words if word not in ("no", "muy", "más", "tan", "menos", "demasiado", "un", "poco")]
        if len(rest) < 4 or rest[0] not in DETERMINERS or rest[1] not in NOUNS or rest[2] not in COPULAS:
            continue
        plural = DETERMINERS[rest[0]][1]
        assert rest[2].endswith("n") == plural, text
        if rest[3] in ADJECTIVES:
            gender = None if rest[1] in STRESSED_A else DETERMINERS[rest[0]][0]
            possible = {(g, p) for g, p in NOUNS[rest[1]] if p == plural and gender in (None, g)}
            checked += 1
            assert possible & ADJECTIVES[rest[3]], text
    assert checked > 2_000


def test_names_agree_with_their_predicates(spanish_words):
    names = {name.lower(): gender for name, gender in table("names")}
    for text, words in spanish_words:
        rest = [word for word in words if word not in ("no", "muy", "más", "tan")]
        if len(rest) > 2 and rest[0] in names and rest[1] in COPULAS and rest[2] in ADJECTIVES:
            assert (names[rest[0]], False) in ADJECTIVES[rest[2]], text


def test_persons_as_objects_have_the_personal_a(sentences):
    names = {name.lower() for name, _ in table("names")}
    human = {
        form for words, _, _, _, kinds in table("nouns") if "human" in kinds.split(",") for form in words.split("/")
    }
    human |= {spanish.plural(form) for form in human}
    people_only = [verb for verb, *_ in table("person_verbs") if verb not in ("presentar", "molestar")]
    forms = verb_forms(people_only) - set(NOUNS)
    for sentence in sentences:
        if (
            "¿" in sentence.spanish
            or sentence.spanish.startswith(("Cuando", "No sé", "¡"))
            or " sabe" in sentence.spanish
        ):
            continue  # there the subject may follow the verb
        words = re.findall(r"\w+|[,.]", sentence.spanish.lower())
        for verb, first, second in zip(words, [*words[1:], ""], [*words[2:], "", ""], strict=False):
            if verb in forms:
                assert first not in names, sentence.spanish
                assert not (first in DETERMINERS and second in human), sentence.spanish


def test_every_object_of_a_person_verb_is_introduced(sentences):
    for sentence in sentences:
        if sentence.construction == "personal a":
            assert re.search(r"\ba(l)? ", sentence.spanish), sentence.spanish


def test_sense(sentences):
    """What the classes must make impossible."""
    nonsense = re.compile(
        r"\b(mesa|casa|silla|puerta)s? (está|están) (cansad|enferm|trist)|"
        r"\bbeb(o|es|e|en|í|ió|ieron|er) (el )?(pan|queso|arroz)|"
        r"\bcom(o|es|e|en|í|ió|ieron|er) (una?|la|el) (mesa|silla|libro|llave)|"
        r"\ble(o|es|e|en|í|yó|yeron|er) (una?|la|el) (manzana|zapato|perro)"
    )
    assert not [s.spanish for s in sentences if nonsense.search(s.spanish.lower())]


def test_no_noun_is_named_like_a_class():
    """A selector that is both would mean the noun and everything of the class."""
    lemmas = {form for words, *_ in table("nouns") for form in words.split("/")}
    kinds = {kind for *_, all_kinds in table("nouns") for kind in all_kinds.split(",")}
    assert not lemmas & kinds
