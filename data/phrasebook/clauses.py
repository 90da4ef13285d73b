"""Predicates and clauses: who does what, when, and whether; as a statement or a question."""

import functools
import re
from dataclasses import dataclass
from typing import Final

from data.phrasebook import english, spanish
from data.phrasebook.draw import Draw
from data.phrasebook.lexicon import (
    Activity,
    Adjective,
    Verb,
    activities,
    descriptions,
    nouns,
    person_verbs,
    predicates,
    table,
    verbs,
)
from data.phrasebook.nounphrases import (
    HE,
    PERSONAL,
    SHE,
    THEY,
    NounPhrase,
    Phrase,
    distinguishing,
    name,
    numbered,
    person,
    phrase,
    relative,
)

Made = Phrase | str
NEVER: Final = ("never", "nunca")
ALREADY: Final = ("already", "ya")
ALWAYS: Final = ("always", "siempre")


@dataclass(frozen=True)
class Action(Phrase):
    """A predicate; English and Spanish begin with the verb's base and the infinitive: buy a car, *comprar* a car."""

    rest: str = ""
    aspects: str = ""

    @property
    def infinitive(self) -> str:
        """The whole predicate: comprar un coche."""
        return f"{self.spanish} {self.rest}".rstrip()


# ---------------------------------------------------------------------------------------------------- whole sentences


def lemmas_of(parts: tuple[Made, ...]) -> tuple[str, ...]:
    found = [lemma for part in parts for lemma in ((part,) if isinstance(part, str) else part.lemmas)]
    return tuple(dict.fromkeys(found))


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def statement(in_english: str, in_spanish: str, *parts: Made) -> Phrase:
    """A sentence with its full stop; ``parts`` are what it is made of, for its lemmas."""
    in_spanish = spanish.contracted(" ".join(in_spanish.split()))
    return Phrase(_capital(" ".join(in_english.split())) + ".", _capital(in_spanish) + ".", lemmas_of(parts))


def question(in_english: str, in_spanish: str, *parts: Made) -> Phrase:
    said = statement(in_english, in_spanish, *parts)
    return Phrase(said.english[:-1] + "?", f"¿{said.spanish[:-1]}?", said.lemmas)


def exclamation(in_english: str, in_spanish: str, *parts: Made) -> Phrase:
    said = statement(in_english, in_spanish, *parts)
    return Phrase(said.english[:-1] + "!", f"¡{said.spanish[:-1]}!", said.lemmas)


def sequence(*sentences: Phrase) -> Phrase:
    """Sentences one after the other."""
    joined_english, joined_spanish = (" ".join(s.english for s in sentences), " ".join(s.spanish for s in sentences))
    return Phrase(joined_english, joined_spanish, lemmas_of(sentences))


# ---------------------------------------------------------------------------------------------------------- predicates


@functools.cache
def surface_forms() -> dict[str, str]:
    """The lemma of each form of a noun."""
    return {form: noun.lemma for noun in nouns() for form in (noun.spanish, spanish.plural(noun.spanish))}


@functools.cache
def predicate(spanish_words: str, english_words: str) -> Action:
    """A predicate said in full in both languages: predicate("hacer la cama", "make the bed")."""
    return action_of(Activity(spanish_words, english_words, ""))


@functools.cache
def action_of(activity: Activity) -> Action:
    verb, _, rest = activity.spanish.partition(" ")
    found = (surface_forms()[word] for word in rest.split() if word in surface_forms())
    return Action(activity.english, verb, (verb.removesuffix("se"), *found), rest, activity.aspects)


def serving(draw: Draw, use: str) -> Action:
    """A predicate made for one construction."""
    return action_of(draw.pick(predicates(use)))


def activity(draw: Draw, aspect: str = "") -> Action:
    """A ready-made predicate."""
    return action_of(draw.pick(activities(aspect)))


def dated_activity(draw: Draw) -> Action:
    """One that can be said of a single day."""
    return action_of(draw.pick([one for one in activities() if "s" not in one.aspects]))


# By the verb's determiners: a thing that is bought or eaten is new to the hearer, one that is cleaned is known.
BEFORE_OBJECT: Final = {
    "any": ("the", "a", "a"),
    "a": ("a",),
    "the": ("the", "the", "the", "this", "my"),
    "my": ("my", "my", "the", "our"),
    "pl": ("the",),
    "one": ("the",),
}


def object_of(draw: Draw, verb: Verb, described: int = 30, habitual: bool = False) -> NounPhrase:
    """Something that the verb may be done to; by habit, to many of a kind: writes letters, *escribe cartas*."""
    head = draw.pick(verb.objects)
    if habitual and verb.determiners in ("a", "any", "pl"):
        return phrase(head, "bare", plural=True)
    if verb.determiners == "one":
        return phrase(head)
    if verb.determiners == "bare":
        return phrase(head, "bare")
    if verb.determiners == "sport":
        return NounPhrase(head.english, f"el {head.spanish}", (head.lemma,), head=head)
    determiner = draw.pick(BEFORE_OBJECT[verb.determiners])
    if (determiner == "my" and not head.kinds & PERSONAL) or (determiner == "a" and head.several):
        determiner = "the"
    plural = verb.determiners == "pl" or (determiner != "a" and numbered(draw, head))
    possible = descriptions(head) if determiner == "a" else distinguishing(head)
    adjective = draw.pick(possible) if possible and draw.chance(described) else None
    return phrase(head, determiner, plural, adjective)


def doing(verb: Verb, target: NounPhrase, target_spanish: str = "") -> Action:
    """The verb with its object; a verb like *jugar a* keeps its preposition."""
    infinitive, _, preposition = verb.spanish.partition(" ")
    rest = f"{preposition} {target_spanish or target.spanish}".strip()
    lemmas = (infinitive, *target.lemmas)
    return Action(separated(verb.english, target.english), infinitive, lemmas, rest, verb.aspects)


PARTICLES: Final = ("on", "off", "up", "away")


def separated(verb: str, target: str) -> str:
    """The verb with its object: put the cups away, but turn on the light and look for the keys."""
    first, _, particle = verb.rpartition(" ")
    return f"{first} {target} {particle}" if particle == "away" else f"{verb} {target}"


def transitive(draw: Draw, aspect: str = "") -> Action:
    """Something done to a thing."""
    verb = draw.pick([one for one in verbs(aspect) if "l" not in one.aspects])
    return doing(verb, object_of(draw, verb, habitual=aspect == "h"))


def ongoing(draw: Draw, subject: NounPhrase) -> Action:
    """Something that may be kept up or given up: playing cards, feeding the hens."""
    chosen = draw.pick((activity(draw, "p"), activity(draw, "p"), transitive(draw, "h"), to_person(draw, "p", subject)))
    return chosen if "p" in chosen.aspects and chosen.spanish != "seguir" else ongoing(draw, subject)


def to_person(draw: Draw, aspect: str = "", other_than: NounPhrase | None = None) -> Action:
    """Something done to a person, who has the personal *a*."""
    acquaintance = (name, relative, relative)
    target = draw.pick(acquaintance if aspect == "h" else (*acquaintance, person))(draw)
    while other_than and not may_meet(other_than, target):
        target = person(draw)
    verb = draw.pick(person_verbs(aspect))
    if verb.spanish == "besar" and not (target.head and "family" in target.head.kinds):
        return to_person(draw, aspect, other_than)
    return doing(verb, target, target.personal)


def may_meet(subject: NounPhrase, target: NounPhrase) -> bool:
    """Whether the one may do something to the other: not we to my aunt, nor I to ours."""
    whose = {"we": "our", "i": "my"}
    words = {whose.get(word, word) for word in subject.english.lower().split()}
    words = {"our"} if subject.plural and subject.english.endswith(" and I") else words
    owner = target.english.split()[0]
    apart = (owner == "my" and "our" in words) or (owner == "our" and "my" in words)
    return subject.english != target.english and not apart


@functools.cache
def masses() -> frozenset[str]:
    """Food and drink without a plural."""
    return frozenset(noun.spanish for noun in nouns() if noun.number == "mass" and noun.kinds & CONSUMED)


CONSUMED: Final = frozenset({"ingredient", "drink", "pantry"})
NEVER_DONE: Final = frozenset({"proteger", "cuidar", "defender", "seguir", "mirar", "observar", "reírse"})
UNDATED: Final = frozenset({"recordar", "olvidar", "reconocer", "conocer"})


def unmeasured(action: Action) -> bool:
    """Whether the object is food or drink without an article: drink juice, *beber jugo*."""
    return action.rest.partition(" ")[0] in masses()


def finished(draw: Draw, subject: NounPhrase) -> Action:
    """Something that may have been done by now, or not yet."""
    while True:
        action = plan(draw, subject)
        if action.spanish not in NEVER_DONE and not unmeasured(action):
            return action


def lasting(draw: Draw, habitual: bool = False) -> Action:
    """Something that takes its time: build a bridge."""
    verb = draw.pick([one for one in verbs() if "l" in one.aspects])
    return doing(verb, object_of(draw, verb, described=15, habitual=habitual or verb.determiners == "pl"))


def plan(draw: Draw, subject: NounPhrase) -> Action:
    """Something that may be meant to happen: nobody plans to lose the keys."""
    while True:
        action = event(draw, subject)
        if "x" not in action.aspects:
            return action


def event(draw: Draw, subject: NounPhrase) -> Action:
    """Something that may happen once, on a day."""
    chosen = draw.pick(("activity", "thing", "thing", "person"))
    if chosen == "activity":
        return dated_activity(draw)
    return transitive(draw) if chosen == "thing" else to_person(draw, other_than=subject)


def habit(draw: Draw, subject: NounPhrase) -> Action:
    """Something that may be done again and again."""
    chosen = draw.pick(("activity", "activity", "thing", "person"))
    if chosen == "activity":
        return activity(draw, "h")
    return transitive(draw, "h") if chosen == "thing" else to_person(draw, "h", subject)


def process(draw: Draw, subject: NounPhrase) -> Action:
    """Something that may be going on now."""
    chosen = draw.pick(("activity", "thing", "thing", "person"))
    if chosen == "activity":
        return activity(draw, "p")
    return transitive(draw, "p") if chosen == "thing" else to_person(draw, "p", subject)


# ------------------------------------------------------------------------------------------------------------- clauses


@functools.cache
def times(tense: str) -> tuple[Phrase, ...]:
    """Adverbials that fit the tense."""
    return tuple(Phrase(en, es) for name, en, es in table("times") if name == tense)


def clause(
    subject: NounPhrase, action: Action, tense: str, negated: bool = False, adverb: tuple[str, str] = ("", "")
) -> Phrase:
    """A clause without capital or stop. The adverb (never, *nunca*) stands before the verb, in English after an
    auxiliary."""
    auxiliary, verb = english.auxiliary_and_verb(action.english, tense, subject.english_slot, emphatic=negated)
    auxiliary = english.negative(auxiliary) if negated else auxiliary
    in_english = " ".join(word for word in (subject.english, auxiliary, adverb[0], verb) if word)
    group = spanish.verb_group(action.spanish, tense, subject.slot)
    words = (subject.spanish, adverb[1], "no" if negated else "", group, action.rest)
    return Phrase(in_english, " ".join(word for word in words if word), (*subject.lemmas, *action.lemmas))


PRONOUNS: Final = (HE, SHE, THEY)


@functools.cache
def animals() -> frozenset[str]:
    """What could be taken for the subject after its verb: not *¿fotografió el oso tu madre?*"""
    return frozenset(noun.lemma for noun in nouns() if "animal" in noun.kinds)


def asked(
    subject: NounPhrase,
    action: Action,
    tense: str,
    negated: bool = False,
    rest_first: bool = False,
    yes_no: bool = False,
) -> Phrase:
    """A question's clause: the subject comes after the auxiliary in English; in Spanish after the verb and what is
    short beside it (*¿Habla español tu tía?*), but a name right after it (*¿Habla Ana español?*). Where yes or no is
    asked, a pronoun comes first (*¿Ella habla …?*), and anybody before *ir a* (*¿Ana va a hablar …?*)."""
    auxiliary, verb = english.auxiliary_and_verb(action.english, tense, subject.english_slot, emphatic=True)
    auxiliary = english.negative(auxiliary) if negated else auxiliary
    group = ("no " if negated else "") + spanish.verb_group(action.spanish, tense, subject.slot)
    noun_subject = subject not in PRONOUNS and not subject.spanish[:1].isupper()
    short = re.fullmatch(r"((el|la|los|las) )?\S+", action.rest) and noun_subject and not animals() & {*action.lemmas}
    light = (rest_first or short) and not subject.formal
    order = [group, action.rest, subject.spanish] if light else [group, subject.spanish, action.rest]
    if yes_no and (subject in PRONOUNS or (tense == "going" and not subject.formal)):
        order = [subject.spanish, group, action.rest]
    in_spanish = " ".join(word for word in order if word)
    in_english = " ".join(word for word in (auxiliary, subject.english, verb) if word)
    return Phrase(in_english, in_spanish, (*subject.lemmas, *action.lemmas))


def being(copula: str, adjective: Adjective, subject: NounPhrase) -> Action:
    """be tired, *estar* cansado, agreeing."""
    described = subject.agree(adjective.spanish)
    return Action(f"be {adjective.english}", copula, (copula, adjective.spanish), described)


def act(in_english: str, infinitive: str, rest: str = "", *parts: Made) -> Action:
    """Any predicate, said in full: act("have a dog", "tener", "un perro", "perro")."""
    return Action(in_english, infinitive, (infinitive.removesuffix("se"), *lemmas_of(parts)), rest)


def ended(said: Phrase, ending: Phrase | None = None, *parts: Made) -> Phrase:
    """A clause made a statement, with an adverbial at its end."""
    ending = ending or Phrase("", "")
    return statement(f"{said.english} {ending.english}", f"{said.spanish} {ending.spanish}", said, ending, *parts)


def told(
    subject: NounPhrase, action: Action, tense: str, negated: bool = False, ending: Phrase | None = None
) -> Phrase:
    """A statement of one clause."""
    return ended(clause(subject, action, tense, negated), ending)


def is_so(subject: NounPhrase, adjective: Adjective, tense: str = "present", negated: bool = False) -> Phrase:
    """A statement of what somebody or something is like."""
    return told(subject, being(adjective.copula, adjective, subject), tense, negated)
