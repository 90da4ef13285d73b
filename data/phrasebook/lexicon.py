"""The word lists of ``words/``, read once: nouns with the classes that keep sentences sensible, verbs, adjectives.

Whoever extends them finds the letters explained here: number, aspects, degree, copula, determiners.
"""

import functools
from dataclasses import dataclass
from pathlib import Path

WORDS = Path(__file__).with_name("words")


@functools.cache
def table(name: str) -> list[list[str]]:
    """The rows of ``words/NAME.tsv`` below its header, each with all its cells."""
    lines = (WORDS / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


@dataclass(frozen=True, eq=False)  # each is made once, and looked for millions of times
class Noun:
    """``number`` is count, mass (no plural) or plural (no singular); ``kinds`` are the classes it belongs to."""

    spanish: str
    english: str
    feminine: bool
    number: str
    kinds: frozenset[str]
    lemma: str

    @property
    def several(self) -> bool:
        """Whether one speaks of more than one: of shoes, of grapes."""
        return not self.kinds.isdisjoint({"paired", "several"})

    def matches(self, selectors: frozenset[str]) -> bool:
        """Whether a selector names the noun or one of its classes."""
        return self.lemma in selectors or not selectors.isdisjoint(self.kinds)


@dataclass(frozen=True)
class Verb:
    """A transitive verb with the nouns it takes, and what stands before them (``clauses.BEFORE_OBJECT``).

    ``aspects``: h, may be a habit; p, may be in progress; l, takes long; x, happens to one and is not planned; and, of
    activities, s, has no date because it lasts or says its own time; of verbs of persons, o, is only in progress.
    """

    spanish: str
    english: str
    objects: tuple[Noun, ...]
    determiners: str
    aspects: str


@dataclass(frozen=True)
class Activity:
    """A whole predicate in both languages, verb first: *hacer la cama*, make the bed."""

    spanish: str
    english: str
    aspects: str


@dataclass(frozen=True)
class Adjective:
    """``copula``: ser or estar; ``degree``: er, more, - (has none), color or nation."""

    spanish: str
    english: str
    copula: str
    degree: str
    nouns: tuple[Noun, ...]

    @property
    def things(self) -> tuple[Noun, ...]:
        """The nouns that it may describe, but for people."""
        return tuple(noun for noun in self.nouns if "human" not in noun.kinds)


@functools.cache
def nouns() -> tuple[Noun, ...]:
    """Every noun; a profession stands once for men and once for women, under one lemma."""
    found = []
    for spanish, gender, english, number, kinds in table("nouns"):
        for form, letter in zip(spanish.split("/"), gender.split("/"), strict=True):
            lemma = spanish.split("/")[0]
            found.append(Noun(form, english, letter == "f", number, frozenset(kinds.split(",")), lemma))
    return tuple(found)


@functools.cache
def select(selectors: str) -> tuple[Noun, ...]:
    """The nouns named in a comma-separated list of classes and nouns. English hides the gender of professions, so
    only their masculine forms are found here."""
    wanted = frozenset(selectors.split(","))
    return tuple(
        noun for noun in nouns() if noun.matches(wanted) and not ("profession" in noun.kinds and noun.feminine)
    )


@functools.cache
def countable(selectors: str) -> tuple[Noun, ...]:
    """Those of them that have a singular and a plural."""
    return tuple(noun for noun in select(selectors) if noun.number == "count")


@functools.cache
def noun(spanish: str) -> Noun:
    """The noun with this dictionary form."""
    return next(noun for noun in nouns() if noun.spanish == spanish)


@functools.cache
def professions(feminine: bool) -> tuple[Noun, ...]:
    """Professions in the form for women or for men."""
    found = (noun for noun in nouns() if "profession" in noun.kinds and noun.feminine == feminine)
    return tuple({noun.lemma: noun for noun in found}.values())


@functools.cache
def verbs(aspect: str = "") -> tuple[Verb, ...]:
    """The transitive verbs that have this aspect."""
    rows = table("verbs")
    found = (Verb(es, en, select(objects), kind, aspects) for es, en, objects, kind, aspects in rows)
    return tuple(verb for verb in found if aspect in verb.aspects)


@functools.cache
def verb(spanish: str) -> Verb:
    """The transitive verb with this infinitive."""
    return next(verb for verb in verbs() if verb.spanish == spanish)


@functools.cache
def verbs_named(infinitives: str) -> tuple[Verb, ...]:
    """The transitive verbs in a comma-separated list."""
    return tuple(verb(infinitive) for infinitive in infinitives.split(","))


@functools.cache
def person_verbs(aspect: str = "") -> tuple[Verb, ...]:
    """Verbs whose object is a person, who takes the personal *a*."""
    found = (Verb(es, en, select("human"), "person", aspects) for es, en, aspects in table("person_verbs"))
    return tuple(verb for verb in found if aspect in verb.aspects and (aspect or "o" not in verb.aspects))


@functools.cache
def predicates(use: str) -> tuple[Activity, ...]:
    """Whole predicates that serve one construction."""
    return tuple(Activity(spanish, english, "") for name, spanish, english in table("predicates") if name == use)


@functools.cache
def activities(aspect: str = "") -> tuple[Activity, ...]:
    """Whole predicates that have this aspect."""
    found = (Activity(*row) for row in table("activities"))
    return tuple(activity for activity in found if aspect in activity.aspects)


@functools.cache
def adjectives(copula: str, selector: str = "") -> tuple[Adjective, ...]:
    """Adjectives with *ser* or *estar*; with a selector, those that describe what it names."""
    found = []
    for spanish, english, verb, degree, kinds in table("adjectives"):
        if verb == copula and degree != "nation" and (not selector or selector in kinds.split(",")):
            found.append(Adjective(spanish, english, copula, degree, select(kinds)))
    return tuple(found)


@functools.cache
def adjective(spanish: str, copula: str) -> Adjective:
    """The adjective with this masculine singular, with *ser* or with *estar*."""
    return next(adjective for adjective in adjectives(copula) if adjective.spanish == spanish)


@functools.cache
def descriptions(noun: Noun, copula: str = "ser") -> tuple[Adjective, ...]:
    """The adjectives that may describe the noun."""
    return tuple(adjective for adjective in adjectives(copula) if noun in adjective.nouns)


@functools.cache
def nationalities() -> tuple[Adjective, ...]:
    return tuple(
        Adjective(es, en, copula, degree, ()) for es, en, copula, degree, _ in table("adjectives") if degree == "nation"
    )


@functools.cache
def names(feminine: bool) -> tuple[str, ...]:
    """First names, the same in both languages."""
    return tuple(name for name, gender in table("names") if (gender == "f") == feminine)
