"""Pronouns at the verb: before it, attached to it, two at once; and reflexives.

The noun is named first (*¿La carta? Él la leyó*), so that English *it* tells which gender Spanish needs.
"""

from typing import Final

from data.phrasebook import spanish
from data.phrasebook.clauses import (
    UNDATED,
    Action,
    act,
    action_of,
    clause,
    ended,
    is_so,
    may_meet,
    question,
    sequence,
    statement,
    times,
    told,
)
from data.phrasebook.draw import Draw
from data.phrasebook.lexicon import (
    Verb,
    activities,
    adjective,
    descriptions,
    noun,
    person_verbs,
    select,
    table,
    verbs_named,
)
from data.phrasebook.nounphrases import (
    DIRECT,
    HE,
    INDIRECT,
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
    somebody,
)
from data.phrasebook.spanish import EL

PERSONS: Final = (I, YOU, HE, SHE, WE, THEY)
PLEASE: Final = ((", please", ", por favor"), ("", ""))
PARTICLES: Final = ("on", "off", "up", "away")


def actor(draw: Draw) -> NounPhrase:
    """Who does it: mostly a pronoun."""
    return draw.pick((name(draw), relative(draw), I, I, YOU, HE, SHE, WE))


def pronoun_for(target: NounPhrase) -> tuple[str, str]:
    """it or them, and the clitic of the same gender and number: lo, la, los, las."""
    clitic = ("la" if target.feminine else "lo") + ("s" if target.plural else "")
    return ("them" if target.plural else "it"), clitic


def placed(verb_english: str, pronoun: str) -> str:
    """turn it on, look for it."""
    first, _, particle = verb_english.partition(" ")
    return f"{first} {pronoun} {particle}" if particle in PARTICLES else f"{verb_english} {pronoun}"


def with_pronoun(
    subject: NounPhrase, verb: Action, pronoun: tuple[str, str], tense: str, negated: bool = False
) -> Phrase:
    """A clause whose object is a pronoun, in English after the verb, in Spanish before or at its end."""
    in_english = clause(subject, act(placed(verb.english, pronoun[0]), verb.spanish), tense, negated).english
    group = spanish.verb_group(verb.spanish, tense, subject.slot, pronoun[1])
    words = (subject.spanish, "no" if negated else "", group)
    return Phrase(in_english, " ".join(word for word in words if word), (*subject.lemmas, verb.spanish))


HANDLED: Final = (
    "comprar,vender,leer,abrir,cerrar,lavar,limpiar,usar,reparar,romper,perder,encontrar,buscar,pintar,esconder,"
    "envolver,traducir,corregir,copiar,imprimir,mover,doblar,planchar,coser,recoger,llenar,vaciar,devolver,olvidar,"
    "instalar,encender,apagar,firmar,enviar,recibir,cortar,probar,pelar,escribir,terminar,entender,repetir,quemar,regar"
)


def handled(draw: Draw) -> tuple[Verb, Action, NounPhrase]:
    """Something done, and what it is done to."""
    verb = draw.pick(verbs_named(HANDLED))
    head = draw.pick([one for one in verb.objects if one.number != "mass"])
    target = phrase(head, draw.pick(("the", "the", "this", "that")), numbered(draw, head))
    return verb, act(verb.english, verb.spanish), target


def mentioned(target: NounPhrase) -> Phrase:
    """The letter? *¿La carta?*"""
    return question(target.english, target.spanish, target)


def before_verb(draw: Draw) -> Phrase:
    """The book? I read it yesterday: *lo leí ayer*."""
    _, doing, target = handled(draw)
    said, when = with_pronoun(actor(draw), doing, pronoun_for(target), "preterite"), draw.pick(times("preterite"))
    if said.english.split()[-1] == when.english.split()[0]:  # turned them on on Saturday
        return before_verb(draw)
    return sequence(mentioned(target), ended(said, when))


def before_negated_verb(draw: Draw) -> Phrase:
    """The book? I haven't read it: *no lo he leído*."""
    _, doing, target = handled(draw)
    tense = draw.pick(("preterite", "perfect"))
    return sequence(mentioned(target), ended(with_pronoun(actor(draw), doing, pronoun_for(target), tense, True)))


def at_gerund(draw: Draw) -> Phrase:
    """The letter? She is reading it: *está leyéndola*."""
    verb, doing, target = handled(draw)
    if "p" not in verb.aspects:
        return at_gerund(draw)
    return sequence(mentioned(target), ended(with_pronoun(actor(draw), doing, pronoun_for(target), "progressive")))


MODALS: Final = (("want to", "querer", ""), ("need to", "necesitar", ""), ("have to", "tener", "que "))


def at_infinitive(draw: Draw) -> Phrase:
    """This film is good. I want to see it: *quiero verla*."""
    verb, doing, target = handled(draw)
    head = target.head
    qualities = (*descriptions(head), *descriptions(head, "estar")) if head and "x" not in verb.aspects else ()
    if not qualities:
        return at_infinitive(draw)
    opening, subject = is_so(target, draw.pick(qualities)), draw.pick((I, I, YOU, HE, SHE, WE))
    if draw.chance(30):
        return sequence(opening, ended(with_pronoun(subject, doing, pronoun_for(target), "going")))
    in_english, infinitive, link = draw.pick(MODALS)
    it, clitic = pronoun_for(target)
    attached = spanish.attached(verb.spanish, clitic)
    whole = act(f"{in_english} {placed(verb.english, it)}", infinitive, f"{link}{attached}", verb.spanish)
    return sequence(opening, told(subject, whole, "present", draw.chance(20)))


def orderly(draw: Draw) -> tuple[Verb, Phrase, NounPhrase]:
    """What is to be done, why, and with what: close, The window is open, the window."""
    quality, copula, orders = draw.pick(table("orders"))
    verb, described = draw.pick(verbs_named(orders)), adjective(quality, copula)
    things = [noun for noun in verb.objects if noun in described.nouns]
    if not things:
        return orderly(draw)
    head = draw.pick(things)
    target = phrase(head, draw.pick(("the", "this", "that")), numbered(draw, head))
    return verb, is_so(target, described), target


def at_command(draw: Draw) -> Phrase:
    """The window is open. Close it, please: *ciérrala*."""
    verb, opening, target = orderly(draw)
    (it, clitic), please = pronoun_for(target), draw.pick(PLEASE)
    commanded = spanish.attached(spanish.command(verb.spanish), clitic)
    order = statement(placed(verb.english, it) + please[0], commanded + please[1], verb.spanish)
    return sequence(opening, order)


def before_negative_command(draw: Draw) -> Phrase:
    """This letter is mine. Don't read it: *no la leas*."""
    verb, _, target = orderly(draw)
    if target.head is None or verb.spanish in ("probar", "resolver", "repetir", "memorizar", "comprar"):
        return before_negative_command(draw)
    mine = phrase(target.head, draw.pick(("this", "that")), target.plural)
    opening = told(mine, act("be mine", "ser", mine.agree("mío")), "present")
    it, clitic = pronoun_for(target)
    forbidden = f"no {clitic} {spanish.command(verb.spanish, negated=True)}"
    return sequence(opening, statement(f"don't {placed(verb.english, it)}", forbidden, verb.spanish))


def person_before_verb(draw: Draw) -> Phrase:
    """I saw her: *la vi*; he knows me: *me conoce*."""
    subject, whom = draw.pick((actor, somebody))(draw), other_person(draw)
    if subject.slot == whom.slot or {I, WE} == {subject, whom}:
        return person_before_verb(draw)
    verb, tense = draw.pick(person_verbs()), draw.pick(("preterite", "preterite", "future", "perfect"))
    tense = "preterite" if "x" in verb.aspects else tense
    pronoun = (OBJECT_ENGLISH[whom], DIRECT[whom])
    said = with_pronoun(subject, act(verb.english, verb.spanish), pronoun, tense, draw.chance(25))
    return ended(
        said,
        draw.pick(times(tense)) if tense != "perfect" and verb.spanish not in UNDATED and draw.chance(50) else None,
    )


def other_person(draw: Draw) -> NounPhrase:
    return draw.pick(PERSONS)


# ------------------------------------------------------------------------------------------- giving, telling, showing


def gift(draw: Draw, definite: bool) -> tuple[str, str, NounPhrase]:
    """A verb of giving in both languages, and what is given."""
    in_english, infinitive, things = draw.pick(table("giving"))
    if infinitive == "explicar" or (definite and infinitive == "escribir"):
        return gift(draw, definite)
    head = draw.pick(
        [one for one in select(things) if not definite or (one.number != "mass" and one.lemma != "mentira")]
    )
    return in_english, infinitive, phrase(head, "the" if definite else "a", definite and numbered(draw, head))


def receiver(draw: Draw, subject: NounPhrase) -> NounPhrase:
    """Somebody whom the subject may give something to."""
    whom = other_person(draw)
    return receiver(draw, subject) if whom.slot == subject.slot or {whom, subject} == {I, WE} else whom


def indirect(draw: Draw) -> Phrase:
    """She gave me the keys: *me dio las llaves*; Ana the keys: *le dio las llaves a Ana*, with pronoun and noun."""
    subject, (in_english, infinitive, owned) = actor(draw), gift(draw, draw.chance(60))
    tense, whom = draw.pick(("preterite", "preterite", "future", "perfect")), receiver(draw, subject)
    to = ""
    pronoun = (OBJECT_ENGLISH[whom], INDIRECT[whom])
    if whom in (HE, SHE, THEY):
        whom = draw.pick((name, relative))(draw)
        whom = whom if may_meet(subject, whom) else phrase(noun("vecino"))
        pronoun, to = (whom.english, "le"), f"a {whom.spanish}"
    said = with_pronoun(subject, act(in_english, infinitive), pronoun, tense)
    return ended(said, Phrase(owned.english, f"{owned.spanish} {to}", (*owned.lemmas, *whom.lemmas)))


def two_pronouns(draw: Draw) -> Phrase:
    """The ring? He gave it to me: *me lo dio*; to her: *se lo dio a ella*."""
    subject, (in_english, infinitive, owned) = actor(draw), gift(draw, True)
    whom, (it, clitic) = receiver(draw, subject), pronoun_for(owned)
    first = "se" if whom in (HE, SHE, THEY) else INDIRECT[whom]
    pronouns = (f"{it} to {OBJECT_ENGLISH[whom]}", f"{first} {clitic}")
    tense = draw.pick(("preterite", "future", "perfect"))
    said = with_pronoun(subject, act(in_english, infinitive), pronouns, tense, draw.chance(15))
    to = f"a {whom.spanish}" if first == "se" else ""
    return sequence(mentioned(owned), ended(said, Phrase("", to)))


TO: Final = (
    ("me", "me", "", I),
    ("me", "me", "", I),
    ("us", "nos", "", WE),
    ("her", "se", " a ella", YOU),
    ("him", "se", " a él", YOU),
)


def two_at_command(draw: Draw) -> Phrase:
    """I need the pen. Give it to me: *dámelo*. You have the pen. Give it to her: *dáselo*."""
    in_english, infinitive, owned = gift(draw, True)
    if infinitive == "vender":
        return two_at_command(draw)
    (whom, first, to, who), please = draw.pick(TO), draw.pick(PLEASE)
    has = ("know", "conocer") if infinitive == "contar" else ("have", "tener")
    wish, querer = has if who is YOU else draw.pick((("need", "necesitar"), ("want", "querer")))
    opening = told(who, act(f"{wish} {owned.english}", querer, owned.spanish, owned), "present")
    it, clitic = pronoun_for(owned)
    commanded = spanish.attached(spanish.command(infinitive), first + clitic)
    said = f"{in_english} {it} to {whom}{please[0]}"
    return sequence(opening, statement(said, f"{commanded}{to}{please[1]}", infinitive))


# --------------------------------------------------------------------------------------------------------- reflexives

OWN: Final = ("my", "your", "his", "our", "their")
BOTH: Final = ("mano", "pie", "diente", "uña")


def own(subject: NounPhrase) -> str:
    """my, your, her: whose body it is in English."""
    return "her" if subject.feminine and subject.slot == EL else OWN[subject.slot]


def own_body(draw: Draw) -> Phrase:
    """She washes her hands: *se lava las manos*, with the article."""
    subject = draw.pick((actor, somebody))(draw)
    in_english, infinitive, things = draw.pick(table("body_care"))
    head = draw.pick(select(things))
    plural = head.lemma in BOTH or head.several or head.number == "plural"
    if subject.plural and not plural and head.lemma != "pelo":
        return own_body(draw)  # "our arm" would be one arm of several people
    target = phrase(head, "the", plural)
    action = act(f"{in_english} {target.english.replace('the', own(subject), 1)}", infinitive, target.spanish, target)
    if infinitive == "romperse" or head.lemma == "dedo":
        return told(subject, action, "preterite", ending=draw.pick(times("preterite")))
    return told(subject, action, draw.pick(("present", "preterite", "going", "progressive")))


def reflexives() -> list[Action]:
    return [action_of(one) for one in activities() if one.spanish.split()[0].endswith("se")]


def reflexive(draw: Draw) -> Phrase:
    """She gets up early: *se levanta temprano*."""
    subject, action = draw.pick((actor, somebody))(draw), draw.pick(reflexives())
    if "h" in action.aspects and draw.chance(50):
        return told(subject, action, "present", draw.chance(20))
    if action.spanish == "reírse":
        return told(subject, action, "preterite", draw.chance(25))
    tenses = ("preterite", "preterite", "perfect") if "x" in action.aspects else ("preterite", "perfect", "future")
    return told(subject, action, draw.pick(tenses), draw.chance(25))


def reflexive_infinitive(draw: Draw) -> Phrase:
    """I want to leave: *quiero irme*, the pronoun goes with the subject."""
    subject, action = actor(draw), draw.pick([one for one in reflexives() if "x" not in one.aspects])
    in_english, infinitive, link = draw.pick((*MODALS, ("prefer to", "preferir", "")))
    rest = f"{link}{spanish.infinitive_of(action.spanish, subject.slot)} {action.rest}".strip()
    whole = act(f"{in_english} {action.english}", infinitive, rest, *action.lemmas)
    return told(subject, whole, "present", infinitive != "preferir" and draw.chance(20))


CONSTRUCTIONS: Final = {
    "proclitic object pronoun": before_verb,
    "proclitic object pronoun, negated": before_negated_verb,
    "proclitic personal pronoun": person_before_verb,
    "enclitic on infinitive": at_infinitive,
    "enclitic on gerund": at_gerund,
    "enclitic on command": at_command,
    "proclitic in negative command": before_negative_command,
    "indirect object pronoun": indirect,
    "two pronouns": two_pronouns,
    "two enclitics on command": two_at_command,
    "reflexive with article": own_body,
    "reflexive": reflexive,
    "reflexive infinitive": reflexive_infinitive,
}
