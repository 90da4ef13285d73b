"""Verbs that govern an infinitive or a gerund, and verbs of persons: *querer, tener que, acabar de, conocer*."""

import functools
from typing import Final

from data.phrasebook import english, spanish
from data.phrasebook.clauses import (
    Action,
    act,
    action_of,
    clause,
    dated_activity,
    doing,
    finished,
    may_meet,
    ongoing,
    plan,
    process,
    statement,
    to_person,
    told,
    transitive,
)
from data.phrasebook.draw import Draw
from data.phrasebook.lexicon import descriptions, predicates, select, verb
from data.phrasebook.nounphrases import NounPhrase, Phrase, anybody, person, phrase


def governing(subject: NounPhrase, action: Action, in_english: str, infinitive: str, link: str = "") -> Action:
    """A verb before another, whose reflexive goes with the subject: *tengo que levantarme*."""
    whole = f"{link} {spanish.infinitive_of(action.spanish, subject.slot)} {action.rest}"
    return act(f"{in_english} {action.english}", infinitive, " ".join(whole.split()), *action.lemmas)


GOVERNING: Final = (
    ("necesitar", "need to", "", "present"),
    ("preferir", "prefer to", "", "present"),
    ("esperar", "hope to", "", "present"),
    ("decidir", "decide to", "", "preterite"),
    ("intentar", "try to", "", "preterite"),
    ("prometer", "promise to", "", "preterite"),
    ("empezar", "begin to", "a", "preterite"),
    ("olvidar", "forget to", "", "preterite"),
)


def other_governing(draw: Draw) -> Phrase:
    subject, (infinitive, in_english, link, tense) = anybody(draw), draw.pick(GOVERNING)
    action = process(draw, subject) if infinitive == "empezar" else plan(draw, subject)
    negated = infinitive == "necesitar" and draw.chance(25)
    return told(subject, governing(subject, action, in_english, infinitive, link), tense, negated)


def want(draw: Draw) -> Phrase:
    """wants to, *quiere*; wanted to, a state, *quería*."""
    subject = anybody(draw)
    action = plan(draw, subject)
    whole, negated = governing(subject, action, "want to", "querer"), draw.chance(25)
    if draw.chance(65):
        return told(subject, whole, "present", negated)
    in_english = clause(subject, whole, "preterite", negated).english
    return statement(in_english, clause(subject, whole, "imperfect", negated).spanish, subject, whole)


def have_to(draw: Draw) -> Phrase:
    subject, tense = anybody(draw), draw.pick(("present", "present", "preterite", "future"))
    whole = governing(subject, plan(draw, subject), "have to", "tener", "que")
    return told(subject, whole, tense, tense == "present" and draw.chance(30))


def modal(draw: Draw) -> Phrase:
    """can, can't: *poder*; should: *debería*."""
    subject = anybody(draw)
    in_english, infinitive, tense = draw.pick(
        (("can", "poder", "present"), ("can't", "poder", "present"), ("should", "deber", "conditional"))
    )
    action = plan(draw, subject)
    said = clause(subject, governing(subject, action, "", infinitive), tense, negated=in_english == "can't")
    return statement(f"{subject.english} {in_english} {action.english}", said.spanish, said)


SKILLED: Final = (
    ("tocar", "the", "instrument"),
    ("hablar", "bare", "language"),
    ("reparar", "a", "device"),
    ("hacer", "a", "pastel,lasaña,cometa,muñeca"),
    ("conducir", "a", "drive"),
    ("dibujar", "a", "animal"),
)


@functools.cache
def skills() -> tuple[Action, ...]:
    """What one can learn to do."""
    plain = [action_of(activity) for activity in predicates("skill")]
    done = [
        doing(verb(infinitive), phrase(head, determiner))
        for infinitive, determiner, objects in SKILLED
        for head in select(objects)
    ]
    played = [
        doing(verb("jugar a"), NounPhrase(head.english, f"el {head.spanish}", (head.lemma,)))
        for head in select("sport")
    ]
    return (*plain, *done, *played)


def know_how(draw: Draw) -> Phrase:
    """knows how to: *saber* with an infinitive."""
    subject = anybody(draw)
    whole = governing(subject, draw.pick(skills()), "know how to", "saber")
    return told(subject, whole, "present", draw.chance(30))


# What has no end of its own, so that nobody has just done it.
ENDLESS: Final = frozenset(
    "estudiar trabajar dormir caminar descansar bailar nadar correr viajar cantar pintar esperar buscar acompañar "
    "jugar montar fumar practicar conducir crecer ahorrar escuchar esquiar patinar coser usar acampar pescar".split()
)


def just_done(draw: Draw) -> Phrase:
    """has just: *acaba de*."""
    subject = anybody(draw)
    action = finished(draw, subject)
    if action.spanish in ENDLESS:
        return just_done(draw)
    said = clause(subject, governing(subject, action, "", "acabar", "de"), "present")
    auxiliary, participle = english.auxiliary_and_verb(action.english, "perfect", subject.english_slot)
    return statement(f"{subject.english} {auxiliary} just {participle}", said.spanish, said)


def again(draw: Draw) -> Phrase:
    """does it again: *vuelve a*."""
    subject, action = anybody(draw), draw.pick((dated_activity(draw), transitive(draw, "p")))
    tense = draw.pick(("preterite", "future", "going"))
    said = clause(subject, governing(subject, action, "", "volver", "a"), tense)
    return statement(f"{clause(subject, action, tense).english} again", said.spanish, said)


def keep_doing(draw: Draw) -> Phrase:
    """keeps looking: *sigue buscando*."""
    subject = anybody(draw)
    action = ongoing(draw, subject)
    if action.spanish.endswith("se"):
        return keep_doing(draw)
    kept = f"keep {english.verb_form(action.english, 'gerund')}"
    whole = act(kept, "seguir", f"{spanish.gerund(action.spanish)} {action.rest}".strip(), *action.lemmas)
    return told(subject, whole, draw.pick(("present", "preterite", "future")))


def stop_doing(draw: Draw) -> Phrase:
    """stopped smoking: *dejó de fumar*; the English gerund is a Spanish infinitive."""
    subject = anybody(draw)
    action = ongoing(draw, subject)
    stopped = f"stop {english.verb_form(action.english, 'gerund')}"
    rest = governing(subject, action, "", "dejar", "de").rest
    return told(subject, act(stopped, "dejar", rest, *action.lemmas), draw.pick(("preterite", "going", "future")))


# -------------------------------------------------------------------------------- persons, and what one wears


def personal_a(draw: Draw) -> Phrase:
    """Persons as objects have *a*."""
    subject = anybody(draw)
    action = to_person(draw, other_than=subject)
    tenses = ("preterite",) if "x" in action.aspects else ("preterite", "going", "future")
    return told(subject, action, draw.pick(tenses))


KNOWN: Final = "ciudad,barrio,pueblo,isla,museo,restaurante,hotel,playa,mercado,plaza,parque,tienda,bosque,castillo"


def acquainted(draw: Draw) -> Phrase:
    """*conocer*: to know a person, with *a*, or a place, without."""
    subject, target = anybody(draw), person(draw)
    if not may_meet(subject, target):
        return acquainted(draw)
    action = act(f"know {target.english}", "conocer", target.personal, target)
    if draw.chance(40):
        place = phrase(draw.pick(select(KNOWN)), draw.pick(("this", "that")))
        action = act(f"know {place.english}", "conocer", place.spanish, place)
    return told(subject, action, "present", draw.chance(35))


def wearing(draw: Draw) -> Phrase:
    """is wearing: the simple *lleva*."""
    subject, head = anybody(draw), draw.pick(select("clothing,paired,gafas,collar,anillo,reloj,pulsera,mochila"))
    if subject.plural and not head.several and head.number != "plural":
        return wearing(draw)
    adjective = draw.pick(descriptions(head)) if descriptions(head) and draw.chance(80) else None
    clothes = phrase(head, "a", head.several, adjective)
    whole = act(f"wear {clothes.english}", "llevar", clothes.spanish, clothes)
    in_english = clause(subject, whole, "progressive").english
    return statement(in_english, clause(subject, whole, "present").spanish, subject, whole)


CONSTRUCTIONS: Final = {
    "querer with infinitive": want,
    "tener que": have_to,
    "verb with infinitive": other_governing,
    "poder and deber": modal,
    "saber with infinitive": know_how,
    "acabar de": just_done,
    "volver a": again,
    "seguir with gerund": keep_doing,
    "dejar de": stop_doing,
    "personal a": personal_a,
    "conocer": acquainted,
    "llevar": wearing,
}
