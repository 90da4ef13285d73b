"""Two things or two qualities: and, or, but; and what is for somebody, *para*, or thanked for, *por*."""

from typing import Final

from data.phrasebook import spanish
from data.phrasebook.clauses import act, asked, clause, doing, may_meet, question, statement, told
from data.phrasebook.constructions_clauses import same_again, speaker
from data.phrasebook.draw import Draw
from data.phrasebook.lexicon import Noun, adjectives, select, table, verbs, verbs_named
from data.phrasebook.nounphrases import (
    HE,
    SHE,
    YOU,
    NounPhrase,
    Phrase,
    anybody,
    name,
    phrase,
    relative,
    stranger,
    thing,
)

OF_TWO: Final = "comer,beber,comprar,estudiar,enseñar,aprender,hablar,lavar,vender,pedir,pelar,cortar,tocar"


def in_number(head: Noun, determiner: str) -> NounPhrase:
    """The noun in the number in which one has it: shoes, but a hat."""
    return phrase(head, determiner, head.several)


LOOSE: Final = frozenset({"food", "small", "small_gift", "colorable", "portable", "repair", "breakable", "openable"})


def akin(first: Noun, second: Noun) -> bool:
    """Whether two things may be named in one breath: bread and cheese, a skirt and a shirt."""
    alike = first.kinds & second.kinds - LOOSE and (first.number == "mass") == (second.number == "mass")
    return bool(alike) and first.english != second.english


def and_things(draw: Draw) -> Phrase:
    """bread and cheese; *e* before the sound i: *español e inglés*."""
    verb = draw.pick(verbs_named(OF_TWO))
    first, second = draw.pick(verb.objects), draw.pick(verb.objects)
    if not akin(first, second):
        return and_things(draw)
    determiner = {"bare": "bare", "any": "a"}.get(verb.determiners, "the")
    one, other = in_number(first, determiner), in_number(second, determiner)
    joined = spanish.conjoined(one.spanish, other.spanish)
    whole = act(f"{verb.english} {one.english} and {other.english}", verb.spanish, joined, one, other)
    known = "progressive" if verb.spanish == "aprender" else "present"
    return told(anybody(draw), whole, known if determiner == "bare" else draw.pick(("preterite", "preterite", "going")))


def clash(first: str, second: str) -> bool:
    """Whether nobody is both."""
    return [first, second] in table("opposites") or [second, first] in table("opposites")


def and_qualities(draw: Draw) -> Phrase:
    """tall and strong; *alta e inteligente*."""
    subject, copula = anybody(draw), draw.pick(("ser", "ser", "estar"))
    first, second = draw.pick(adjectives(copula, "human")), draw.pick(adjectives(copula, "human"))
    if first == second or clash(first.english, second.english):
        return and_qualities(draw)
    joined = spanish.conjoined(subject.agree(first.spanish), subject.agree(second.spanish))
    whole = act(f"be {first.english} and {second.english}", copula, joined, first.spanish, second.spanish)
    return told(subject, whole, draw.pick(("present", "present", "imperfect")))


GOOD: Final = frozenset(
    "kind nice intelligent funny generous honest hardworking strong brave patient polite optimistic responsible "
    "careful creative cheerful punctual wise famous rich talented".split()
)
BAD: Final = frozenset("shy lazy poor weak selfish stubborn clumsy pessimistic absent-minded".split())


def but(draw: Draw) -> Phrase:
    """intelligent but lazy."""
    subject, sides = anybody(draw), draw.pick(((GOOD, BAD), (BAD, GOOD)))
    first, second = (draw.pick([one for one in adjectives("ser", "human") if one.english in side]) for side in sides)
    if clash(first.english, second.english):
        return but(draw)
    joined = f"{subject.agree(first.spanish)} pero {subject.agree(second.spanish)}"
    whole = act(f"be {first.english} but {second.english}", "ser", joined, first.spanish, second.spanish)
    return told(subject, whole, draw.pick(("present", "present", "imperfect")))


def but_not(draw: Draw) -> Phrase:
    """He bought bread, but he didn't buy milk."""
    subject = speaker(draw)
    verb = draw.pick([one for one in verbs() if one.determiners in ("any", "the") and "l" not in one.aspects])
    first, second = draw.pick(verb.objects), draw.pick(verb.objects)
    if not akin(first, second):
        return but_not(draw)
    bare = verb.determiners == "any"
    one, other = (
        doing(verb, phrase(head, "bare", True) if bare else in_number(head, "the")) for head in (first, second)
    )
    done, left = clause(subject, one, "preterite"), clause(same_again(subject), other, "preterite", negated=True)
    return statement(f"{done.english}, but {left.english}", f"{done.spanish}, pero {left.spanish}", done, left)


# ------------------------------------------------------------------------------------------------------ alternatives

OBJECTS: Final = (("want", "querer", "present"), ("need", "necesitar", "present"), ("buy", "comprar", "preterite"))
TASTES: Final = (("want", "querer", "present"), ("prefer", "preferir", "present"))
SEEING: Final = (("see", "ver", "preterite"), ("prefer", "preferir", "present"))
CHOICES: Final = (
    ("drink", "a", TASTES),
    ("fruit", "a", OBJECTS),
    ("vegetable", "a", OBJECTS),
    ("dish", "a", TASTES),
    ("snack", "a", OBJECTS),
    ("clothing", "a", OBJECTS),
    ("stationery", "a", OBJECTS),
    ("instrument", "a", OBJECTS),
    ("device", "a", OBJECTS),
    ("tool", "a", OBJECTS),
    ("plant", "a", OBJECTS),
    ("jewel", "a", OBJECTS),
    ("wild", "a", SEEING[:1]),
    ("farm", "a", SEEING[:1]),
    ("sport", "the", TASTES[1:]),
    ("season", "the", TASTES[1:]),
    ("subject", "bare", (("study", "estudiar", "present"),)),
    ("language", "bare", (("speak", "hablar", "present"),)),
)


def either(draw: Draw) -> Phrase:
    """Do you want tea or coffee? *o*, and *u* before the sound o."""
    kind, determiner, frames = draw.pick(CHOICES)
    first, second = draw.pick(select(kind)), draw.pick(select(kind))
    if first == second:
        return either(draw)
    one, other = in_number(first, determiner), in_number(second, determiner)
    in_english, infinitive, tense = draw.pick(frames)
    subject = draw.pick((YOU, YOU, HE, SHE, relative(draw, ("your",)), name(draw)))
    said = asked(subject, act(in_english, infinitive), tense, yes_no=True)
    joined = spanish.disjoined(one.spanish, other.spanish)
    return question(f"{said.english} {one.english} or {other.english}", f"{said.spanish} {joined}", said, one, other)


# -------------------------------------------------------------------------------------------------------- para and por

PRESENTS: Final = (
    "gift,clothing,paired,jewel,libro,revista,carta,flor,pastel,stationery,fruit,bolsa,cartera,mochila,taza"
)
BRINGING: Final = (("buy", "comprar", "preterite"), ("have", "tener", "present"), ("bring", "traer", "preterite"))


def for_somebody(draw: Draw) -> Phrase:
    """This gift is for my mother: *para*."""
    whom = draw.pick((name, relative, relative, stranger))(draw)
    if draw.chance(60):
        present = thing(draw, PRESENTS, ("this", "this", "that", "the"))
        return told(
            present, act(f"be for {whom.english}", "ser", f"para {whom.spanish}", whom), "present", draw.chance(25)
        )
    subject, present = speaker(draw), in_number(draw.pick(select(PRESENTS)), "a")
    if not may_meet(subject, whom):
        return for_somebody(draw)
    in_english, infinitive, tense = draw.pick(BRINGING)
    rest = f"{present.spanish} para {whom.spanish}"
    return told(
        subject, act(f"{in_english} {present.english} for {whom.english}", infinitive, rest, present, whom), tense
    )


THANKED_FOR: Final = (
    "gift,libro,revista,carta,mensaje,receta,poema,drink,flor,jewel,clothing,paired,dish,comida,cena,respuesta,idea,"
    "canción,decor,stationery,galleta,caramelo,foto,postal,invitación"
)


def thanks(draw: Draw) -> Phrase:
    """Thank you for the gift: *gracias por*."""
    given = thing(draw, THANKED_FOR, described=25)
    much, mucho = draw.pick((("thank you", "gracias"), ("thank you very much", "muchas gracias")))
    return statement(f"{much} for {given.english}", f"{mucho} por {given.spanish}", given)


CONSTRUCTIONS: Final = {
    "y and e": and_things,
    "y and e, adjectives": and_qualities,
    "o and u": either,
    "pero": but,
    "pero no": but_not,
    "para": for_somebody,
    "gracias por": thanks,
}
