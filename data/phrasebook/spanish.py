"""Spanish morphology: written accents, plurals and feminines, conjugation, and clitics that stand at the verb's end.

A person is one of five slots, since *vosotros* is left out: yo, tú, él (and usted), nosotros, ellos (and ustedes).
"""

import functools
import re
from typing import Final

from data.phrasebook.lexicon import table

YO, TU, EL, NOSOTROS, ELLOS = range(5)
ACUTE: Final = str.maketrans("aeiou", "áéíóú")
PLAIN: Final = str.maketrans("áéíóú", "aeiou")
VOWELS: Final = "aeiouáéíóúü"
# One nucleus each: a weak vowel glides into a strong one beside it, and the u of que, gui is silent.
NUCLEUS: Final = re.compile(r"(?<=[qg])u(?=[eéií])|[iuü]?[aeoáéó][iuü](?![aeoáéó])|[iuü]?[aeoáéó]|[iuü][íúiu]|[íúiuü]")
HIATUS: Final = re.compile("[aeoáéó]h?[íú]|[íú]h?[aeoáéó]")
REFLEXIVE: Final = ("me", "te", "se", "nos", "se")

# ---------------------------------------------------------------------------------------------------- written accents


def nuclei(word: str) -> list[re.Match[str]]:
    """The vowels that bear each syllable, left to right."""
    return [match for match in NUCLEUS.finditer(word) if not _silent(word, match)]


def _silent(word: str, match: re.Match[str]) -> bool:
    return (
        match.group() == "u" and word[match.start() - 1 : match.start()] in ("q", "g") and _before_e_or_i(word, match)
    )


def _before_e_or_i(word: str, match: re.Match[str]) -> bool:
    return word[match.end() : match.end() + 1] in ("e", "é", "i", "í")


def stressed(word: str) -> int:
    """Which syllable is stressed, counted from the left."""
    found = nuclei(word)
    marked = [index for index, match in enumerate(found) if set(match.group()) & set("áéíóú")]
    if marked:
        return marked[0]
    return max(0, len(found) - (2 if word[-1] in "aeiouns" else 1))


def accented(word: str, stress: int) -> str:
    """The word with an acute where the rules of spelling want one for this stress, and nowhere else."""
    if HIATUS.search(word):
        return word
    word = word.translate(PLAIN)
    found = nuclei(word)
    if len(found) == 1 or stress == stressed(word):
        return word
    start, text = found[stress].start(), found[stress].group()
    strong = next((index for index, vowel in enumerate(text) if vowel in "aeo"), len(text) - 1) + start
    return word[:strong] + word[strong].translate(ACUTE) + word[strong + 1 :]


def plural(word: str) -> str:
    """lápiz → lápices, canción → canciones, joven → jóvenes, jueves → jueves."""
    if word[-1] in VOWELS:
        return word + "s"
    if word[-1] == "z":
        return word[:-1] + "ces"
    if word[-1] not in "dljnrsy":
        return word + "s"
    if word[-1] == "s" and len(nuclei(word)) > 1 and stressed(word) < len(nuclei(word)) - 1:
        return word
    return accented(word + "es", stressed(word))


def feminine(adjective: str) -> str:
    """rojo → roja, trabajador → trabajadora, inglés → inglesa; verde stays. Comparatives in -or have one form too."""
    if adjective.endswith("o"):
        return adjective[:-1] + "a"
    if adjective in ("mejor", "peor", "mayor", "menor"):
        return adjective
    if re.search("or$|[áé][sn]$|ñol$", adjective):
        return accented(adjective + "a", stressed(adjective))
    return adjective


@functools.cache
def agree(adjective: str, is_feminine: bool, is_plural: bool) -> str:
    """The form of an adjective given in the masculine singular."""
    form = feminine(adjective) if is_feminine else adjective
    return plural(form) if is_plural else form


APOCOPE: Final = {
    "bueno": "buen", "malo": "mal", "primero": "primer", "tercero": "tercer", "alguno": "algún", "ninguno": "ningún",
}  # fmt: skip


def before_noun(adjective: str, is_feminine: bool, is_plural: bool) -> str:
    """The form of an adjective before its noun: *un buen amigo*, *una gran idea*, *el primer día*."""
    if not is_plural and adjective == "grande":
        return "gran"
    if not is_plural and not is_feminine and adjective in APOCOPE:
        return APOCOPE[adjective]
    return agree(adjective, is_feminine, is_plural)


STRESSED_A: Final = ("agua", "águila", "aula", "arpa", "hacha", "área", "alma", "ala")


def article(form: str, noun: str) -> str:
    """*el* and *un* for *la* and *una* right before a feminine noun that begins with a stressed a."""
    if noun in STRESSED_A:
        return {"la": "el", "una": "un", "alguna": "algún", "ninguna": "ningún"}.get(form, form)
    return form


# -------------------------------------------------------------------------------------------------------- small words


def contracted(text: str) -> str:
    """*a el* → *al*, *de el* → *del*; the pronoun *él* stays."""
    return re.sub(r"\b([Aa]|[Dd]e) el\b", lambda match: f"{match[1]}l", text)


def conjoined(first: str, second: str) -> str:
    """*y*, but *e* before the sound i."""
    return f"{first} {'e' if re.match('h?[ií](?!e)', second.lower()) else 'y'} {second}"


def disjoined(first: str, second: str) -> str:
    """*o*, but *u* before the sound o."""
    return f"{first} {'u' if re.match('h?[oó]', second.lower()) else 'o'} {second}"


# -------------------------------------------------------------------------------------------------------- conjugation

_IRREGULAR: Final = {
    row[0]: dict(zip(("change", "first", "preterite", "future", "participle", "imperative"), row[1:], strict=True))
    for row in table("irregular_spanish")
}
_PARADIGMS: Final = {(row[0], row[1]): tuple(row[2:]) for row in table("paradigms")}
PRESENT: Final = {
    "a": ("o", "as", "a", "amos", "an"),
    "e": ("o", "es", "e", "emos", "en"),
    "i": ("o", "es", "e", "imos", "en"),
}
PRETERITE: Final = {"a": ("é", "aste", "ó", "amos", "aron"), "e": ("í", "iste", "ió", "imos", "ieron")}
STRONG: Final = ("e", "iste", "o", "imos", "ieron")
IMPERFECT: Final = {"a": ("aba", "abas", "aba", "ábamos", "aban"), "e": ("ía", "ías", "ía", "íamos", "ían")}
FUTURE: Final = ("é", "ás", "á", "emos", "án")
SUBJUNCTIVE: Final = {"a": ("e", "es", "e", "emos", "en"), "e": ("a", "as", "a", "amos", "an")}
SIMPLE: Final = ("present", "preterite", "imperfect", "future", "conditional", "subjunctive")


def _irregular(infinitive: str, column: str) -> str:
    return _IRREGULAR.get(infinitive, {}).get(column, "")


def _theme(infinitive: str) -> str:
    return infinitive[-2].translate(PLAIN)


def _softened(stem: str, infinitive: str, ending: str) -> str:
    """The stem spelled so that its last consonant sounds as in the infinitive: busqué, llegué, empecé, elijo, sigo."""
    if infinitive.endswith("ar"):
        swaps = {"c": "qu", "g": "gu", "z": "c"} if ending[0] in "eé" else {}
    else:
        swaps = {"gu": "g", "g": "j"} if ending[0] in "oaá" else {}
    for old, new in swaps.items():
        if stem.endswith(old):
            return stem[: -len(old)] + new
    return stem


def changed(infinitive: str, column: int = 1) -> str:
    """The stem with its vowel changed as under stress (pens- → piens-), or with column 2 as in *pidió*, *durmió*."""
    stem, change = infinitive[:-2], _irregular(infinitive, "change")
    if not change:
        return stem
    old, new = change.split(":")
    if column == 2:
        old, new = old, {"e": "i", "o": "u"}.get(old, old)
    before, _, after = stem.rpartition(old)
    return before + new + after


def _weakens(infinitive: str) -> bool:
    """Whether the verb, in -ir, has *i* or *u* where others keep their vowel: pidió, durmiendo, sintamos."""
    return infinitive.endswith("ir") and _irregular(infinitive, "change")[:1] in ("e", "o")


def _first_person(infinitive: str) -> str:
    if irregular := _irregular(infinitive, "first"):
        return irregular
    stem = changed(infinitive)
    if infinitive.endswith("uir") and not infinitive.endswith("guir"):
        return stem + "yo"
    if re.search("[aeiou]c[ei]r$", infinitive):
        return stem[:-1] + "zco"
    return _softened(stem, infinitive, "o") + "o"


def _present(infinitive: str) -> tuple[str, ...]:
    forms = [_first_person(infinitive)]
    for slot in (TU, EL, NOSOTROS, ELLOS):
        stem = infinitive[:-2] if slot == NOSOTROS else changed(infinitive)
        if infinitive.endswith("uir") and not infinitive.endswith("guir") and slot != NOSOTROS:
            stem += "y"
        forms.append(stem + PRESENT[_theme(infinitive)][slot])
    return tuple(forms)


def _strong_preterite(stem: str) -> tuple[str, ...]:
    forms = [stem + ending for ending in STRONG]
    if stem == "hic":
        forms[EL] = "hizo"
    if stem.endswith("j"):
        forms[ELLOS] = stem + "eron"
    return tuple(forms)


def _preterite(infinitive: str) -> tuple[str, ...]:
    if stem := _irregular(infinitive, "preterite"):
        return _strong_preterite(stem)
    return tuple(_preterite_form(infinitive, slot) for slot in range(5))


def _preterite_form(infinitive: str, slot: int) -> str:
    third = slot in (EL, ELLOS)
    stem = changed(infinitive, 2) if third and _weakens(infinitive) else infinitive[:-2]
    ending = PRETERITE["a" if infinitive.endswith("ar") else "e"][slot]
    if re.search("[aeo][eií]r$|[^gq]uir$", infinitive):
        if third:
            return stem + "y" + ending[1:]
        return stem + (ending if infinitive.endswith("uir") else re.sub("^i", "í", ending))
    return _softened(stem, infinitive, ending) + ending


def _imperfect(infinitive: str) -> tuple[str, ...]:
    return tuple(infinitive[:-2] + ending for ending in IMPERFECT["a" if infinitive.endswith("ar") else "e"])


def _future(infinitive: str) -> tuple[str, ...]:
    stem = _irregular(infinitive, "future") or infinitive.translate(PLAIN)
    return tuple(stem + ending for ending in FUTURE)


def _conditional(infinitive: str) -> tuple[str, ...]:
    stem = _irregular(infinitive, "future") or infinitive.translate(PLAIN)
    return tuple(stem + ending for ending in IMPERFECT["e"])


def _subjunctive(infinitive: str) -> tuple[str, ...]:
    endings = SUBJUNCTIVE["a" if infinitive.endswith("ar") else "e"]
    return tuple(_subjunctive_stem(infinitive, slot, ending) + ending for slot, ending in enumerate(endings))


def _subjunctive_stem(infinitive: str, slot: int, ending: str) -> str:
    """That of *yo* in the present, but for *nosotros* where the change of vowel goes with the stress."""
    if slot == NOSOTROS and _irregular(infinitive, "change") and not _irregular(infinitive, "first"):
        stem = changed(infinitive, 2) if _weakens(infinitive) else infinitive[:-2]
        return _softened(stem, infinitive, ending)
    stem = _first_person(infinitive)[:-1]
    return _softened(stem, infinitive, ending) if infinitive.endswith("ar") else stem


@functools.cache
def paradigm(infinitive: str, tense: str) -> tuple[str, ...]:
    """The five forms of a simple tense."""
    if (infinitive, tense) in _PARADIGMS:
        return _PARADIGMS[infinitive, tense]
    rules = (_present, _preterite, _imperfect, _future, _conditional, _subjunctive)
    return dict(zip(SIMPLE, rules, strict=True))[tense](infinitive)


def conjugate(infinitive: str, tense: str, slot: int) -> str:
    """One form of a simple tense: present, preterite, imperfect, future, conditional or (present) subjunctive."""
    return paradigm(infinitive, tense)[slot]


@functools.cache
def participle(infinitive: str) -> str:
    if irregular := _irregular(infinitive, "participle"):
        return irregular
    if infinitive.endswith("ar"):
        return infinitive[:-2] + "ado"
    return infinitive[:-2] + ("ído" if re.search("[aeo][eií]r$", infinitive) else "ido")


@functools.cache
def gerund(infinitive: str) -> str:
    if infinitive.endswith("ar"):
        return infinitive[:-2] + "ando"
    if infinitive == "ir":
        return "yendo"
    if infinitive.endswith("eír"):
        return infinitive[:-3] + "iendo"
    weak = _weakens(infinitive) or infinitive == "poder"
    stem = changed(infinitive, 2) if weak else infinitive[:-2]
    return stem + ("yendo" if re.search("[aeo][eií]r$|[^gq]uir$", infinitive) else "iendo")


def command(infinitive: str, formal: bool = False, negated: bool = False) -> str:
    """The imperative of *tú* or *usted*, without its clitics."""
    if formal or negated:
        return conjugate(infinitive, "subjunctive", EL if formal else TU)
    return _irregular(infinitive, "imperative") or conjugate(infinitive, "present", EL)


@functools.cache
def attached(form: str, clitics: str) -> str:
    """An infinitive, gerund or affirmative command with its pronouns: di + melo → dímelo."""
    return accented(form + clitics, stressed(form)) if clitics else form


def verb_group(infinitive: str, tense: str, slot: int, clitics: str = "") -> str:
    """The whole verb of a clause, any of the tenses, with its reflexive or object pronouns ("", "lo", "me lo").

    They go before a verb that stands alone or in the perfect, and are attached to an infinitive or gerund.
    """
    if infinitive.endswith("se"):
        infinitive, clitics = infinitive[:-2], REFLEXIVE[slot]
    before, after = (clitics + " " if clitics else ""), clitics.replace(" ", "")
    if tense == "perfect":
        return f"{before}{conjugate('haber', 'present', slot)} {participle(infinitive)}"
    if tense == "going":
        return f"{conjugate('ir', 'present', slot)} a {attached(infinitive, after)}"
    if tense in ("progressive", "past progressive"):
        time = "present" if tense == "progressive" else "imperfect"
        return f"{conjugate('estar', time, slot)} {attached(gerund(infinitive), after)}"
    return before + conjugate(infinitive, tense, slot)


def infinitive_of(infinitive: str, slot: int, clitics: str = "") -> str:
    """The infinitive with its pronouns; a reflexive's is that of the person: *quiero levantarme*."""
    if infinitive.endswith("se"):
        return attached(infinitive[:-2], REFLEXIVE[slot])
    return attached(infinitive, clitics.replace(" ", ""))
