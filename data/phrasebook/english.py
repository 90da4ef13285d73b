"""English morphology: a or an, plurals, verb forms with their auxiliaries, comparison."""

import functools
import re
from typing import Final

from data.phrasebook.lexicon import table

# Person slots as in Spanish: I, you, he, we, they.
I, YOU, HE, WE, THEY = range(5)  # noqa: E741
OBJECTS: Final = ("me", "you", "him", "us", "them")
_VERBS: Final = {row[0]: row[1:] for row in table("irregular_english")}
_PLURALS: Final = dict(table("irregular_plurals"))
SILENT_H: Final = ("hour", "honest", "honor", "heir")
LIKE_YOU: Final = re.compile("uni(?!n)|use|usu|euro|one")
NOT: Final = {"will": "won't", "am": "am not", "can": "can't"}


def with_article(phrase: str) -> str:
    """*a* or *an* before it, by its sound: an hour, a university."""
    word = phrase.lower()
    vowel = (word[0] in "aeiou" and not LIKE_YOU.match(word)) or word.startswith(SILENT_H)
    return f"{'an' if vowel else 'a'} {phrase}"


@functools.cache
def plural(noun: str) -> str:
    """The plural of a noun's last word."""
    if noun in _PLURALS:
        return _PLURALS[noun]
    if " " in noun:
        first, last = noun.rsplit(" ", 1)
        return f"{first} {plural(last)}"
    if re.search("[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    return noun + ("es" if re.search("(s|x|z|ch|sh)$", noun) else "s")


def possessive(owner: str) -> str:
    """the doctor's, the students'."""
    return owner + ("'" if re.search("[^s]s$", owner) and not owner[0].isupper() else "'s")


def _regular(base: str, ending: str) -> str:
    """With -s, -ed or -ing."""
    if ending == "s":
        return plural(base)
    if ending == "ing":
        return re.sub("(?<![eoy])e$", "", base) + "ing"
    if re.search("[^aeiou]y$", base):
        return base[:-1] + "ied"
    return base + ("d" if base.endswith("e") else "ed")


@functools.cache
def verb_form(verb: str, form: str) -> str:
    """A form (third, past, participle, gerund) of a verb that may have more words: looks for, picked up."""
    base, _, rest = verb.partition(" ")
    column = ("third", "past", "participle", "gerund").index(form)
    inflected = _VERBS.get(base, ["", "", "", ""])[column] or _regular(base, ("s", "ed", "ed", "ing")[column])
    return f"{inflected} {rest}".rstrip()


def be(tense: str, slot: int) -> str:
    """am, is, are; was, were."""
    if tense == "present":
        return ("am", "are", "is", "are", "are")[slot]
    return "was" if slot in (I, HE) else "were"


def auxiliary_and_verb(verb: str, tense: str, slot: int, emphatic: bool = False) -> tuple[str, str]:
    """What stands before the subject in a question, and the rest: (has, eaten), (will, eat).

    Without ``emphatic`` the auxiliary of the simple tenses is empty: ("", eats) but (does, eat).
    """
    first, _, rest = verb.partition(" ")
    if tense == "perfect":
        return ("has" if slot == HE else "have"), verb_form(verb, "participle")
    if tense == "going":
        return be("present", slot), f"going to {verb}"
    if tense in ("progressive", "past progressive"):
        return be("present" if tense == "progressive" else "past", slot), verb_form(verb, "gerund")
    if tense in ("future", "conditional"):
        return ("will" if tense == "future" else "would"), verb
    if first == "be":
        return be(tense, slot), rest
    return _simple(verb, tense, slot, emphatic)


def _simple(verb: str, tense: str, slot: int, emphatic: bool) -> tuple[str, str]:
    """Present; preterite; and, for the Spanish imperfect, *used to*."""
    if tense == "present":
        third = slot == HE
        if emphatic:
            return ("does" if third else "do"), verb
        return "", verb_form(verb, "third") if third else verb
    if emphatic:
        return "did", verb if tense == "preterite" else f"use to {verb}"
    return "", verb_form(verb, "past") if tense == "preterite" else f"used to {verb}"


def negative(auxiliary: str) -> str:
    """don't, isn't, won't; am not."""
    return NOT.get(auxiliary, auxiliary + "n't")


def comparative(adjective: str, degree: str) -> str:
    """taller, more important."""
    if degree != "er":
        return f"more {adjective}"
    return _graded(adjective, "er")


def superlative(adjective: str, degree: str) -> str:
    """tallest, most important."""
    if degree != "er":
        return f"most {adjective}"
    return _graded(adjective, "est")


def _graded(adjective: str, ending: str) -> str:
    stem = re.sub("(?<=[^aeiou])y$", "i", adjective)
    if re.search("^[^aeiou]*[aeiou][bdgnmpt]$", stem):
        stem += stem[-1]
    return stem.removesuffix("e") + ending
