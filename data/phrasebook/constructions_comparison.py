"""More, less, as much, the most: comparatives and superlatives of people, things and quantities."""

from typing import Final

from data.phrasebook import english, spanish
from data.phrasebook.clauses import act, statement, told
from data.phrasebook.constructions_description import JUDGED, TENSES, described_thing
from data.phrasebook.draw import Draw
from data.phrasebook.lexicon import Adjective, Noun, adjectives, countable, names, nouns, table
from data.phrasebook.nounphrases import (
    HE,
    SHE,
    THEY,
    WE,
    I,
    NounPhrase,
    Phrase,
    anybody,
    couple,
    named,
    numbered,
    peer,
    people,
    phrase,
)

PRONOUNS: Final = {
    I: ("me", "yo"),
    WE: ("us", "nosotros"),
    HE: ("him", "él"),
    SHE: ("her", "ella"),
    THEY: ("them", "ellos"),
}
GRADABLE: Final = ("er", "more")


def other_than(draw: Draw, subject: NounPhrase) -> Phrase:
    """Whom the subject is compared with: than Pedro, than me."""
    if draw.chance(25):
        itself = (I, WE) if subject.slot in (I.slot, WE.slot) else (subject,)
        return Phrase(*PRONOUNS[draw.pick([one for one in PRONOUNS if one not in itself])])
    chosen = peer(draw)
    return chosen if chosen.english != subject.english else other_than(draw, subject)


def gradable(draw: Draw, copula: str = "ser") -> Adjective:
    return draw.pick([one for one in adjectives(copula, "human") if one.degree in GRADABLE])


def compared(
    subject: NounPhrase, frame: tuple[str, str], adjective: Adjective, other: Phrase, tense: str, negated: bool
) -> Phrase:
    """A sentence from frames such as ("as tall as", "tan {} como"), with the adjective's agreement filled in."""
    described = frame[1].format(subject.agree(adjective.spanish))
    rest = f"{described} {other.spanish}"
    action = act(f"be {frame[0]} {other.english}", adjective.copula, rest, adjective.spanish, other)
    return told(subject, action, tense, negated)


def more(adjective: Adjective) -> tuple[str, str]:
    return f"{english.comparative(adjective.english, adjective.degree)} than", "más {} que"


def more_than(draw: Draw) -> Phrase:
    """taller than: *más alta que*."""
    subject, adjective = draw.pick((peer, peer, people))(draw), gradable(draw)
    return compared(subject, more(adjective), adjective, other_than(draw, subject), draw.pick(TENSES), False)


def as_as(draw: Draw) -> Phrase:
    """as tall as: *tan alta como*."""
    subject, adjective = draw.pick((peer, peer, people))(draw), gradable(draw, draw.pick(("ser", "ser", "estar")))
    frame = (f"as {adjective.english} as", "tan {} como")
    return compared(subject, frame, adjective, other_than(draw, subject), draw.pick(TENSES), draw.chance(40))


def less_than(draw: Draw) -> Phrase:
    """The train is less expensive than the plane: *menos caro que*."""
    first, second, adjective = alike(draw)
    subject = phrase(first, "the", numbered(draw, first, 20))
    other = phrase(second, "the", second.several)
    return compared(subject, (f"less {adjective.english} than", "menos {} que"), adjective, other, "present", False)


def alike(draw: Draw) -> tuple[Noun, Noun, Adjective]:
    """Two things of one kind and what they may be compared in."""
    while True:
        adjective = draw.pick([one for one in adjectives("ser") if one.degree == "more" and one.things])
        things = [noun for noun in adjective.things if noun.number == "count"]
        first = draw.pick(things or [*adjective.things])
        others = [noun for noun in things if noun != first and noun.kinds & first.kinds - {"in", "at", "colorable"}]
        if others:
            return first, draw.pick(others), adjective


def gradable_thing(draw: Draw) -> tuple[Noun, Adjective]:
    while True:
        head, adjective = described_thing(draw, "ser")
        if adjective.degree in GRADABLE and head.number == "count":
            return head, adjective


def this_than_that(draw: Draw) -> Phrase:
    """This hat is prettier than that one: *este … que ese*."""
    head, adjective = gradable_thing(draw)
    near, far = draw.pick((("this", "that"), ("that", "this")))
    subject = phrase(head, near, numbered(draw, head, 20))
    determiner = phrase(head, far, subject.plural)
    one = {"this": "these", "that": "those"}[far] if subject.plural else f"{far} one"
    other = Phrase(one, determiner.spanish.split()[0])
    return compared(subject, more(adjective), adjective, other, "present", False)


BETTER: Final = (Adjective("mejor", "better", "ser", "-", ()), Adjective("peor", "worse", "ser", "-", ()))
OLDER: Final = (Adjective("mayor", "older", "ser", "-", ()), Adjective("menor", "younger", "ser", "-", ()))


def irregular_comparative(draw: Draw) -> Phrase:
    """better, worse, older, younger: *mejor, peor, mayor, menor*."""
    if draw.chance(55):
        subject, adjective = draw.pick((peer, peer, couple))(draw), draw.pick(OLDER)
        other = other_than(draw, subject)
    else:
        head, adjective = draw.pick(countable(f"{JUDGED},dish,instrument,drive,device")), draw.pick(BETTER)
        subject = phrase(head, "this", draw.chance(25))
        article = phrase(head, "the", subject.plural).spanish.split()[0]
        other = Phrase("the other ones" if subject.plural else "the other one", f"{article} {subject.agree('otro')}")
    return compared(subject, (f"{adjective.english} than", "{} que"), adjective, other, "present", False)


def superlative(draw: Draw) -> Phrase:
    """the tallest pupil in the class: *la alumna más alta de la clase*."""
    place_english, place_spanish, members = draw.pick(table("groups"))
    feminine, wanted = draw.chance(50), frozenset(members.split(","))
    member = draw.pick([noun for noun in nouns() if noun.feminine == feminine and noun.matches(wanted)])
    adjective, top = gradable(draw), phrase(member)
    best = english.superlative(adjective.english, adjective.degree)
    in_spanish = f"{top.spanish} más {top.agree(adjective.spanish)} {place_spanish}"
    action = act(f"be the {best} {member.english} {place_english}", "ser", in_spanish, top, adjective.spanish)
    return told(named(draw.pick(names(feminine)), feminine), action, draw.pick(TENSES))


def superlative_of_things(draw: Draw) -> Phrase:
    """This is the longest novel I know: *la novela más larga que conozco*."""
    head, adjective = gradable_thing(draw)
    one, this = phrase(head), "esta" if head.feminine else "este"
    best = english.superlative(adjective.english, adjective.degree)
    every = "todas" if head.feminine else "todos"
    of_what = draw.pick((("of all", f"de {every}"), ("in the world", "del mundo"), ("I know", "que conozco")))
    return statement(
        f"this is the {best} {head.english} {of_what[0]}",
        f"{this} es {one.spanish} más {one.agree(adjective.spanish)} {of_what[1]}",
        one,
        adjective.spanish,
        "ser",
    )


POSSESSED: Final = (
    "libro,novela,revista,cuento,poema,mapa,receta,cómic,diccionario,clothing,paired,stationery,toy,pet,decor,plant,"
    "jewel"
)


def more_things(draw: Draw) -> Phrase:
    """more books than: *más libros que*; as many as: *tantos … como*."""
    subject, head = anybody(draw), draw.pick(countable(POSSESSED))
    other = other_than(draw, subject)
    many, muchos = english.plural(head.english), spanish.plural(head.spanish)
    so_many = "tantas" if head.feminine else "tantos"
    frames = (
        (f"more {many} than", f"más {muchos} que"),
        (f"fewer {many} than", f"menos {muchos} que"),
        (f"as many {many} as", f"{so_many} {muchos} como"),
    )
    frame = draw.pick(frames)
    rest = f"{frame[1]} {other.spanish}"
    return told(subject, act(f"have {frame[0]} {other.english}", "tener", rest, head.lemma, other), "present")


CONSTRUCTIONS: Final = {
    "comparative": more_than,
    "comparative of things": this_than_that,
    "comparative with menos": less_than,
    "equality": as_as,
    "irregular comparative": irregular_comparative,
    "superlative": superlative,
    "superlative of things": superlative_of_things,
    "comparison of quantities": more_things,
}
