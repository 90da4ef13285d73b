"""Check that both sides of a corpus are in the configured languages, by running py3langid on a random sample."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from data.config import DataConfig
from data.pairs import Pairs
from data.sources.source import ending_of, form_of

SAMPLE = 1000
FEWEST, SOME, MOST = 20, 0.1, 0.8  # least count to report, and shares: clean corpora have 0.004, single words 0.05
EVIDENCE = 0.5  # least probability to identify a language; names, numbers and single words rarely reach it


def describe_languages(config: DataConfig, pairs: Pairs, file: str, advice: str = "") -> Iterator[str]:
    """Yield a line each on swapped sides, on copies, and on a side in another language, with the evidence.

    ``advice`` says what to do about swapped sides; by default, which setting makes training read ``file`` in the right
    order. Yields nothing for languages that py3langid does not know.
    """
    wanted = config.source, config.target
    if not set(wanted) <= set(identifier().labels):
        return
    chosen = sample(pairs)
    found = [(find_language(source), find_language(target)) for source, target in chosen]
    yield from (f"{file}: {line}" for line in describe_exchange(config, found, advice or advise_training(config, file)))
    is_copy = [source.casefold() == target.casefold() for source, target in chosen]
    copies = sum(same and None not in languages for same, languages in zip(is_copy, found, strict=True))
    if is_worth_a_word(copies, len(chosen)):
        yield f"{file}: in {copies} of {len(chosen)} pairs the target is a copy of the source: were they translated?"
    others = [each for same, each in zip(is_copy, found, strict=True) if not same and not is_exchanged(each, wanted)]
    for key, language, read_as in zip(("source", "target"), wanted, zip(*others, strict=True), strict=False):
        shown = Counter(filter(None, read_as))
        foreign = [(count, other) for other, count in shown.items() if other != language]
        if is_worth_a_word(total := sum(count for count, _ in foreign), shown.total()):
            seen = f"{total} of {shown.total()} sentences of the {key} (data.{key}={language})"
            yield f"{file}: {seen} read as another language, most of them as {max(foreign)[1]}"


def describe_exchange(config: DataConfig, found: Sequence[tuple[str | None, str | None]], advice: str) -> Iterator[str]:
    """Yield a line if many pairs have swapped languages, among the pairs with one of the two on each side."""
    source, target = config.source, config.target
    shown = [languages for languages in found if set(languages) <= {source, target}]
    exchanged = shown.count((target, source))
    if is_worth_a_word(exchanged, len(shown)):
        looks = "source and target look exchanged"
        if exchanged <= MOST * len(shown):
            looks, advice = "some pairs look exchanged", "exchange the sides of these pairs alone"
        seen = f"in {exchanged} of {len(shown)} pairs the source (data.source={source}) reads as {target}"
        yield f"{looks}: {seen} and the target as {source}; if they are, {advice}"


def is_exchanged(found: Sequence[str | None], wanted: Sequence[str]) -> bool:
    """Whether each side of a pair is in the language of the other side, or in no identified language."""
    return all(shown in (None, other) for shown, other in zip(found, reversed(wanted), strict=True))


def is_worth_a_word(count: int, of: int) -> bool:
    return count >= FEWEST and count > SOME * of


def advise_training(config: DataConfig, file: str) -> str:
    """Advice for before training, when a run can also translate in the other direction."""
    wanted = f" (with data.source={config.target} data.target={config.source} to translate from {config.target})"
    return advise(config, file) + wanted * (form_of(file) == "table")


def advise(config: DataConfig, file: str) -> str:
    """How to read a file in the right order: tables have an order of columns, all other formats have names."""
    source, target = config.source, config.target
    if form_of(file) == "table":
        exchanged = {source: target, target: source}
        columns = f"set data.columns=[{','.join(exchanged.get(name, name) for name in config.columns)}]"
        in_header = "exchange the names in its first line, or, if it has none, "
        return in_header * (ending_of(file) == ".csv") + columns
    if form_of(file) == "parallel":
        return "exchange the names of its two files"
    return f"exchange the names {source} and {target} in it"


def sample(pairs: Pairs) -> list[tuple[str, str]]:
    """Up to ``SAMPLE`` pairs, drawn at random in case the corpus has regular patterns; the same ones every time."""
    chosen = random.Random(0).sample(range(len(pairs)), min(SAMPLE, len(pairs)))
    return [(pairs.sources[i], pairs.targets[i]) for i in chosen]


@cache
def identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # imported late: few programs read a corpus

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def find_language(sentence: str) -> str | None:
    """The code of a sentence's language (Lui and Baldwin 2012); None without enough evidence."""
    language, probability = identifier().classify(sentence)
    return str(language) if probability >= EVIDENCE else None
