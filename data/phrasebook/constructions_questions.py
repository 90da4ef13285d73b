"""Questions: yes or no, and who, what, where, when, how many, which, why, how; with the subject after the verb."""

from dataclasses import replace
from typing import Final

from data.phrasebook import english, spanish
from data.phrasebook.clauses import (
    PRONOUNS,
    UNDATED,
    Action,
    act,
    asked,
    being,
    clause,
    doing,
    event,
    finished,
    habit,
    lasting,
    object_of,
    plan,
    process,
    question,
    times,
)
from data.phrasebook.draw import Draw
from data.phrasebook.lexicon import (
    Adjective,
    adjectives,
    countable,
    descriptions,
    nationalities,
    person_verbs,
    select,
    verbs,
    verbs_named,
)
from data.phrasebook.nounphrases import (
    GENERIC,
    NounPhrase,
    Phrase,
    numbered,
    people,
    person,
    phrase,
    thing,
    you_or_other,
)


def yes_no(tense: str, action: Action, subject: NounPhrase, ending: Phrase | None = None) -> Phrase:
    said, ending = asked(subject, action, tense, yes_no=True), ending or Phrase("", "")
    return question(f"{said.english} {ending.english}", f"{said.spanish} {ending.spanish}", said)


def present_question(draw: Draw) -> Phrase:
    subject = you_or_other(draw)
    action = habit(draw, subject)
    ending = draw.pick(times("present")) if "s" not in action.aspects and draw.chance(40) else None
    return yes_no("present", action, subject, ending)


def preterite_question(draw: Draw) -> Phrase:
    subject = you_or_other(draw)
    action = event(draw, subject)
    ending = draw.pick(times("preterite")) if draw.chance(40) and action.spanish not in UNDATED else None
    return yes_no("preterite", action, subject, ending)


def future_question(draw: Draw) -> Phrase:
    subject = you_or_other(draw)
    ending = draw.pick(times("future")) if draw.chance(50) else None
    return yes_no(draw.pick(("going", "future")), plan(draw, subject), subject, ending)


def perfect_question(draw: Draw) -> Phrase:
    """Have you already …? *¿Ya has …?*"""
    subject = you_or_other(draw)
    said = asked(subject, finished(draw, subject), "perfect", yes_no=True)
    first = f"{subject.spanish} ya" if subject in PRONOUNS else "ya"
    rest = said.spanish.removeprefix(subject.spanish) if subject in PRONOUNS else said.spanish
    return question(f"{said.english} yet", f"{first} {rest}", said)


def progressive_question(draw: Draw) -> Phrase:
    subject = you_or_other(draw)
    return yes_no("progressive", process(draw, subject), subject)


def be_question(draw: Draw) -> Phrase:
    """Are you tired? *¿Estás cansado?* With ser and estar the subject comes last."""
    subject, copula = you_or_other(draw), draw.pick(("ser", "estar", "estar"))
    adjective = draw.pick(adjectives(copula, "human"))
    said = asked(
        subject,
        being(copula, adjective, subject),
        draw.pick(("present", "present", "imperfect")),
        rest_first=True,
        yes_no=True,
    )
    return question(said.english, said.spanish, said)


def thing_question(draw: Draw) -> Phrase:
    """Is the window open? *¿Está abierta la ventana?*"""
    adjective = draw.pick(adjectives(draw.pick(("ser", "estar"))))
    things = [one for one in adjective.nouns if "human" not in one.kinds]
    if not things:
        return thing_question(draw)
    noun = draw.pick(things)
    determiner = "the" if noun.kinds & GENERIC else draw.pick(("the", "the", "this", "your"))
    subject = phrase(noun, determiner, numbered(draw, noun))
    if "your" in subject.english and not noun.kinds & {
        "clothing",
        "paired",
        "room",
        "home",
        "portable",
        "container",
        "pet",
    }:
        return thing_question(draw)
    said = asked(subject, being(adjective.copula, adjective, subject), "present", rest_first=True)
    return question(said.english, said.spanish, said)


def negative_question(draw: Draw) -> Phrase:
    """Why not: *¿Por qué no …?*"""
    subject = you_or_other(draw)
    tense = draw.pick(("present", "preterite"))
    action = habit(draw, subject) if tense == "present" else event(draw, subject)
    said = asked(subject, action, tense, negated=True)
    return question(f"why {said.english}", f"por qué {said.spanish}", said)


def why(draw: Draw) -> Phrase:
    subject = you_or_other(draw)
    if draw.chance(40):
        state = being("estar", draw.pick(adjectives("estar", "human")), subject)
        said = asked(subject, state, draw.pick(("present", "imperfect")), rest_first=True)
    else:
        said = asked(subject, event(draw, subject), "preterite")
    return question(f"why {said.english}", f"por qué {said.spanish}", said)


WITHOUT_OBJECT: Final = (
    "comprar,vender,leer,escribir,perder,encontrar,buscar,cocinar,preparar,pedir,romper,comer,beber,estudiar,aprender,"
    "construir,ganar,enviar,recibir,esconder,reparar,pintar,dibujar,traducir,hacer,olvidar,elegir,limpiar,ver"
)


def what(draw: Draw) -> Phrase:
    """What did she buy? *¿Qué compró ella?*"""
    subject, verb = you_or_other(draw), draw.pick(verbs_named(WITHOUT_OBJECT))
    tenses = ("preterite", "preterite", "going", "progressive" if "p" in verb.aspects else "preterite")
    tense = "preterite" if "x" in verb.aspects else draw.pick(tenses)
    said = asked(subject, act(verb.english, verb.spanish), tense)
    ending = draw.pick(times("preterite")) if tense == "preterite" and draw.chance(50) else Phrase("", "")
    return question(f"what {said.english} {ending.english}", f"qué {said.spanish} {ending.spanish}", said)


def what_noun(draw: Draw) -> Phrase:
    """What languages does he speak? *¿Qué idiomas …?*, what kind of thing."""
    subject, verb = you_or_other(draw), draw.pick([one for one in verbs() if one.determiners in ("any", "the", "a")])
    things = [one for one in verb.objects if one.number == "count" and one.lemma != "lotería"]
    if not things or "l" in verb.aspects or " " in verb.spanish:
        return what_noun(draw)
    head = draw.pick(things)
    wanted = phrase(head, "bare", numbered(draw, head))
    tense = "preterite" if "x" in verb.aspects else draw.pick(("preterite", "preterite", "going"))
    said = asked(subject, act(verb.english, verb.spanish), tense)
    return question(f"which {wanted.english} {said.english}", f"qué {wanted.spanish} {said.spanish}", wanted, said)


WHO: Final = NounPhrase("who", "quién")


def who(draw: Draw) -> Phrase:
    """Who as subject."""
    tense = draw.pick(("present", "preterite", "preterite", "going", "perfect"))
    action = {"present": habit, "perfect": finished}.get(tense, event)(draw, WHO)
    said = clause(WHO, action, tense)
    return question(said.english, said.spanish, said)


def whom(draw: Draw) -> Phrase:
    """Who as object: *¿A quién viste?*"""
    subject, verb = you_or_other(draw), draw.pick(person_verbs())
    said = asked(subject, act(verb.english, verb.spanish), draw.pick(("preterite", "preterite", "going", "future")))
    return question(f"who {said.english}", f"a quién {said.spanish}", said)


PLACED: Final = "comprar,encontrar,perder,esconder,aprender,ver,vender,alquilar,descubrir,fotografiar,guardar,plantar"
SOUGHT: Final = "small,stationery,shop,building,pet,tool,portable"


def where(draw: Draw) -> Phrase:
    """Where is it: *estar*; where something is done."""
    if draw.chance(35):
        return where_is(draw)
    subject = you_or_other(draw)
    verb = draw.pick(verbs_named(PLACED))
    action = draw.pick(
        (doing(verb, object_of(draw, verb)), act("live", "vivir"), act("work", "trabajar"), act("study", "estudiar"))
    )
    tense = "preterite" if action.rest else "present"
    said = asked(subject, action, tense)
    return question(f"where {said.english}", f"dónde {said.spanish}", said)


def where_is(draw: Draw) -> Phrase:
    subject = draw.pick((person, people))(draw) if draw.chance(40) else thing(draw, SOUGHT, ("the", "my"))
    standing = subject.head and subject.head.kinds & {"shop", "building"}
    said = asked(subject, act("be", "estar"), draw.pick(("present", "present" if standing else "imperfect")))
    return question(f"where {said.english}", f"dónde {said.spanish}", said)


def when(draw: Draw) -> Phrase:
    subject = you_or_other(draw)
    tense = draw.pick(("preterite", "going", "future"))
    action = draw.pick((plan if tense != "preterite" else event, plan, lambda draw, _: lasting(draw)))(draw, subject)
    if action.spanish in UNDATED | {"esperar", "proteger", "cuidar", "seguir"}:
        return when(draw)
    said = asked(subject, action, "preterite" if "x" in action.aspects else tense)
    return question(f"when {said.english}", f"cuándo {said.spanish}", said)


MANNER: Final = "romper,perder,encontrar,resolver,reparar,abrir,cerrar,cocinar,preparar,ganar,limpiar,pintar"


def how(draw: Draw) -> Phrase:
    """How was it done? How is your mother?"""
    if draw.chance(25):
        said = asked(draw.pick((person, people))(draw), act("be", "estar"), draw.pick(("present", "imperfect")))
        return question(f"how {said.english}", f"cómo {said.spanish}", said)
    verb = draw.pick(verbs_named(MANNER))
    tense = "preterite" if "x" in verb.aspects else draw.pick(("preterite", "going"))
    said = asked(you_or_other(draw), doing(verb, object_of(draw, verb)), tense)
    return question(f"how {said.english}", f"cómo {said.spanish}", said)


HAVING: Final = ("have", "tener", "present")
BUYING: Final = ("buy", "comprar", "preterite")
NEEDING: Final = ("need", "necesitar", "present")
COUNTABLE: Final = (
    "fruit,vegetable,clothing,readable,stationery,toy,pet,tableware,furniture,plant,hermano,hermana,hijo,hija,amigo,"
    "primo,tío,tía,nieto,sobrino"
)


def how_many(draw: Draw) -> Phrase:
    """How many sisters do you have? *¿Cuántas hermanas tienes?*"""
    head, subject = draw.pick(countable(COUNTABLE)), you_or_other(draw)
    bought = head.kinds & {"fruit", "vegetable", "clothing", "stationery"}
    in_english, infinitive, tense = draw.pick((HAVING, BUYING, NEEDING) if bought else (HAVING,))
    said = asked(subject, act(in_english, infinitive), tense)
    many = f"{'cuántas' if head.feminine else 'cuántos'} {spanish.plural(head.spanish)}"
    return question(
        f"how many {english.plural(head.english)} {said.english}", f"{many} {said.spanish}", head.lemma, said
    )


def how_much(draw: Draw) -> Phrase:
    """How much milk do you need? *¿Cuánta leche …?*"""
    head, subject = draw.pick(select("ingredient,drink,pantry")), you_or_other(draw)
    in_english, infinitive, tense = draw.pick((HAVING, BUYING, NEEDING, ("want", "querer", "present")))
    said = asked(subject, act(in_english, infinitive), tense)
    much = "cuánta" if head.feminine else "cuánto"
    return question(
        f"how much {head.english} {said.english}", f"{much} {head.spanish} {said.spanish}", head.lemma, said
    )


SOLD: Final = (
    "clothing,paired,fruit,furniture,decor,device,jewel,ride,stationery,gift,libro,revista,boleto,instrument,tableware"
)


def how_much_is_it(draw: Draw) -> Phrase:
    """Prices: *¿Cuánto cuesta …?*"""
    said = asked(thing(draw, SOLD, ("the", "this", "that"), 40), act("cost", "costar"), "present")
    return question(f"how much {said.english}", f"cuánto {said.spanish}", said)


FAVOURITE: Final = (
    "color,libro,película,canción,programa,comida,restaurante,playa,ciudad,museo,poema,novela,juego,postre,parque,cuento,"
    "revista,palabra,tienda,clase,hotel,ópera,flor,receta,chiste,telenovela"
)
BEST: Final = (
    "restaurante,hotel,museo,playa,ciudad,pueblo,castillo,parque,libro,película,coche,isla,universidad,tienda,río,"
    "montaña,puente,torre,calle,barrio,iglesia,catedral,edificio,teatro,estadio,lago,bosque,palacio"
)
PLACES: Final = frozenset({"building", "outdoors", "nature", "shop", "cross", "build"})


def which(draw: Draw) -> Phrase:
    """What is your favorite song? *¿Cuál es tu canción favorita?* What is the best hotel?"""
    if draw.chance(20):
        mine = phrase(draw.pick(select(FAVOURITE)), "your", adjective=Adjective("favorito", "favorite", "ser", "-", ()))
        return question(f"what is {mine.english}", f"cuál es {mine.spanish}", "ser", mine)
    head = draw.pick(select(BEST))
    adjective = draw.pick([one for one in descriptions(head) if one.degree in ("er", "more")])
    best, one = english.superlative(adjective.english, adjective.degree), phrase(head)
    of_all = ("of all", "de todas" if head.feminine else "de todos")
    somewhere = (("in the city", "de la ciudad"), ("in the country", "del país"), ("in the world", "del mundo"))
    of_what = draw.pick(somewhere if head.kinds & PLACES and head.lemma not in ("ciudad", "isla") else (of_all,))
    in_spanish = f"cuál es {one.spanish} más {one.agree(adjective.spanish)} {of_what[1]}"
    return question(f"what is the {best} {head.english} {of_what[0]}", in_spanish, "ser", one, adjective.spanish)


def formal(draw: Draw) -> Phrase:
    """To a stranger, *usted*: Are you tired, sir?"""
    woman = draw.chance(50)
    subject = NounPhrase("you", "usted", feminine=woman, formal=True)
    title = ("ma'am", "señora") if woman else ("sir", "señor")
    if draw.chance(45):
        adjective = draw.pick((*adjectives("estar", "human"), *nationalities()))
        action = being(adjective.copula, adjective, subject)
        tense = "present" if adjective.copula == "ser" else draw.pick(("present", "imperfect"))
        said = asked(replace(subject, spanish=""), action, tense)
    else:
        tense = draw.pick(("present", "preterite"))
        action = habit(draw, subject) if tense == "present" else event(draw, subject)
        said = asked(subject, action, tense)
    if "your" in said.english or "spend money" in said.english:
        return formal(draw)
    return question(f"{said.english}, {title[0]}", f"{said.spanish}, {title[1]}", said)


CONSTRUCTIONS: Final = {
    "yes-no question, present": present_question,
    "yes-no question, preterite": preterite_question,
    "yes-no question, future": future_question,
    "yes-no question, perfect": perfect_question,
    "yes-no question, progressive": progressive_question,
    "yes-no question, ser and estar": be_question,
    "yes-no question, things": thing_question,
    "por qué": why,
    "por qué no": negative_question,
    "qué": what,
    "qué with noun": what_noun,
    "quién": who,
    "a quién": whom,
    "dónde": where,
    "cuándo": when,
    "cómo": how,
    "cuántos": how_many,
    "cuánto with mass nouns": how_much,
    "cuánto cuesta": how_much_is_it,
    "cuál": which,
    "usted": formal,
}
