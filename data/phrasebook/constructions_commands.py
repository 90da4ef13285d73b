"""Commands and exclamations."""

from typing import Final

from data.phrasebook import english, spanish
from data.phrasebook.clauses import Action, dated_activity, exclamation, statement, times, transitive, unmeasured
from data.phrasebook.draw import Draw
from data.phrasebook.lexicon import adjectives, select
from data.phrasebook.nounphrases import Phrase, name, numbered, people, phrase, relative
from data.phrasebook.spanish import NOSOTROS

PLEASE: Final = ((", please", ", por favor"), ("", ""), ("", ""))
TITLES: Final = ((", sir", ", señor"), (", ma'am", ", señora"), (", doctor", ", doctor"))
# What nobody is told to do: get married, have fun, fall asleep, pass the exam.
UNORDERED: Final = frozenset("get have fall graduate pass laugh complain learn vote say make".split())
UNORDERED_WHOLE: Final = frozenset({"move to another city", "grow"})
# What nobody is told not to do.
UNFORBIDDEN: Final = frozenset(
    {"drive carefully", "arrive on time", "tell the truth", "make the bed", "go back home", "help at home"}
)


def orderable(draw: Draw) -> Action:
    """Something that one may be told to do."""
    action = draw.pick((dated_activity(draw), transitive(draw, "p"), transitive(draw, "p")))
    unordered = action.english.split()[0] in UNORDERED or action.english in UNORDERED_WHOLE or "x" in action.aspects
    return orderable(draw) if unordered or unmeasured(action) else action


def forbiddable(draw: Draw) -> Action:
    """Something that one may be told not to do."""
    action = orderable(draw)
    return forbiddable(draw) if action.english in UNFORBIDDEN else action


def ordered(action: Action, formal: bool, negated: bool = False) -> str:
    """The Spanish command with its reflexive pronoun: *siéntate*, *no se siente*."""
    verb, clitic = action.spanish.removesuffix("se"), ("se" if formal else "te")
    clitic = clitic if action.spanish.endswith("se") else ""
    form = spanish.command(verb, formal, negated)
    words = ("no", clitic, form, action.rest) if negated else (spanish.attached(form, clitic), action.rest)
    return " ".join(word for word in words if word)


def command(draw: Draw) -> Phrase:
    """Close the door: *cierra la puerta*."""
    action, (please, por_favor) = orderable(draw), draw.pick(PLEASE)
    return statement(action.english + please, ordered(action, formal=False) + por_favor, action)


def negative_command(draw: Draw) -> Phrase:
    """Don't close the door: *no cierres la puerta*."""
    action, (please, por_favor) = forbiddable(draw), draw.pick(PLEASE)
    in_spanish = ordered(action, formal=False, negated=True)
    return statement(f"don't {action.english}{please}", in_spanish + por_favor, action)


def formal_command(draw: Draw) -> Phrase:
    """To *usted*: Please close the door, sir: *por favor, cierre la puerta, señor*."""
    action, (sir, señor) = orderable(draw), draw.pick(TITLES)
    if draw.chance(35):
        action = forbiddable(draw)
        return statement(f"don't {action.english}{sir}", ordered(action, formal=True, negated=True) + señor, action)
    return statement(f"please {action.english}{sir}", f"por favor, {ordered(action, formal=True)}{señor}", action)


def lets(draw: Draw) -> Phrase:
    """Let's go to the cinema: *vamos a ir …*."""
    action = orderable(draw)
    ending = draw.pick(times("future")) if draw.chance(40) else Phrase("", "")
    rest = f"{spanish.infinitive_of(action.spanish, NOSOTROS)} {action.rest} {ending.spanish}"
    return statement(f"let's {action.english} {ending.english}", f"vamos a {rest}", "ir", action)


def exclaimed(draw: Draw) -> Phrase:
    """What a beautiful house! *¡Qué casa tan hermosa!*"""
    adjective = draw.pick([one for one in adjectives("ser") if one.degree in ("er", "more")])
    things = [one for one in adjective.things if one.number == "count"]
    head = draw.pick(things or select("hombre,mujer,niño,niña,estudiante,señora,maestro,médico"))
    said = phrase(head, "a", numbered(draw, head, 20), adjective)
    bare = phrase(head, "bare", said.plural).spanish
    in_english = said.english.removeprefix("some ")
    return exclamation(f"what {in_english}", f"qué {bare} tan {said.agree(adjective.spanish)}", said)


def how_exclaimed(draw: Draw) -> Phrase:
    """How tall your brother is! *¡Qué alto es tu hermano!*"""
    subject, copula = draw.pick((name, relative, people))(draw), draw.pick(("ser", "estar"))
    adjective = draw.pick([one for one in adjectives(copula, "human") if one.degree != "-"])
    in_english = f"how {adjective.english} {subject.english} {english.be('present', subject.slot)}"
    verb = spanish.conjugate(copula, "present", subject.slot)
    in_spanish = f"qué {subject.agree(adjective.spanish)} {verb} {subject.spanish}"
    return exclamation(in_english, in_spanish, subject, adjective.spanish, copula)


CONSTRUCTIONS: Final = {
    "command": command,
    "negative command": negative_command,
    "usted command": formal_command,
    "vamos a": lets,
    "exclamation with tan": exclaimed,
    "exclamation": how_exclaimed,
}
