"""Who and what a sentence is about: noun phrases that agree in Spanish and mean the same in English."""

from dataclasses import dataclass, replace
from typing import Final

from data.phrasebook import english, spanish
from data.phrasebook.draw import Draw
from data.phrasebook.lexicon import (
    Adjective,
    Noun,
    descriptions,
    names,
    nationalities,
    noun,
    professions,
    select,
    table,
)
from data.phrasebook.spanish import EL, ELLOS, NOSOTROS, TU, YO

DETERMINERS: Final = {row[0]: row[1:] for row in table("determiners")}


@dataclass(frozen=True)
class Phrase:
    """The same in both languages, with the Spanish dictionary forms of its words."""

    english: str
    spanish: str
    lemmas: tuple[str, ...] = ()


@dataclass(frozen=True)
class NounPhrase(Phrase):
    """``slot`` is the person of its verb in Spanish; a dropped pronoun has no Spanish. ``formal``: *usted*."""

    slot: int = EL
    feminine: bool = False
    formal: bool = False
    head: Noun | None = None

    @property
    def plural(self) -> bool:
        return self.slot in (NOSOTROS, ELLOS)

    @property
    def english_slot(self) -> int:
        """The person of its verb in English, where *usted* is you."""
        return TU if self.formal else self.slot

    @property
    def personal(self) -> str:
        """The Spanish of a person as an object: with the personal *a*."""
        return f"a {self.spanish}"

    def agree(self, adjective: str) -> str:
        """An adjective that is said of it."""
        return spanish.agree(adjective, self.feminine, self.plural)


I = NounPhrase("I", "", slot=YO)  # noqa: E741
YOU = NounPhrase("you", "", slot=TU)
HE = NounPhrase("he", "él")
SHE = NounPhrase("she", "ella", feminine=True)
WE = NounPhrase("we", "", slot=NOSOTROS)
THEY = NounPhrase("they", "ellos", slot=ELLOS)
USTEDES = NounPhrase("you all", "ustedes", slot=ELLOS)
OBJECT_ENGLISH: Final = {I: "me", YOU: "you", HE: "him", SHE: "her", WE: "us", THEY: "them"}
DIRECT: Final = {I: "me", YOU: "te", HE: "lo", SHE: "la", WE: "nos", THEY: "los"}
INDIRECT: Final = {I: "me", YOU: "te", HE: "le", SHE: "le", WE: "nos", THEY: "les"}


def phrase(head: Noun, determiner: str = "the", plural: bool = False, adjective: Adjective | None = None) -> NounPhrase:
    """The noun with a determiner and an adjective: ("this", mesa, rojo) → this red table, esta mesa roja."""
    plural = head.number == "plural" or (plural and head.number == "count")
    in_english, in_spanish = determiners(head, determiner, plural)
    noun_english = english.plural(head.english) if plural and head.number != "plural" else head.english
    words = [adjective.english, noun_english] if adjective else [noun_english]
    in_english = english.with_article(" ".join(words)) if in_english == "a" else " ".join([in_english, *words])
    words = [in_spanish, spanish.plural(head.spanish) if plural and head.number != "plural" else head.spanish]
    words += [spanish.agree(adjective.spanish, head.feminine, plural)] if adjective else []
    lemmas = (head.lemma, adjective.spanish) if adjective else (head.lemma,)
    slot = ELLOS if plural else EL
    return NounPhrase(in_english.strip(), " ".join(words).strip(), lemmas, slot, head.feminine, head=head)


# Spanish has an article where English has none: *la historia es interesante*, history is interesting.
GENERIC: Final = frozenset({"subject", "language", "sport", "hobby"})


def determiners(head: Noun, key: str, plural: bool) -> tuple[str, str]:
    """The determiner in English and, agreeing and right before the noun, in Spanish."""
    if head.number == "mass" and key == "a":
        return ("", "")
    one, many, *forms = DETERMINERS[key]
    if key == "the" and head.kinds & GENERIC:
        one = ""
    return (many if plural else one), spanish.article(forms[2 * plural + head.feminine], head.spanish)


def before(head: Noun, determiner: str, adjective: Phrase, plural: bool = False) -> NounPhrase:
    """The noun with an adjective that stands before it and may be shortened: *un buen amigo*."""
    plain = phrase(head, determiner, plural)
    name = plain.spanish.split()[-1]
    first = DETERMINERS[determiner][2 + 2 * plural + head.feminine]
    shortened = spanish.before_noun(adjective.spanish, head.feminine, plural)
    name_english = plain.english.split(" ", 1)[1] if " " in plain.english else plain.english
    described = f"{adjective.english} {name_english}"
    determiner_english = DETERMINERS[determiner][plural]
    said = english.with_article(described) if determiner_english == "a" else f"{determiner_english} {described}"
    return replace(
        plain,
        english=said.strip(),
        spanish=f"{first} {shortened} {name}".strip(),
        lemmas=(head.lemma, adjective.spanish),
    )


# ------------------------------------------------------------------------------------------------------------ persons


def name(draw: Draw) -> NounPhrase:
    feminine = draw.chance(50)
    return named(draw.pick(names(feminine)), feminine)


def named(chosen: str, feminine: bool) -> NounPhrase:
    return NounPhrase(chosen, chosen, feminine=feminine)


def relative(draw: Draw, owners: tuple[str, ...] = ("my", "my", "your", "our")) -> NounPhrase:
    """my sister, your uncle."""
    head, owner = draw.pick(select("family")), draw.pick(owners)
    return phrase(head, "my" if owner == "our" and head.lemma in NOT_SHARED else owner)


NOT_SHARED: Final = ("esposo", "esposa", "novio", "novia", "suegra", "cuñado")


def relatives(draw: Draw) -> NounPhrase:
    """Several, of kinds that one may have several of."""
    return phrase(draw.pick(select(SEVERAL)), draw.pick(("my", "my", "your", "our")), plural=True)


SEVERAL: Final = "hermano,hermana,hijo,hija,tío,tía,sobrino,sobrina,nieto,nieta,amigo,vecino"
# Whom one may meet with an article alone; *the boy* and *the doctor*, hardly *the hero*.
MET: Final = (
    "médico,enfermero,maestro,abogado,ingeniero,cocinero,carpintero,pintor,bombero,policía,panadero,carnicero,"
    "peluquero,secretario,jardinero,mecánico,electricista,fotógrafo,juez,veterinario,farmacéutico,entrenador,"
    "gerente,director,dentista,cartero,taxista,periodista,camarero,niño,niña,señora,mujer,cliente,paciente,"
    "estudiante,turista,testigo,vecino,jefe,guía,bibliotecario,actor,actriz,cantante,piloto,arquitecto,traductor,"
    "detective,cirujano"
)


def stranger(draw: Draw, plural: bool = False) -> NounPhrase:
    """the doctor, the boys."""
    return phrase(draw.pick(select(MET)), "the", plural)


def person(draw: Draw) -> NounPhrase:
    """Somebody definite: Ana, my sister, the doctor."""
    return draw.pick((name, relative, relative, stranger))(draw)


def with_me(draw: Draw) -> NounPhrase:
    """my sister and I: *nosotros*."""
    chosen = relative(draw, ("my",))
    return NounPhrase(f"{chosen.english} and I", f"{chosen.spanish} y yo", chosen.lemmas, NOSOTROS)


def couple(draw: Draw) -> NounPhrase:
    """Ana and Pedro: *ellos*; Ana and Clara: *ellas*."""
    first, second = named(draw.pick(names(True)), True), named(draw.pick(names(False)), False)
    if draw.chance(50):
        second = named(draw.pick([other for other in names(True) if other != first.english]), True)
    joined = spanish.conjoined(first.spanish, second.spanish)
    return NounPhrase(f"{first.english} and {second.english}", joined, (), ELLOS, first.feminine and second.feminine)


def people(draw: Draw) -> NounPhrase:
    """Several people, by any words."""
    if draw.chance(40):
        return couple(draw)
    return relatives(draw) if draw.chance(60) else stranger(draw, plural=True)


def somebody(draw: Draw) -> NounPhrase:
    """A subject of the third person."""
    return draw.pick((person, person, person, people, lambda draw: draw.pick((HE, SHE, SHE, THEY))))(draw)


def anybody(draw: Draw) -> NounPhrase:
    """A subject of any person."""
    if draw.chance(45):
        return draw.pick((I, I, I, YOU, YOU, WE, WE, HE, SHE, SHE, THEY, USTEDES))
    if draw.chance(25):
        return with_me(draw) if draw.chance(25) else people(draw)
    return person(draw)


def you_or_other(draw: Draw) -> NounPhrase:
    """Whom a question is about."""
    return YOU if draw.chance(35) else draw.pick((HE, SHE, THEY)) if draw.chance(20) else draw.pick(ASKED_ABOUT)(draw)


def your_relative(draw: Draw) -> NounPhrase:
    """One asks about the hearer's relatives more than about one's own."""
    return relative(draw, ("your",))


ASKED_ABOUT: Final = (name, name, your_relative, your_relative, stranger, people)


def working(draw: Draw, subject: NounPhrase) -> NounPhrase:
    """What somebody works as: English has a or an, Spanish has no article."""
    head = draw.pick(professions(subject.feminine))
    plain = phrase(head, "a" if not subject.plural else "bare", subject.plural)
    in_spanish = spanish.plural(head.spanish) if subject.plural else head.spanish
    return replace(plain, spanish=in_spanish)


def nationality(draw: Draw) -> Adjective:
    return draw.pick(nationalities())


# ------------------------------------------------------------------------------------------------------------- things


PERSONAL: Final = frozenset(
    [
        "clothing",
        "paired",
        "furniture",
        "decor",
        "home",
        "room",
        "drive",
        "ride",
        "portable",
        "small",
        "stationery",
        "pet",
        "container",
        "instrument",
        "linen",
        "tool",
        "toy",
    ]
)  # what one may call one's own
# What tells one thing from another: "the red cup", hardly "the useful cup".
DISTINGUISHING: Final = frozenset(
    ["color", "grande", "pequeño", "nuevo", "viejo", "antiguo", "largo", "corto", "redondo", "cuadrado"]
)


def distinguishing(head: Noun) -> tuple[Adjective, ...]:
    """The adjectives that may stand with the noun after a definite article."""
    return tuple(one for one in descriptions(head) if DISTINGUISHING & {one.spanish, one.degree})


def numbered(draw: Draw, head: Noun, percent: int = 30) -> bool:
    """Whether to say the plural: of gloves nearly always."""
    return head.several or (head.number == "count" and draw.chance(percent))


def thing(draw: Draw, selectors: str, determiners: tuple[str, ...] = ("the",), described: int = 0) -> NounPhrase:
    """A noun of these classes, described in so many of a hundred cases."""
    head = draw.pick(select(selectors))
    determiner = draw.pick(determiners)
    possible = descriptions(head) if determiner == "a" else distinguishing(head)
    adjective = draw.pick(possible) if possible and draw.chance(described) else None
    return phrase(head, determiner, numbered(draw, head), adjective)


def peer(draw: Draw) -> NounPhrase:
    """Somebody of no particular generation."""
    return name(draw) if draw.chance(40) else draw.pick((stranger, sibling))(draw)


def sibling(draw: Draw) -> NounPhrase:
    return phrase(draw.pick(select("hermano,hermana,primo,amigo,vecino,jefe,esposo,esposa")), draw.pick(("my", "your")))


def the(spanish_noun: str) -> NounPhrase:
    return phrase(noun(spanish_noun))
