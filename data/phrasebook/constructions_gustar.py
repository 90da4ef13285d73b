"""Verbs like *gustar*: what pleases is the subject, and the person stands as *a María le …*."""

from typing import Final

from data.phrasebook import english, spanish
from data.phrasebook.clauses import Action, act, activity, clause, question, statement
from data.phrasebook.constructions_pronouns import own
from data.phrasebook.draw import Draw
from data.phrasebook.lexicon import adjectives, countable, select
from data.phrasebook.nounphrases import (
    HE,
    OBJECT_ENGLISH,
    SHE,
    THEY,
    WE,
    YOU,
    I,
    NounPhrase,
    Phrase,
    name,
    numbered,
    phrase,
    relative,
    thing,
)
from data.phrasebook.numerals import number
from data.phrasebook.spanish import EL

DATIVES: Final = ("me", "te", "le", "nos", "les")


def experiencer(draw: Draw) -> NounPhrase:
    """Who likes it."""
    return draw.pick((I, I, YOU, WE, HE, SHE, THEY, name(draw), name(draw), relative(draw)))


def pleasing(who: NounPhrase, infinitive: str, what: NounPhrase, negated: bool = False, tense: str = "present") -> str:
    """The Spanish clause: *a María no le gustan los gatos*."""
    whom = f"a {who.spanish}" if who.spanish else ""
    verb = spanish.conjugate(infinitive, tense, what.slot)
    words = (whom, "no" if negated else "", DATIVES[who.slot], verb, what.spanish)
    return " ".join(word for word in words if word)


def liked(who: NounPhrase, in_english: str, infinitive: str, what: NounPhrase, negated: bool = False) -> Phrase:
    """The English with the person as subject, the Spanish with the thing."""
    said = clause(who, act(f"{in_english} {what.english}", infinitive), "present", negated).english
    return statement(said, pleasing(who, infinitive, what, negated), who, what, infinitive)


def kind_of_thing(draw: Draw, selectors: str) -> NounPhrase:
    """A kind of thing: English has no article, Spanish has."""
    head = draw.pick(select(selectors))
    generic = phrase(head, "the", head.number == "count")
    in_english = generic.english.removeprefix("the ")
    return NounPhrase(in_english, generic.spanish, generic.lemmas, generic.slot, generic.feminine)


KINDS: Final = (
    "fruit,vegetable,snack,ingredient,drink,sport,subject,hobby,pet,song,watchable,ciencia,museo,jardín,playa,montaña,"
    "language"
)
SEEN: Final = "clothing,paired,coche,libro,novela,poema,decor,dish,home,ciudad,canción,película"


def gustar(draw: Draw) -> Phrase:
    """She likes cats, this dress."""
    what = kind_of_thing(draw, KINDS) if draw.chance(60) else thing(draw, SEEN, ("this", "that", "your"), 30)
    return liked(experiencer(draw), "like", "gustar", what, draw.chance(30))


def encantar(draw: Draw) -> Phrase:
    what = kind_of_thing(draw, KINDS) if draw.chance(60) else thing(draw, SEEN, ("this", "that", "your"), 30)
    return liked(experiencer(draw), "love", "encantar", what)


INTERESTING: Final = "subject,ciencia,museo,leyenda,volcán,estrella,wild,poema,novela,documental,hobby"


def interesar(draw: Draw) -> Phrase:
    """is interested in: *le interesa*; is fascinated by: *le fascina*."""
    who, what = experiencer(draw), kind_of_thing(draw, INTERESTING)
    if draw.chance(50):
        return liked(who, "be fascinated by", "fascinar", what)
    return liked(who, "be interested in", "interesar", what, draw.chance(25))


def whole(action: Action) -> NounPhrase:
    """An infinitive as what pleases."""
    return NounPhrase(action.english, action.infinitive, action.lemmas)


def gustar_infinitive(draw: Draw) -> Phrase:
    """I like to swim: *me gusta nadar*; would like to: *me gustaría*."""
    who, action = experiencer(draw), activity(draw, "h")
    if action.spanish.endswith("se") or "x" in action.aspects:
        return gustar_infinitive(draw)
    if draw.chance(65):
        in_english, infinitive = draw.pick((("like to", "gustar"), ("love to", "encantar")))
        return liked(who, in_english, infinitive, whole(action), infinitive == "gustar" and draw.chance(30))
    said = clause(who, act(f"like to {action.english}", "gustar"), "conditional").english
    return statement(said, pleasing(who, "gustar", whole(action), tense="conditional"), who, action, "gustar")


def gustar_question(draw: Draw) -> Phrase:
    """Do you like coffee? *¿Te gusta el café?*"""
    who = draw.pick((YOU, YOU, YOU, HE, SHE, name(draw), relative(draw, ("your",))))
    what = kind_of_thing(draw, KINDS)
    auxiliary = "does" if who.slot == EL else "do"
    asked = f"{auxiliary} {who.english} like {what.english}"
    return question(asked, pleasing(who, "gustar", what), who, what, "gustar")


SINGLE: Final = ("cabeza", "espalda", "estómago", "cuello", "garganta", "pecho")


def doler(draw: Draw) -> Phrase:
    """My feet hurt: *me duelen los pies*."""
    who, head = experiencer(draw), draw.pick(select("ache"))
    plural = head.lemma not in SINGLE and draw.chance(50)
    if who.plural and not plural:
        return doler(draw)
    part, named = phrase(head, "the", plural), who not in (I, YOU, WE, HE, SHE, THEY)
    whose = english.possessive(who.english) if named else own(who)
    hurting = NounPhrase(part.english.replace("the", whose, 1), part.spanish, part.lemmas, part.slot)
    tense, in_english = draw.pick((("present", "present"), ("present", "present"), ("imperfect", "past progressive")))
    said = clause(hurting, act("hurt", "doler"), in_english).english
    return statement(said, pleasing(who, "doler", part, tense=tense), who, part, "doler")


MISSED: Final = (
    "fruit,stationery,tableware,clothing,toy,libro,carta,página,capítulo,moneda,boleto,silla,llave,botón,foto,huevo"
)


def faltar(draw: Draw) -> Phrase:
    """I am missing two chairs: *me faltan dos sillas*; I have two left: *me quedan*."""
    who, head = experiencer(draw), draw.pick(countable(MISSED))
    count, counted = number(draw.pick(range(2, 13)), head.feminine)
    many = NounPhrase(
        f"{count} {english.plural(head.english)}", f"{counted} {spanish.plural(head.spanish)}", (head.lemma,), 4
    )
    if draw.chance(50):
        return liked(who, "be missing", "faltar", many)
    said = clause(who, act(f"have {many.english} left", "quedar"), "present").english
    return statement(said, pleasing(who, "quedar", many), who, many, "quedar")


def parecer(draw: Draw) -> Phrase:
    """This rule seems strict to me: *me parece estricta*; the adjective agrees."""
    who, adjective = experiencer(draw), draw.pick([one for one in adjectives("ser") if one.degree in ("er", "more")])
    if not adjective.things:
        return parecer(draw)
    head = draw.pick(adjective.things)
    what = phrase(head, "the" if head.number == "mass" else draw.pick(("this", "that", "the")), numbered(draw, head))
    described = NounPhrase("", f"{what.agree(adjective.spanish)} {what.spanish}", slot=what.slot)
    said = clause(
        what, act(f"seem {adjective.english} to {OBJECT_ENGLISH.get(who, who.english)}", "parecer"), "present"
    )
    return statement(said.english, pleasing(who, "parecer", described), who, what, adjective.spanish, "parecer")


NUISANCES: Final = "luz,bug,radio,televisor,ventilador,canción,regla,pregunta,perro,loro,zapato,puerta,ventana,reloj"


def molestar(draw: Draw) -> Phrase:
    """Flies bother me: *me molestan las moscas*."""
    who, negated = experiencer(draw), draw.chance(30)
    what = kind_of_thing(draw, "bug,mentira,pregunta")
    if draw.chance(60):
        what = thing(draw, NUISANCES, ("this", "that", "the"))
    bothering = act(f"bother {OBJECT_ENGLISH.get(who, who.english)}", "molestar")
    said = clause(what, bothering, "present", negated).english
    return statement(said, pleasing(who, "molestar", what, negated), who, what, "molestar")


CONSTRUCTIONS: Final = {
    "gustar": gustar,
    "gustar with infinitive": gustar_infinitive,
    "gustar, question": gustar_question,
    "encantar": encantar,
    "interesar and fascinar": interesar,
    "doler": doler,
    "faltar and quedar": faltar,
    "parecer": parecer,
    "molestar": molestar,
}
