"""English morphology against forms written down by hand."""

import pytest

from data.phrasebook import english
from data.phrasebook.english import HE, THEY, YOU, I


@pytest.mark.parametrize(
    ("phrase", "with_article"),
    [
        ("apple", "an apple"),
        ("car", "a car"),
        ("hour", "an hour"),
        ("university", "a university"),
        ("uniform", "a uniform"),
        ("umbrella", "an umbrella"),
        ("useful tool", "a useful tool"),
        ("honest man", "an honest man"),
        ("interesting book", "an interesting book"),
        ("uncle", "an uncle"),
        ("ugly hat", "an ugly hat"),
    ],
)
def test_a_or_an(phrase, with_article):
    assert english.with_article(phrase) == with_article


def test_plurals():
    singular = "car box city boy church bus knife woman tooth sheep shelf tomato mouse scarf piano washing machine"
    plurals = "cars boxes cities boys churches buses knives women teeth sheep shelves tomatoes mice scarves pianos"
    words = [*singular.split()[:-2], "washing machine"]
    assert [english.plural(word) for word in words] == [*plurals.split(), "washing machines"]
    assert english.plural("mother-in-law") == "mothers-in-law"


def test_possessives():
    assert [english.possessive(owner) for owner in ("Ana", "the boss", "my sisters", "Carlos")] == [
        "Ana's",
        "the boss's",
        "my sisters'",
        "Carlos's",
    ]


@pytest.mark.parametrize(
    ("verb", "third", "past", "participle", "gerund"),
    [
        ("go", "goes", "went", "gone", "going"),
        ("study", "studies", "studied", "studied", "studying"),
        ("play", "plays", "played", "played", "playing"),
        ("watch", "watches", "watched", "watched", "watching"),
        ("write", "writes", "wrote", "written", "writing"),
        ("swim", "swims", "swam", "swum", "swimming"),
        ("lie", "lies", "lied", "lied", "lying"),
        ("plan", "plans", "planned", "planned", "planning"),
        ("look for", "looks for", "looked for", "looked for", "looking for"),
        ("put away", "puts away", "put away", "put away", "putting away"),
        ("have", "has", "had", "had", "having"),
        ("see", "sees", "saw", "seen", "seeing"),
        ("open", "opens", "opened", "opened", "opening"),
        ("sweep", "sweeps", "swept", "swept", "sweeping"),
        ("show", "shows", "showed", "shown", "showing"),
        ("use", "uses", "used", "used", "using"),
        ("prefer", "prefers", "preferred", "preferred", "preferring"),
    ],
)
def test_verb_forms(verb, third, past, participle, gerund):
    forms = [english.verb_form(verb, form) for form in ("third", "past", "participle", "gerund")]
    assert forms == [third, past, participle, gerund]


@pytest.mark.parametrize(
    ("verb", "tense", "slot", "emphatic", "expected"),
    [
        ("eat", "present", HE, False, ("", "eats")),
        ("eat", "present", HE, True, ("does", "eat")),
        ("eat", "preterite", I, False, ("", "ate")),
        ("eat", "preterite", I, True, ("did", "eat")),
        ("eat", "imperfect", THEY, False, ("", "used to eat")),
        ("eat", "perfect", HE, True, ("has", "eaten")),
        ("eat", "future", YOU, True, ("will", "eat")),
        ("eat", "going", I, True, ("am", "going to eat")),
        ("eat", "past progressive", YOU, False, ("were", "eating")),
        ("be tired", "present", I, True, ("am", "tired")),
        ("be tired", "imperfect", HE, False, ("was", "tired")),
    ],
)
def test_auxiliaries(verb, tense, slot, emphatic, expected):
    assert english.auxiliary_and_verb(verb, tense, slot, emphatic) == expected


def test_negatives():
    assert [english.negative(word) for word in ("do", "is", "am", "will", "has", "were")] == [
        "don't",
        "isn't",
        "am not",
        "won't",
        "hasn't",
        "weren't",
    ]


def test_comparison():
    assert [english.comparative(word, "er") for word in ("tall", "big", "lazy", "nice", "sad", "clean")] == [
        "taller",
        "bigger",
        "lazier",
        "nicer",
        "sadder",
        "cleaner",
    ]
    assert english.superlative("thin", "er") == "thinnest"
    assert english.superlative("dangerous", "more") == "most dangerous"
