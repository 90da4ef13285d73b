"""A clause inside another: relative, reported, causal, conditional, of purpose and time, and the subjunctive."""

from typing import Final

from data.phrasebook import english, spanish
from data.phrasebook.clauses import (
    Action,
    act,
    action_of,
    being,
    clause,
    dated_activity,
    doing,
    event,
    habit,
    is_so,
    may_meet,
    object_of,
    predicate,
    process,
    serving,
    statement,
    told,
    transitive,
)
from data.phrasebook.draw import Draw
from data.phrasebook.lexicon import activities, adjectives, descriptions, noun, select, table, verb, verbs_named
from data.phrasebook.nounphrases import (
    HE,
    SHE,
    THEY,
    WE,
    YOU,
    I,
    NounPhrase,
    Phrase,
    anybody,
    name,
    numbered,
    people,
    person,
    phrase,
    relative,
)
from data.phrasebook.numerals import number
from data.phrasebook.spanish import EL


def speaker(draw: Draw) -> NounPhrase:
    """Who thinks, says or does the first thing."""
    return draw.pick((I, I, YOU, HE, SHE, WE, name(draw), relative(draw)))


def same_again(subject: NounPhrase) -> NounPhrase:
    """The subject the second time: he or she in English, nothing in Spanish."""
    pronoun = subject.english if subject.slot != EL else ("she" if subject.feminine else "he")
    return NounPhrase(pronoun, "", slot=subject.slot, feminine=subject.feminine)


# --------------------------------------------------------------------------------------------------- relative clauses

RECALLED: Final = (
    "comprar,leer,ver,escribir,vender,perder,encontrar,pintar,recibir,alquilar,dibujar,traducir,enviar,visitar"
)


def relative_object(draw: Draw) -> Phrase:
    """The book that I read is interesting: *que*, with nothing left behind."""
    done = draw.pick(verbs_named(RECALLED))
    head = draw.pick([one for one in done.objects if one.number != "mass"])
    possible = [one for one in descriptions(head) if one.degree != "color"]
    if not possible:
        return relative_object(draw)
    target = phrase(head, "the", numbered(draw, head))
    subject = narrowed(target, "that", clause(speaker(draw), act(done.english, done.spanish), "preterite"))
    past = "preterite" if "watchable" in head.kinds else "imperfect"
    return is_so(subject, draw.pick(possible), draw.pick(("present", past)), draw.chance(15))


def narrowed(one: NounPhrase, pronoun: str, inner: Phrase) -> NounPhrase:
    """A noun phrase with a relative clause."""
    link = f"{pronoun} " if pronoun else ""
    in_spanish = f"{one.spanish} que {inner.spanish}" if pronoun else f"{one.spanish} {inner.spanish}"
    return NounPhrase(
        f"{one.english} {link}{inner.english}", in_spanish, (*one.lemmas, *inner.lemmas), one.slot, one.feminine
    )


KINDS_OF_CLAUSE: Final = (("present", habit), ("preterite", event), ("progressive", process))
WHO: Final = NounPhrase("who", "que")


def relative_subject(draw: Draw) -> Phrase:
    """The man who lives here is my uncle."""
    one = phrase(draw.pick(select("hombre,mujer,niño,niña,señora,estudiante,profession")))
    tense, doing_what = draw.pick(KINDS_OF_CLAUSE)
    subject = narrowed(one, "", clause(WHO, doing_what(draw, WHO), tense))
    if draw.chance(50):
        return is_so(subject, draw.pick(adjectives("ser", "human")), "present", draw.chance(15))
    child = set(one.lemmas) & {"niño", "niña"}
    relations = "hijo,hija,sobrino,sobrina" if child else "hermano,hermana,primo,tío,tía,vecino,amigo,jefe"
    relation = draw.pick([noun for noun in select(relations) if noun.feminine == one.feminine])
    whose = phrase(relation, draw.pick(("my", "your")))
    return told(subject, act(f"be {whose.english}", "ser", whose.spanish, whose), "present", draw.chance(15))


TALENTS: Final = "tocar,hablar,jugar a,enseñar,practicar,estudiar"


def relative_indefinite(draw: Draw) -> Phrase:
    """I have a friend who plays the violin: *tengo un amigo que toca el violín*."""
    one = phrase(draw.pick(select("amigo,vecino,primo,tío,tía,hermana,hermano,colega,sobrino")), "a")
    talent = draw.pick(verbs_named(TALENTS))
    ways = [one for one in activities("s") if "h" in one.aspects and "x" not in one.aspects]
    action = doing(talent, object_of(draw, talent)) if draw.chance(70) else action_of(draw.pick(ways))
    whole = narrowed(one, "", clause(WHO, action, "present"))
    return told(speaker(draw), act(f"have {whole.english}", "tener", whole.spanish, whole), "present")


# ------------------------------------------------------------------------------------------------- what one thinks

BELIEVING: Final = (
    ("think that", "creer", "que", "present"),
    ("know that", "saber", "que", "present"),
    ("say that", "decir", "que", "present"),
    ("hear that", "oír", "que", "preterite"),
    ("be sure that", "estar", "seguro", "present"),
)


def content(draw: Draw, subject: NounPhrase) -> Phrase:
    """Something that may be thought or said."""
    shape = draw.pick(("ser", "estar", "event", "event", "plan"))
    if shape in ("ser", "estar"):
        quality = draw.pick(adjectives(shape, "human"))
        return clause(subject, being(shape, quality, subject), "present", draw.chance(20))
    if shape == "event":
        return clause(subject, event(draw, subject), "preterite", draw.chance(15))
    return clause(subject, dated_activity(draw), draw.pick(("going", "future")))


def reported(draw: Draw) -> Phrase:
    """I think that she is tired: *creo que está cansada*."""
    who, subject = speaker(draw), draw.pick((person, person, people))(draw)
    if not may_meet(who, subject):
        return reported(draw)
    in_english, infinitive, link, tense = draw.pick(BELIEVING)
    inner = content(draw, subject)
    link = f"{who.agree('seguro')} de que" if link == "seguro" else link
    return told(who, act(f"{in_english} {inner.english}", infinitive, f"{link} {inner.spanish}", inner), tense)


UNKNOWN: Final = (
    ("where", "dónde", "live", "vivir", "present"),
    ("where", "dónde", "work", "trabajar", "present"),
    ("where", "dónde", "be", "estar", "present"),
    ("where", "dónde", "study", "estudiar", "present"),
    ("what", "qué", "want", "querer", "present"),
    ("what", "qué", "buy", "comprar", "preterite"),
    ("what", "qué", "say", "decir", "preterite"),
    ("when", "cuándo", "arrive", "llegar", "preterite"),
    ("when", "cuándo", "leave", "irse", "preterite"),
    ("when", "cuándo", "come back", "volver", "future"),
    ("why", "por qué", "leave", "irse", "preterite"),
    ("why", "por qué", "laugh", "reírse", "preterite"),
    ("why", "por qué", "cry", "llorar", "progressive"),
    ("who", "a quién", "call", "llamar", "preterite"),
)


def indirect_question(draw: Draw) -> Phrase:
    """I don't know where Ana lives: *no sé dónde vive Ana*."""
    who, subject = draw.pick((I, I, WE, HE, SHE, name(draw))), draw.pick((person, people))(draw)
    if not may_meet(who, subject):
        return indirect_question(draw)
    word, palabra, in_english, infinitive, tense = draw.pick(UNKNOWN)
    inner = clause(subject, act(in_english, infinitive), tense)
    in_spanish = f"{palabra} {spanish.verb_group(infinitive, tense, subject.slot)} {subject.spanish}"
    return told(who, act(f"know {word} {inner.english}", "saber", in_spanish, inner), "present", negated=True)


# ------------------------------------------------------------------------------------- cause, condition, purpose, time

HINDRANCES: Final = (
    ("estar cansado", "tired"),
    ("estar enfermo", "sick"),
    ("estar ocupado", "busy"),
    ("estar agotado", "exhausted"),
    ("estar preocupado", "worried"),
    ("tener sueño", "sleepy"),
)


def because(draw: Draw) -> Phrase:
    """She stayed home because she was sick."""
    subject = speaker(draw)
    if draw.chance(50):
        in_spanish, in_english, reason, reason_english = draw.pick(table("reasons"))
        done = clause(subject, predicate(in_spanish, in_english), "preterite")
    else:
        reason, reason_english = draw.pick(HINDRANCES)
        done = clause(subject, leisure(draw), "preterite", negated=True)
    again, (copula, state) = same_again(subject), reason.split()
    agreeing = again.agree(state) if copula == "estar" else state
    why = clause(again, act(f"be {reason_english}", copula, agreeing, state), "imperfect")
    return statement(f"{done.english} because {why.english}", f"{done.spanish} porque {why.spanish}", done, why)


OBLIGED: Final = (
    "arrive on time",
    "tell the truth",
    "go back home",
    "make noise",
    "arrive late",
    "eat a lot",
    "ask questions",
)


def leisure(draw: Draw) -> Action:
    """Something that one may do or leave undone, as the day goes."""
    possible = [one for one in activities("h") if not {"s", "x"} & {*one.aspects} and one.english not in OBLIGED]
    return action_of(draw.pick(possible))


def conditional(draw: Draw) -> Phrase:
    """If it rains, we will stay home: *si* with the present, then the future."""
    in_english, in_spanish, lemma, done, done_english = draw.pick(table("conditions"))
    subject = draw.pick((I, WE)) if "you" in in_english.split() else anybody(draw)
    then = clause(subject, predicate(done, done_english), "future")
    return statement(f"if {in_english}, {then.english}", f"si {in_spanish}, {then.spanish}", lemma, then)


def in_order_to(draw: Draw) -> Phrase:
    """We went to the market to buy apples: *para comprar*."""
    place, infinitive, things = draw.pick(table("errands"))
    where, head = phrase(noun(place)), draw.pick(select(things))
    goal = doing(verb(infinitive), phrase(head, "a", head.several))
    rest = f"a {where.spanish} para {goal.infinitive}"
    going = act(f"go to {where.english} to {goal.english}", "ir", rest, where, goal)
    return told(speaker(draw), going, draw.pick(("preterite", "preterite", "going", "perfect")))


SPANS: Final = (
    ("hour", "hora", True),
    ("day", "día", False),
    ("week", "semana", True),
    ("month", "mes", False),
    ("year", "año", False),
)
UNITS: Final = {"hours": SPANS[:1], "short": SPANS[:3], "long": SPANS[2:], "any": SPANS, "years": SPANS[4:]}


def span(draw: Draw, units: tuple[tuple[str, str, bool], ...]) -> tuple[str, str]:
    """two years: *dos años*."""
    in_english, in_spanish, feminine = draw.pick(units)
    count, counted = number(draw.pick(range(2, 12)), feminine)
    return f"{count} {in_english}s", f"{counted} {spanish.plural(in_spanish)}"


def for_so_long(draw: Draw) -> Phrase:
    """She has been living here for two years: *hace dos años que vive aquí*."""
    subject, action = anybody(draw), serving(draw, "since")
    years, años = span(draw, UNITS["hours"] if action.spanish == "esperar" else SPANS[3:])
    in_english = clause(subject, act(f"be {gerund_of(action)}", action.spanish), "perfect").english
    in_spanish = clause(subject, action, "present").spanish
    return statement(f"{in_english} for {years}", f"hace {años} que {in_spanish}", subject, action)


def ago(draw: Draw) -> Phrase:
    """She arrived two days ago: *llegó hace dos días*."""
    unit = draw.pick(("short", "long", "long", "any", "hours", "years"))
    years, años = span(draw, UNITS[unit])
    return told(anybody(draw), serving(draw, f"ago {unit}"), "preterite", ending=Phrase(f"{years} ago", f"hace {años}"))


def gerund_of(action: Action) -> str:
    return english.verb_form(action.english, "gerund")


def before_and_after(draw: Draw) -> Phrase:
    """before eating: *antes de comer*."""
    subject, first, second = speaker(draw), serving(draw, "routine"), serving(draw, "routine")
    if first == second:
        return before_and_after(draw)
    in_english, in_spanish = draw.pick((("before", "antes de"), ("after", "después de")))
    done = clause(subject, first, draw.pick(("preterite", "preterite", "going", "present")))
    rest = f"{spanish.infinitive_of(second.spanish, subject.slot)} {second.rest}"
    return statement(
        f"{done.english} {in_english} {gerund_of(second)}", f"{done.spanish} {in_spanish} {rest}", done, second
    )


def without(draw: Draw) -> Phrase:
    """He left without paying: *sin pagar*."""
    subject, (in_spanish, in_english, left_out, left_out_english) = speaker(draw), draw.pick(table("without"))
    first, second = predicate(in_spanish, in_english), predicate(left_out, left_out_english)
    done = clause(subject, first, draw.pick(("preterite", "preterite", "perfect", "going")))
    rest = f"{spanish.infinitive_of(second.spanish, subject.slot)} {second.rest}"
    return statement(f"{done.english} without {gerund_of(second)}", f"{done.spanish} sin {rest}", done, second)


# -------------------------------------------------------------------------------------------------------- subjunctive

WISHES: Final = (("want", "querer"), ("want", "querer"), ("need", "necesitar"))
WISHED: Final = {YOU: "you", HE: "him", SHE: "her", THEY: "them"}


def subjunctive(subject: NounPhrase, action: Action) -> str:
    """The Spanish of a clause in the present subjunctive."""
    group = spanish.verb_group(action.spanish, "subjunctive", subject.slot)
    return " ".join(word for word in (subject.spanish, group, action.rest) if word)


def wish(draw: Draw) -> Phrase:
    """I want you to come: *quiero que vengas*."""
    who = draw.pick((I, I, WE, HE, SHE, name(draw), relative(draw, ("my",))))
    subject = draw.pick((YOU, YOU, HE, SHE, THEY, name(draw), relative(draw, ("my",))))
    action = draw.pick((dated_activity(draw), transitive(draw, "p")))
    if "x" in action.aspects or not may_meet(who, subject) or (who.slot == EL and subject in (HE, SHE)):
        return wish(draw)
    in_english, infinitive = draw.pick(WISHES)
    wanted = f"{in_english} {WISHED.get(subject, subject.english)} to {action.english}"
    whole = act(wanted, infinitive, f"que {subjunctive(subject, action)}", subject, action)
    return told(who, whole, "present", draw.chance(20))


def hope(draw: Draw) -> Phrase:
    """I hope that you win: *espero que ganes*."""
    who, subject = draw.pick((I, I, WE)), draw.pick((YOU, YOU, HE, SHE, THEY, name(draw), relative(draw)))
    if not may_meet(who, subject):
        return hope(draw)
    action = serving(draw, "hope")
    hoped = f"hope that {clause(subject, action, 'present').english}"
    whole = act(hoped, "esperar", f"que {subjunctive(subject, action)}", subject, action)
    return told(who, whole, "present")


CONSTRUCTIONS: Final = {
    "relative clause, object": relative_object,
    "relative clause, subject": relative_subject,
    "relative clause, indefinite": relative_indefinite,
    "que clause": reported,
    "indirect question": indirect_question,
    "porque": because,
    "si": conditional,
    "para with infinitive": in_order_to,
    "hace que": for_so_long,
    "hace": ago,
    "antes de and después de": before_and_after,
    "sin": without,
    "subjunctive after querer": wish,
    "subjunctive after esperar": hope,
}
