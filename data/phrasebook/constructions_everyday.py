"""Set frames of every day: there is, the time, dates, ages, prices, the weather, being hungry, signs in shops."""

from collections.abc import Sequence
from typing import Final

from data.phrasebook import english, spanish
from data.phrasebook.clauses import act, activity, asked, question, statement, told, transitive
from data.phrasebook.draw import Draw
from data.phrasebook.lexicon import Noun, select, table
from data.phrasebook.nounphrases import (
    HE,
    SHE,
    WE,
    YOU,
    I,
    NounPhrase,
    Phrase,
    anybody,
    name,
    phrase,
    relative,
    thing,
    you_or_other,
)
from data.phrasebook.numerals import number
from data.phrasebook.spanish import EL, ELLOS

# ----------------------------------------------------------------------------------------------------------- there is

EXISTING: Final = (("is", "are", "hay"), ("is", "are", "hay"), ("was", "were", "había"))


def there_is(draw: Draw) -> Phrase:
    """*hay*, the same for one and many."""
    place_english, place_spanish, things = draw.pick(table("found_in"))
    head, (one, many, verb) = draw.pick(select(things)), draw.pick(EXISTING)
    if draw.chance(15):
        return there_is_no(head, one if head.number == "mass" else many, f"no {verb}", (place_english, place_spanish))
    some = amount(draw, head)
    be = many if some.plural else one
    return statement(
        f"there {be} {some.english} {place_english}", f"{verb} {some.spanish} {place_spanish}", some, "haber"
    )


def there_is_no(head: Noun, be: str, verb: str, place: tuple[str, str]) -> Phrase:
    """There aren't any pears: *no hay ninguna pera*."""
    mass = head.number == "mass"
    none = phrase(head, "bare" if mass else "no")
    what = head.english if mass else english.plural(head.english)
    return statement(
        f"there {english.negative(be)} any {what} {place[0]}", f"{verb} {none.spanish} {place[1]}", none, "haber"
    )


def amount(draw: Draw, head: Noun) -> NounPhrase:
    """Some of it: one, a number, many, or an amount."""
    if head.number == "mass":
        return NounPhrase(f"some {head.english}", head.spanish, (head.lemma,))
    kind = draw.pick(("one", "number", "number", "many", "many"))
    if kind == "one" and not head.several:
        return phrase(head, "a")
    if kind == "many":
        return phrase(head, draw.pick(("many", "few", "several", "too many")), plural=True)
    count = number(draw.pick((2, 3, 4, 5, 6, 7, 8, 10)), head.feminine)
    return NounPhrase(
        f"{count[0]} {english.plural(head.english)}", f"{count[1]} {spanish.plural(head.spanish)}", (head.lemma,), ELLOS
    )


# Where one need not ask for what is there.
EVIDENT: Final = ("in this city", "in the street", "in the classroom", "on the farm")


def is_there(draw: Draw) -> Phrase:
    """Is there a pharmacy near here? *¿Hay una farmacia …?*"""
    place_english, place_spanish, things = draw.pick(table("found_in"))
    head = draw.pick(select(things))
    if place_english in EVIDENT or (place_english == "in the forest" and head.lemma == "árbol"):
        return is_there(draw)
    be, some = "is", phrase(head, "a")
    if head.number == "mass" or head.several or draw.chance(35):
        some = phrase(head, "bare", plural=True)
        some = NounPhrase(f"any {some.english}", some.spanish, some.lemmas, some.slot)
        be = "are" if some.plural else "is"
    return question(f"{be} there {some.english} {place_english}", f"hay {some.spanish} {place_spanish}", some, "haber")


# ------------------------------------------------------------------------------------------------------ time and dates

PAST_THE_HOUR: Final = (
    ("{} o'clock", "{}"),
    ("a quarter past {}", "{} y cuarto"),
    ("half past {}", "{} y media"),
    ("ten past {}", "{} y diez"),
    ("twenty past {}", "{} y veinte"),
    ("five past {}", "{} y cinco"),
)
STARTING: Final = (
    "clase,reunión,concierto,película,partido,cena,fiesta,boda,ceremonia,conferencia,programa,carrera,examen"
)
OPENING: Final = "tienda,museo,biblioteca,farmacia,panadería,supermercado,piscina,librería,restaurante"


def clock(draw: Draw, hours: Sequence[int]) -> tuple[str, str]:
    """half past two: *las dos y media*."""
    hour, (in_english, in_spanish) = draw.pick(hours), draw.pick(PAST_THE_HOUR)
    name_english, name_spanish = number(hour, True)
    return in_english.format(name_english), f"{'la' if hour == 1 else 'las'} {in_spanish.format(name_spanish)}"


def time_of_day(draw: Draw) -> Phrase:
    """It is one o'clock, *es la una*; half past two, *son las dos y media*; at two, *a las dos*."""
    kind = draw.pick(range(9))
    if kind == 0:
        in_english, in_spanish = clock(draw, range(1, 13))
        return statement(
            f"it is {in_english}", f"{'es' if in_spanish.startswith('la ') else 'son'} {in_spanish}", "ser"
        )
    return somebody_at(draw) if kind < 5 else something_at(draw)


def somebody_at(draw: Draw) -> Phrase:
    verb, infinitive, place, hours = draw.pick(table("daily"))
    in_english, in_spanish = clock(draw, [int(hour) for hour in hours.split(",")])
    action = act(f"{verb} at {in_english}", infinitive, f"{place} a {in_spanish}".strip())
    return told(anybody(draw), action, draw.pick(("present", "preterite", "preterite", "going")))


def something_at(draw: Draw) -> Phrase:
    in_english, in_spanish = clock(draw, range(1, 13))
    choices = (
        (STARTING, "begin", "empezar"),
        (STARTING, "end", "terminar"),
        (OPENING, "open", "abrir"),
        (OPENING, "close", "cerrar"),
        ("tren,autobús,barco,vuelo", "leave", "salir"),
    )
    things, verb, infinitive = draw.pick(choices)
    action = act(f"{verb} at {in_english}", infinitive, f"a {in_spanish}")
    return told(phrase(draw.pick(select(things))), action, draw.pick(("present", "preterite", "future")))


def calendar(kind: str) -> list[list[str]]:
    return [row[1:] for row in table("calendar") if row[0] == kind]


def day_of_month(draw: Draw) -> tuple[str, str]:
    """March 3rd: *3 de marzo*."""
    day, (in_english, in_spanish) = draw.pick(range(1, 29)), draw.pick(calendar("month"))
    ending = "th" if 4 <= day <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{in_english} {day}{ending}", f"{day} de {in_spanish}"


DATED: Final = (
    ("be born", "nacer", "preterite"),
    ("arrive", "llegar", "preterite"),
    ("get married", "casarse", "preterite"),
    ("come back", "volver", "future"),
    ("leave", "irse", "future"),
)
HAPPENINGS: Final = "event,partido,carrera,desfile"


def date(draw: Draw) -> Phrase:
    """on March 3rd: *el 3 de marzo*."""
    in_english, in_spanish = day_of_month(draw)
    kind = draw.pick(("today", "event", "event", "person", "person", "person"))
    if kind == "today":
        day = draw.pick(calendar("day"))
        return statement(f"today is {day[0]}, {in_english}", f"hoy es {day[1]} {in_spanish}", "ser")
    if kind == "event":
        what = phrase(draw.pick(select(HAPPENINGS)), draw.pick(("the", "the", "our")))
        return told(what, act(f"be on {in_english}", "ser", f"el {in_spanish}"), draw.pick(("present", "preterite")))
    verb, infinitive, tense = draw.pick(DATED)
    who = draw.pick((name(draw), relative(draw), I, WE, HE, SHE))
    return told(who, act(f"{verb} on {in_english}", infinitive, f"el {in_spanish}"), tense)


def weekday(draw: Draw) -> Phrase:
    """The exam is on Friday: *es el viernes*."""
    what = phrase(draw.pick(select(HAPPENINGS)), draw.pick(("the", "the", "our")))
    in_english, in_spanish = draw.pick(calendar("day"))
    action = act(f"be on {in_english}", "ser", f"el {in_spanish}")
    return told(what, action, draw.pick(("present", "preterite")), draw.chance(20))


# --------------------------------------------------------------------------------------------------- ages and prices

ELDERS: Final = frozenset({"abuelo", "abuela", "padre", "madre", "suegra"})
YOUNGSTERS: Final = frozenset({"nieto", "nieta", "sobrino", "sobrina"})


def age(draw: Draw) -> Phrase:
    """She is twelve years old, *tiene doce años*; turned twelve, *cumplió*."""
    who = draw.pick((name(draw), relative(draw), I, HE, SHE, YOU))
    ages = range(50, 91) if ELDERS & {*who.lemmas} else range(4, 26) if YOUNGSTERS & {*who.lemmas} else range(18, 50)
    in_english, in_spanish = number(draw.pick(ages))
    years = f"{in_spanish} años"
    if draw.chance(60):
        action, tense = act(f"be {in_english} years old", "tener", years, "año"), draw.pick(("present", "imperfect"))
        return told(who, action, tense, tense == "present" and draw.chance(15))
    return told(who, act(f"turn {in_english}", "cumplir", years, "año"), draw.pick(("preterite", "future", "going")))


SOLD: Final = (
    "clothing,paired,fruit,stationery,tableware,gift,jewel,libro,revista,boleto,tool,linen,decor,camiseta,sombrero"
)
DOLLARS: Final = (12, 15, 18, 20, 25, 30, 35, 40, 45, 50, 60, 75, 80, 90)


def price(draw: Draw) -> Phrase:
    """The shirt costs twenty dollars: *cuesta veinte dólares*; paid for: *pagó … por*."""
    sold = thing(draw, SOLD, ("the", "this", "that"), 20)
    cheap = sold.head and sold.head.kinds & {"fruit", "stationery"}
    in_english, in_spanish = number(draw.pick((2, 3, 4, 5) if cheap else DOLLARS))
    dollars, dólares = f"{in_english} dollars", f"{in_spanish} dólares"
    if draw.chance(35):
        paying = act(f"pay {dollars} for {sold.english}", "pagar", f"{dólares} por {sold.spanish}", sold, "dólar")
        return told(anybody(draw), paying, "preterite")
    return told(
        sold, act(f"cost {dollars}", "costar", dólares, "dólar"), draw.pick(("present", "present", "preterite"))
    )


# ------------------------------------------------------------------------------------------------------- the weather


def weather(draw: Draw) -> Phrase:
    """It is cold today: *hace frío hoy*."""
    tense, in_english, in_spanish, lemma = draw.pick(table("weather"))
    _, when_english, when_spanish = draw.pick([row for row in table("weather_times") if row[0] == tense])
    if draw.chance(35):
        return statement(f"{when_english} {in_english}", f"{when_spanish} {in_spanish}", lemma)
    return statement(f"{in_english} {when_english}", f"{in_spanish} {when_spanish}", lemma)


def season(draw: Draw) -> Phrase:
    """It snows a lot in Canada in the winter: *en invierno*, without article."""
    in_english, in_spanish, lemma, seasons, places = draw.pick(table("climate"))
    _, where, dónde = draw.pick([row for row in table("places") if row[1] in places.split(",")])
    when = draw.pick([noun for noun in select("season") if noun.english in seasons.split(",")])
    said = f"{in_english} in {where} in the {when.english}"
    return statement(said, f"en {when.spanish} {in_spanish} en {dónde}", lemma, when.lemma)


# ------------------------------------------------------------------------------------------------------ tener hambre

LASTING_STATES: Final = ("lucky", "right")  # said of the present alone: "was lucky" is *tuvo suerte*


def states(draw: Draw) -> Phrase:
    """I am hungry: *tengo hambre*; very: *mucha hambre*."""
    subject, (in_english, in_spanish, much) = anybody(draw), draw.pick(table("states"))
    tense = draw.pick(("present", "present", "present" if in_english in LASTING_STATES else "imperfect"))
    if much and draw.chance(35):
        return told(subject, act(f"be very {in_english}", "tener", f"{much} {in_spanish}", in_spanish), tense)
    return told(subject, act(f"be {in_english}", "tener", in_spanish, in_spanish), tense, draw.chance(25))


def state_question(draw: Draw) -> Phrase:
    """Are you cold? *¿Tienes frío?*"""
    subject, (in_english, in_spanish, _) = you_or_other(draw), draw.pick(table("states"))
    tense = draw.pick(("present", "present" if in_english in LASTING_STATES else "imperfect"))
    being = act(f"be {in_english}", "tener", in_spanish, in_spanish)
    if draw.chance(35) and in_english not in LASTING_STATES:
        said = asked(subject, being, tense)
        return question(f"why {said.english}", f"por qué {said.spanish}", said)
    said = asked(subject, being, tense, yes_no=True)
    return question(said.english, said.spanish, said)


def feel_like(draw: Draw) -> Phrase:
    """I feel like dancing: *tengo ganas de bailar*."""
    subject, action = anybody(draw), draw.pick((activity(draw, "h"), transitive(draw, "h")))
    if "x" in action.aspects:
        return feel_like(draw)
    rest = f"ganas de {spanish.infinitive_of(action.spanish, subject.slot)} {action.rest}".strip()
    wish = act(f"feel like {english.verb_form(action.english, 'gerund')}", "tener", rest, "gana", *action.lemmas)
    return told(subject, wish, "present", draw.chance(30))


FEARED: Final = "bug,dangerous,perro,caballo,ratón,dentista,examen,avión,rana,ladrón,fantasma"


def afraid_of(draw: Draw) -> Phrase:
    """My sister is afraid of spiders: *tiene miedo a las arañas*."""
    feared = phrase(draw.pick(select(FEARED)), "the", plural=True)
    what = feared.english.removeprefix("the ")
    action = act(f"be afraid of {what}", "tener", f"miedo a {feared.spanish}", "miedo", feared)
    return told(anybody(draw), action, draw.pick(("present", "imperfect")), draw.chance(25))


def impersonal_se(draw: Draw) -> Phrase:
    """Spanish is spoken here: *aquí se habla español*; bicycles are rented: *se alquilan bicicletas*."""
    infinitive, participle, things, where, dónde = draw.pick(table("signs"))
    what = phrase(draw.pick(select(things)), "bare", plural=True)
    form = spanish.conjugate(infinitive, "present", ELLOS if what.plural else EL)
    said = f"{what.english} {'are' if what.plural else 'is'} {participle} {where}"
    return statement(said, f"{dónde} se {form} {what.spanish}", infinitive, what)


CONSTRUCTIONS: Final = {
    "hay": there_is,
    "hay, question": is_there,
    "time of day": time_of_day,
    "date": date,
    "weekday": weekday,
    "age": age,
    "price": price,
    "weather": weather,
    "seasons": season,
    "tener hambre": states,
    "tener hambre, question": state_question,
    "tener ganas de": feel_like,
    "tener miedo a": afraid_of,
    "impersonal se": impersonal_se,
}
