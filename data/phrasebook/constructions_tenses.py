"""What people do and when: the tenses, and negation."""

from typing import Final

from data.phrasebook import english
from data.phrasebook.clauses import (
    ALREADY,
    ALWAYS,
    NEVER,
    NEVER_DONE,
    PRONOUNS,
    UNDATED,
    Action,
    activity,
    clause,
    doing,
    ended,
    event,
    finished,
    habit,
    lasting,
    plan,
    process,
    serving,
    statement,
    times,
    told,
)
from data.phrasebook.draw import Draw
from data.phrasebook.lexicon import person_verbs, verbs, verbs_named
from data.phrasebook.nounphrases import NounPhrase, Phrase, anybody, people, person, phrase
from data.phrasebook.spanish import NOSOTROS, YO


def habitual(draw: Draw, tense: str) -> Phrase:
    """Something done regularly; what lasts or has its own time is not dated."""
    subject = anybody(draw)
    action = habit(draw, subject)
    return told(subject, action, tense, ending=None if "s" in action.aspects else draw.pick(times(tense)))


def present(draw: Draw) -> Phrase:
    return habitual(draw, "present")


def imperfect(draw: Draw) -> Phrase:
    return habitual(draw, "imperfect")


def negated_present(draw: Draw) -> Phrase:
    subject = anybody(draw)
    return told(subject, habit(draw, subject), "present", negated=True)


def dated(draw: Draw, tense: str, adverbials: str, negated: bool = False) -> Phrase:
    """Something that happens once, with its date; what takes long has a longer date."""
    subject = anybody(draw)
    if draw.chance(12):
        return told(subject, lasting(draw), tense, negated, draw.pick(times(f"long {adverbials}")))
    action = event(draw, subject) if adverbials == "preterite" else plan(draw, subject)
    if action.spanish in UNDATED:
        return dated(draw, tense, adverbials, negated)
    return told(subject, action, tense, negated, draw.pick(times(adverbials)))


def preterite(draw: Draw) -> Phrase:
    return dated(draw, "preterite", "preterite")


def negated_preterite(draw: Draw) -> Phrase:
    subject = anybody(draw)
    return told(subject, event(draw, subject), "preterite", negated=True)


def future(draw: Draw) -> Phrase:
    return dated(draw, "future", "future")


def negated_future(draw: Draw) -> Phrase:
    return dated(draw, "future", "future", negated=True)


def going_to(draw: Draw) -> Phrase:
    return dated(draw, "going", "future", draw.chance(20))


def already(draw: Draw) -> Phrase:
    """has already: *ya ha*."""
    subject = anybody(draw)
    return ended(clause(subject, finished(draw, subject), "perfect", adverb=ALREADY))


def not_yet(draw: Draw) -> Phrase:
    """hasn't … yet: *todavía no ha …*."""
    subject = anybody(draw)
    action = finished(draw, subject)
    said = clause(subject, action, "perfect", negated=True)
    in_spanish = f"{subject.spanish} todavía {without_subject(said, subject)}"
    return statement(f"{said.english} yet", in_spanish, said)


def without_subject(said: Phrase, subject: NounPhrase) -> str:
    """The Spanish of a clause after its subject."""
    return said.spanish.removeprefix(subject.spanish).strip()


def standing(action: Action) -> bool:
    """What one does all the time or not at all, and hardly never."""
    always = action.english == "work" or action.english.startswith(("live ", "work at ", "work in ", "drink water"))
    return always or action.spanish in NEVER_DONE


def perfect_never(draw: Draw) -> Phrase:
    """has never: *nunca ha*."""
    subject = anybody(draw)
    action = draw.pick((habit(draw, subject), lasting(draw, habitual=True), lasting(draw)))
    if standing(action):
        return perfect_never(draw)
    return ended(clause(subject, action, "perfect", adverb=NEVER))


def progressive(draw: Draw) -> Phrase:
    subject = anybody(draw)
    ending = draw.pick(times("progressive")) if draw.chance(40) else None
    action = process(draw, subject)
    if action.spanish in ("dormir", "roncar") and subject.slot in (YO, NOSOTROS):
        return progressive(draw)
    return told(subject, action, "progressive", draw.chance(15), ending)


def past_progressive(draw: Draw) -> Phrase:
    subject = anybody(draw)
    return told(subject, process(draw, subject), "past progressive", draw.chance(15))


def interrupted(draw: Draw) -> Phrase:
    """When Ana arrived, I was cooking: *cuando llegó Ana, …*, the preterite inside the imperfect."""
    subject, other = anybody(draw), draw.pick((person, people))(draw)
    if other.english == subject.english or subject in PRONOUNS:
        return interrupted(draw)
    arrived = clause(other, serving(draw, "arrival"), "preterite")
    going_on = clause(subject, serving(draw, "at home"), "past progressive")
    verb_first = f"{without_subject(arrived, other)} {other.spanish}"
    return statement(
        f"when {arrived.english}, {going_on.english}", f"cuando {verb_first}, {going_on.spanish}", arrived, going_on
    )


# ----------------------------------------------------------------------------------------------------------- negation

NOBODY: Final = NounPhrase("nobody", "nadie")
EVERYBODY: Final = NounPhrase("everybody", "todo el mundo")
SOMEBODY: Final = NounPhrase("somebody", "alguien")


def never(draw: Draw) -> Phrase:
    subject = anybody(draw)
    action = habit(draw, subject)
    if standing(action):
        return never(draw)
    return ended(clause(subject, action, draw.pick(("present", "present", "future")), adverb=NEVER))


def always(draw: Draw) -> Phrase:
    subject = anybody(draw)
    action = habit(draw, subject)
    return always(draw) if "s" in action.aspects else ended(clause(subject, action, "present", adverb=ALWAYS))


def nobody(draw: Draw) -> Phrase:
    """Nobody as subject: *nadie* before the verb, with no other negation."""
    tense = draw.pick(("present", "preterite", "future", "perfect"))
    action = {"present": habit, "perfect": finished}.get(tense, event)(draw, NOBODY)
    return told(NOBODY, action, tense)


def indefinite_person(draw: Draw) -> Phrase:
    """everybody, *todo el mundo*; somebody, *alguien*."""
    if draw.chance(50):
        return told(EVERYBODY, activity(draw, "h"), "present")
    return told(SOMEBODY, event(draw, SOMEBODY), "preterite")


def nobody_as_object(draw: Draw) -> Phrase:
    """didn't see anybody: *no vio a nadie*."""
    action = doing(draw.pick(person_verbs()), NounPhrase("anybody", "nadie"), "a nadie")
    return told(anybody(draw), action, draw.pick(("preterite", "preterite", "present", "future")), negated=True)


OF_ANYTHING: Final = (
    "comer,beber,comprar,vender,leer,escribir,romper,perder,encontrar,buscar,aprender,cocinar,preparar,pedir,usar,"
    "firmar,enviar,recibir,esconder,explicar,entender,olvidar,recordar,ganar,estudiar,limpiar,cambiar,hacer,terminar,"
    "elegir,mover,pagar,ver"
)


def nothing(draw: Draw) -> Phrase:
    """didn't buy anything: *no compró nada*."""
    action = doing(draw.pick(verbs_named(OF_ANYTHING)), NounPhrase("anything", "nada"))
    if draw.chance(40):
        return told(anybody(draw), action, "preterite", True, draw.pick(times("preterite")))
    return told(anybody(draw), action, draw.pick(("preterite", "perfect", "going", "future")), True)


def none(draw: Draw) -> Phrase:
    """didn't read any books: *ningún libro*, singular."""
    verb = draw.pick(
        [one for one in verbs() if one.determiners in ("any", "the", "my", "a") and "l" not in one.aspects]
    )
    possible = [noun for noun in verb.objects if noun.number == "count"]
    if not possible:
        return none(draw)
    head = draw.pick(possible)
    wanted = NounPhrase(f"any {english.plural(head.english)}", phrase(head, "no").spanish, (head.lemma,))
    tense = draw.pick(("preterite", "preterite" if verb.spanish in NEVER_DONE else "perfect", "going"))
    return told(anybody(draw), doing(verb, wanted), tense, negated=True)


def too_or_either(draw: Draw) -> Phrase:
    """too, either: *también, tampoco*, before the verb."""
    subject, tense = anybody(draw), draw.pick(("present", "preterite"))
    action = habit(draw, subject) if tense == "present" else event(draw, subject)
    if draw.chance(50):
        said = clause(subject, action, tense, adverb=("", "también"))
        return statement(f"{said.english} too", said.spanish, said)
    in_english = clause(subject, action, tense, negated=True).english
    said = clause(subject, action, tense, adverb=("", "tampoco"))
    return statement(f"{in_english} either", said.spanish, said)


CONSTRUCTIONS: Final = {
    "present": present,
    "negated present": negated_present,
    "preterite": preterite,
    "negated preterite": negated_preterite,
    "imperfect": imperfect,
    "future": future,
    "negated future": negated_future,
    "ir a": going_to,
    "perfect with ya": already,
    "perfect with todavía no": not_yet,
    "perfect with nunca": perfect_never,
    "progressive": progressive,
    "past progressive": past_progressive,
    "preterite within imperfect": interrupted,
    "nunca": never,
    "siempre": always,
    "nadie as subject": nobody,
    "nadie as object": nobody_as_object,
    "alguien and todo el mundo": indefinite_person,
    "nada": nothing,
    "ningún": none,
    "también and tampoco": too_or_either,
}
