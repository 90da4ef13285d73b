"""Do English and Spanish look exchanged? Evidence from function words and letters that one of them has alone."""

import re
from collections.abc import Sequence

from data.config import DataConfig
from data.pairs import Pairs
from data.sources.source import ending_of, form_of

NAMES = {"en": "English", "es": "Spanish"}
# Words that are frequent in one and no word of the other: not "a", "come", "has", "he", "me", "no" or "son".
ENGLISH = frozenset(
    "the and is are was were to of it that this with you she they we my your his her not do does did have had be been "
    "will would can could at for from on i i'm it's what who why how when there don't if but or".split()
)
SPANISH = frozenset(
    "el la los las de del que y es en un una por para con se su sus lo le les mi tu te muy pero como esta este era "
    "fue ser hay al yo ella nos qué él está más".split()
)
SPANISH_LETTERS = frozenset("¿¡ñáéíóú")
WORDS = re.compile(r"[^\W\d_]+(?:'[a-z]+)?")
SAMPLE, FEWEST, SHARE = 1000, 20, 0.8


def describe_exchange(config: DataConfig, pairs: Pairs, file: str, advice: str = "") -> str | None:
    """A line that says what to do if most pairs show each other's language; None for other languages than these.

    Without ``advice``, that is what to set so that training reads ``file`` in the right order.
    """
    if {config.source, config.target} != NAMES.keys():
        return None
    exchanged, shown = count_exchanged(pairs, config.source)
    if shown < FEWEST or exchanged <= SHARE * shown:
        return None
    return (
        f"{file}: source and target look exchanged: in {exchanged} of {shown} pairs the source "
        f"(data.source={config.source}) reads as {NAMES[config.target]} and the target as {NAMES[config.source]}; "
        f"if they are, {advice or advise_training(config, file)}"
    )


def advise_training(config: DataConfig, file: str) -> str:
    """What to do before a run begins, which may as well translate the other way."""
    wanted = f" (with data.source={config.target} data.target={config.source} to translate from {NAMES[config.target]})"
    return advise(config, file) + wanted * (form_of(file) == "table")


def advise(config: DataConfig, file: str) -> str:
    """What to do so that a file is read in the right order: tables have an order of columns, all other forms names."""
    source, target = config.source, config.target
    if form_of(file) == "table":
        exchanged = {source: target, target: source}
        columns = f"set data.columns=[{','.join(exchanged.get(name, name) for name in config.columns)}]"
        in_header = "exchange the names in its first line, or, if it has none, "
        return in_header * (ending_of(file) == ".csv") + columns
    return (
        "exchange the names of its two files"
        if form_of(file) == "parallel"
        else f"exchange the names {source} and {target} in it"
    )


def sample(pairs: Pairs) -> list[tuple[str, str]]:
    """Up to ``SAMPLE`` pairs, at equal distances."""
    step = -(-len(pairs) // SAMPLE) or 1
    return [(pairs.sources[i], pairs.targets[i]) for i in range(0, len(pairs), step)]


def count_exchanged(pairs: Pairs, source: str) -> tuple[int, int]:
    """Of a sample: pairs whose sides show each other's language, and pairs of which both sides show one."""
    shown = [(find_language(source), find_language(target)) for source, target in sample(pairs)]
    shown = [sides for sides in shown if None not in sides]
    exchanged = [sides for sides in shown if sides[0] != source and sides[1] == source]
    return len(exchanged), len(shown)


def find_language(sentence: str) -> str | None:
    """The language with more evidence in a sentence: function words, and one for letters that are only Spanish."""
    text = sentence.casefold().replace("’", "'")
    words: Sequence[str] = WORDS.findall(text)
    english = sum(word in ENGLISH for word in words)
    spanish = sum(word in SPANISH for word in words) + bool(SPANISH_LETTERS & set(text))
    if english == spanish:
        return None
    return "en" if english > spanish else "es"
