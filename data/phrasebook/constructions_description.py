"""What things and people are like, whose they are and where: determiners, adjectives, *ser* and *estar*."""

from typing import Final

from data.phrasebook import english, spanish
from data.phrasebook.clauses import Action, act, is_so, statement, told
from data.phrasebook.draw import Draw
from data.phrasebook.lexicon import (
    Adjective,
    Noun,
    adjectives,
    countable,
    descriptions,
    noun,
    professions,
    select,
    table,
)
from data.phrasebook.nounphrases import (
    GENERIC,
    HE,
    PERSONAL,
    SHE,
    WE,
    I,
    NounPhrase,
    Phrase,
    anybody,
    before,
    name,
    nationality,
    numbered,
    people,
    person,
    phrase,
    relative,
    stranger,
    working,
)
from data.phrasebook.numerals import number

TENSES: Final = ("present", "present", "present", "imperfect")


def described_thing(draw: Draw, copula: str, owned: bool = False) -> tuple[Noun, Adjective]:
    """A thing, and something that may be said of it."""
    while True:
        adjective = draw.pick(adjectives(copula))
        things = [noun for noun in adjective.things if not owned or noun.kinds & PERSONAL]
        if things:
            return draw.pick(things), adjective


def thing_is(draw: Draw, determiners: tuple[str, ...], copula: str, owned: bool = False) -> Phrase:
    head, adjective = described_thing(draw, copula, owned)
    if head.kinds & GENERIC and determiners != ("the",):
        return thing_is(draw, determiners, copula, owned)
    happens = copula == "ser" and head.kinds & {"event", "watchable", "task", "plan"}
    tense = draw.pick(("present", "preterite") if happens else TENSES)
    return is_so(phrase(head, draw.pick(determiners), numbered(draw, head)), adjective, tense, draw.chance(15))


def definite_article(draw: Draw) -> Phrase:
    return thing_is(draw, ("the",), "ser")


def estar_thing(draw: Draw) -> Phrase:
    return thing_is(draw, ("the",), "estar")


def demonstrative(draw: Draw) -> Phrase:
    return thing_is(draw, ("this", "that"), draw.pick(("ser", "ser", "estar")))


def possessive(draw: Draw) -> Phrase:
    return thing_is(draw, ("my", "your", "our"), draw.pick(("ser", "estar")), owned=True)


def person_is(draw: Draw, copula: str) -> Phrase:
    subject = anybody(draw)
    # "I was intelligent" would say that one no longer is
    tense = "present" if copula == "ser" and not subject.spanish else draw.pick(TENSES)
    return is_so(subject, draw.pick(adjectives(copula, "human")), tense, draw.chance(20))


def ser_person(draw: Draw) -> Phrase:
    return person_is(draw, "ser")


def estar_person(draw: Draw) -> Phrase:
    return person_is(draw, "estar")


DEGREES: Final = (("very", "muy"), ("too", "demasiado"), ("a little", "un poco"), ("so", "tan"))


def degree(draw: Draw) -> Phrase:
    """very tired, a little worried."""
    subject, (in_english, in_spanish) = anybody(draw), draw.pick(DEGREES)
    adjective = draw.pick([one for one in adjectives("estar", "human") if one.degree != "-"])
    described = f"{in_spanish} {subject.agree(adjective.spanish)}"
    action = act(f"be {in_english} {adjective.english}", "estar", described, adjective.spanish)
    return told(subject, action, draw.pick(TENSES))


def with_object(in_english: str, infinitive: str, target: Phrase) -> Action:
    return act(f"{in_english} {target.english}", infinitive, target.spanish, target)


def having(draw: Draw, owned: NounPhrase) -> Phrase:
    """Somebody has, bought, wants or needs it."""
    in_english, infinitive, tense = draw.pick(
        (
            ("have", "tener", "present"),
            ("buy", "comprar", "preterite"),
            ("want", "querer", "present"),
            ("need", "necesitar", "present"),
        )
    )
    return told(anybody(draw), with_object(in_english, infinitive, owned), tense)


def colour(draw: Draw) -> Phrase:
    """A colour after its noun."""
    adjective = draw.pick([one for one in adjectives("ser") if one.degree == "color"])
    head = draw.pick([noun for noun in adjective.nouns if noun.kinds & PERSONAL])
    return having(draw, phrase(head, "a", numbered(draw, head), adjective))


def indefinite_article(draw: Draw) -> Phrase:
    head, adjective = described_thing(draw, "ser", owned=True)
    return having(draw, phrase(head, "a", numbered(draw, head), adjective))


EXCELLENCE: Final = (Phrase("good", "bueno"), Phrase("bad", "malo"), Phrase("great", "grande"))
JUDGED: Final = (
    "libro,novela,cuento,poema,artículo,revista,watchable,restaurante,hotel,plan,idea,solución,decisión,respuesta,"
    "escuela,universidad,hospital,concierto"
)


def adjective_before_noun(draw: Draw) -> Phrase:
    """It is a good film: *una buena película*, *un buen libro*, *un gran plan*."""
    quality = draw.pick(EXCELLENCE)
    if draw.chance(40):
        return profession_judged(draw, quality)
    head = draw.pick(countable(JUDGED))
    judged = before(head, "a", quality)
    this = "esta" if head.feminine else "este"
    frames = (("this is", f"{this} es"), ("it is", "es"), ("it was", "fue"), ("it is not", "no es"))
    in_english, in_spanish = draw.pick(frames)
    return statement(f"{in_english} {judged.english}", f"{in_spanish} {judged.spanish}", judged, "ser")


def profession_judged(draw: Draw, quality: Phrase) -> Phrase:
    """Here Spanish has an article: *es una buena enfermera*."""
    subject = draw.pick((name, relative))(draw)
    job = before(draw.pick(professions(subject.feminine)), "a", quality)
    return told(subject, with_object("be", "ser", job), draw.pick(TENSES))


RANKS: Final = (
    Phrase("first", "primero"),
    Phrase("second", "segundo"),
    Phrase("third", "tercero"),
    Phrase("fourth", "cuarto"),
    Phrase("fifth", "quinto"),
    Phrase("last", "último"),
)
RANKED: Final = (
    "capítulo,lección,pregunta,clase,ejercicio,película,novela,carta,partido,reunión,viaje,examen,libro,programa,curso,"
    "concierto,poema,mensaje,cuento"
)


def ordinal(draw: Draw) -> Phrase:
    """the first chapter: *el primer capítulo*."""
    head = draw.pick(select(RANKED))
    quality = draw.pick([one for one in descriptions(head) if one.degree != "color"])
    return is_so(before(head, "the", draw.pick(RANKS)), quality, draw.pick(("present", "preterite")), draw.chance(15))


WORTH: Final = (
    Adjective("hermoso", "beautiful", "ser", "more", ()),
    Adjective("viejo", "old", "ser", "er", ()),
    Adjective("pequeño", "small", "ser", "er", ()),
)


def stressed_a(draw: Draw) -> Phrase:
    """*el agua fría*: feminine, though its article looks masculine."""
    head = draw.pick(select("agua,aula,águila,arpa,hacha"))
    plural = head.number == "count" and draw.chance(25)
    determiner = draw.pick(("the", "the", "this", "that", "my" if head.lemma in ("hacha", "arpa") else "the"))
    possible = (*descriptions(head), *descriptions(head, "estar")) or WORTH
    return is_so(phrase(head, determiner, plural), draw.pick(possible), draw.pick(TENSES), draw.chance(20))


# ----------------------------------------------------------------------------------------------------------- counting

COUNTED: Final = (
    "fruit,vegetable,clothing,libro,novela,revista,mapa,diccionario,stationery,tableware,toy,plant,"
    "furniture,decor,jewel,pet"
)
SEVERAL_OF: Final = (
    "hermano,hermana,hijo,hija,tío,tía,primo,sobrino,sobrina,nieto,nieta,amigo,vecino,colega"  # as one may have many
)
QUANTITIES: Final = ("many", "few", "several", "too many", "some")


def counting(draw: Draw, counted: Phrase, possible: tuple[str, ...]) -> Phrase:
    """Somebody has, needs, bought or saw so many."""
    infinitive = draw.pick(possible)
    in_english = {"tener": "have", "necesitar": "need", "comprar": "buy", "ver": "see"}[infinitive]
    tense = "preterite" if infinitive in ("comprar", "ver") else "present"
    return told(anybody(draw), with_object(in_english, infinitive, counted), tense)


def quantifier(draw: Draw) -> Phrase:
    """many books, several apples."""
    head = draw.pick(countable(COUNTED))
    counted = phrase(head, draw.pick(QUANTITIES), plural=True)
    if "pet" in head.kinds or counted.english.startswith("few "):
        return counting(draw, counted, ("tener", "ver"))
    return counting(draw, counted, ("tener", "necesitar", "comprar", "ver"))


def numeral(draw: Draw) -> Phrase:
    """twelve eggs, *veintiuna sillas*."""
    head = draw.pick(countable(f"{COUNTED},{SEVERAL_OF}"))
    living, many = head.kinds & {"human", "pet"}, head.kinds & {"fruit", "vegetable", "stationery", "readable"}
    count = number(draw.pick(range(2, 7 if living else 32 if many else 13)), head.feminine)
    counted = Phrase(
        f"{count[0]} {english.plural(head.english)}", f"{count[1]} {spanish.plural(head.spanish)}", (head.lemma,)
    )
    return counting(draw, counted, ("tener",) if living else ("tener", "necesitar", "comprar"))


# --------------------------------------------------------------------------------------------------------- possession

OWNED: Final = (
    "clothing,coche,moto,bicicleta,bolsa,mochila,maleta,guitarra,violín,paraguas,cartera,libro,cuaderno,lápiz,taza,"
    "toalla,teléfono,computadora,cámara,casa,perro,gato,silla,cama,tijeras,gafas,llave"
)
OWNERS: Final = (("mine", "mío"), ("yours", "tuyo"), ("ours", "nuestro"))


def long_possessive(draw: Draw) -> Phrase:
    """This book is mine: *es mío*."""
    head, (in_english, in_spanish) = draw.pick(select(OWNED)), draw.pick(OWNERS)
    colours = [one for one in descriptions(head) if one.degree == "color"]
    colour = draw.pick(colours) if colours and draw.chance(50) else None
    subject = phrase(head, draw.pick(("this", "that", "the")), numbered(draw, head), colour)
    return told(subject, act(f"be {in_english}", "ser", subject.agree(in_spanish)), "present", draw.chance(25))


def friend_of_mine(draw: Draw) -> Phrase:
    """A friend of mine: *un amigo mío*."""
    one = phrase(draw.pick(select("amigo,vecino,colega,compañero,primo,alumno")), "a")
    in_english, in_spanish = draw.pick(OWNERS)
    subject = NounPhrase(f"{one.english} of {in_english}", f"{one.spanish} {in_spanish}", one.lemmas)
    return told(subject, with_object("be", "ser", working(draw, subject)), "present")


def of(owned: NounPhrase, whole: Phrase, in_english: str) -> NounPhrase:
    """Something of something: English in either of its ways, Spanish with *de*."""
    lemmas = (*owned.lemmas, *whole.lemmas)
    return NounPhrase(in_english, f"{owned.spanish} de {whole.spanish}", lemmas, owned.slot, owned.feminine)


def owner(draw: Draw) -> Phrase:
    """the teacher's car: *el coche del maestro*."""
    possessor = person(draw)
    head, adjective = described_thing(draw, draw.pick(("ser", "estar")), owned=True)
    owned = phrase(head, "the", numbered(draw, head))
    whose = f"{english.possessive(possessor.english)} {owned.english.removeprefix('the ')}"
    return is_so(of(owned, possessor, whose), adjective, draw.pick(TENSES), draw.chance(10))


def quality(text: str) -> Adjective:
    """An adjective written out, as in ``words/parts.tsv``: alto:high:ser."""
    in_spanish, in_english, copula = text.split(":")
    return Adjective(in_spanish, in_english, copula, "-", ())


def part_of(draw: Draw) -> Phrase:
    """the door of the house: *la puerta de la casa*."""
    part, wholes, named = draw.pick(table("parts"))
    head, wanted = noun(part), draw.pick(select(wholes))
    whole = phrase(wanted, "the", wanted.several)
    one = phrase(head, "the", part in ("pared", "rueda"))
    own = (*descriptions(head), *descriptions(head, "estar"))
    adjective = draw.pick([quality(text) for text in named.split(",")] if named else own)
    subject = of(one, whole, f"{one.english} of {whole.english}")
    return is_so(subject, adjective, draw.pick(TENSES), draw.chance(15))


# ------------------------------------------------------------------------------------------- who, from where, and where


def somebody_known(draw: Draw) -> NounPhrase:
    return draw.pick((name, relative, stranger, people, lambda draw: draw.pick((I, HE, SHE, WE))))(draw)


def profession(draw: Draw) -> Phrase:
    """My mother is a nurse: no article in Spanish."""
    subject = draw.pick((name, relative, relative, lambda draw: draw.pick((I, HE, SHE))))(draw)
    job = working(draw, subject)
    if draw.chance(40):
        wish = act(f"want to be {job.english}", "querer", f"ser {job.spanish}", job, "ser")
        return told(subject, wish, "present", draw.chance(15))
    return told(subject, with_object("be", "ser", job), draw.pick(TENSES), draw.chance(15))


def nationality_of(draw: Draw) -> Phrase:
    return is_so(somebody_known(draw), nationality(draw), "present", draw.chance(20))


def origin(draw: Draw) -> Phrase:
    """is from Mexico, lives in Lima, travelled to Rome."""
    _, in_english, in_spanish = draw.pick(table("places"))
    frames = (("be from", "ser", "de"), ("live in", "vivir", "en"), ("travel to", "viajar", "a"))
    verb_english, infinitive, preposition = draw.pick(frames)
    tense = draw.pick(("preterite", "future", "going") if infinitive == "viajar" else ("present",))
    action = act(f"{verb_english} {in_english}", infinitive, f"{preposition} {in_spanish}")
    return told(somebody_known(draw), action, tense, draw.chance(15))


def material(draw: Draw) -> Phrase:
    """a wooden table: *una mesa de madera*."""
    in_english, in_spanish, made = draw.pick(table("materials"))
    head = draw.pick(select(made))
    plain = phrase(head, "a", numbered(draw, head))
    described = f"{in_english} {phrase(head, 'bare', plain.plural).english}"
    described = f"some {described}" if plain.plural else english.with_article(described)
    owned = NounPhrase(described, f"{plain.spanish} de {in_spanish}", (head.lemma, in_spanish))
    if head.kinds & {"building", "build", "part", "cross"}:
        return told(anybody(draw), with_object("see", "ver", owned), "preterite")
    return having(draw, owned)


def location(draw: Draw) -> Phrase:
    """The keys are on the table."""
    preposition, in_spanish, places = draw.pick(table("positions"))
    place, head = draw.pick(countable(places)), draw.pick(select(LAID))
    if place == head:
        return location(draw)
    subject, where = phrase(head, draw.pick(("the", "the", "my", "your")), numbered(draw, head)), phrase(place)
    action = act(f"be {preposition} {where.english}", "estar", f"{in_spanish} {where.spanish}", where)
    return told(subject, action, draw.pick(TENSES), draw.chance(15))


LAID: Final = "small,stationery,tableware,toy,linen,portable,libro,revista,periódico"


def people_where(draw: Draw) -> Phrase:
    """Somebody is at the hospital."""
    preposition = draw.pick(("at", "in"))
    places = [one for one in select(preposition) if "visit" not in one.kinds or "outdoors" in one.kinds]
    places = [one for one in places if one.lemma != "casa"]  # at home is *en casa*
    where = phrase(draw.pick(places))
    action = act(f"be {preposition} {where.english}", "estar", f"en {where.spanish}", where)
    return told(anybody(draw), action, draw.pick(TENSES), draw.chance(20))


CONSTRUCTIONS: Final = {
    "definite article": definite_article,
    "demonstrative": demonstrative,
    "possessive": possessive,
    "ser with people": ser_person,
    "estar with people": estar_person,
    "estar with things": estar_thing,
    "degree": degree,
    "colour": colour,
    "indefinite article": indefinite_article,
    "adjective before noun": adjective_before_noun,
    "ordinal": ordinal,
    "stressed a": stressed_a,
    "quantifier": quantifier,
    "numeral": numeral,
    "long possessive": long_possessive,
    "friend of mine": friend_of_mine,
    "owner with de": owner,
    "part of a whole": part_of,
    "profession": profession,
    "nationality": nationality_of,
    "origin": origin,
    "material": material,
    "location of things": location,
    "location of people": people_where,
}
