"""The grammar of the embedded corpus: sentences with real agreement, made from word lists, everywhere the same."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from data.phrasebook import (
    constructions_clauses,
    constructions_commands,
    constructions_comparison,
    constructions_coordination,
    constructions_description,
    constructions_everyday,
    constructions_gustar,
    constructions_infinitives,
    constructions_pronouns,
    constructions_questions,
    constructions_tenses,
)
from data.phrasebook.draw import Draw
from data.phrasebook.nounphrases import Phrase

CONSTRUCTIONS: Final[dict[str, Callable[[Draw], Phrase]]] = {
    **constructions_description.CONSTRUCTIONS,
    **constructions_comparison.CONSTRUCTIONS,
    **constructions_tenses.CONSTRUCTIONS,
    **constructions_infinitives.CONSTRUCTIONS,
    **constructions_questions.CONSTRUCTIONS,
    **constructions_pronouns.CONSTRUCTIONS,
    **constructions_gustar.CONSTRUCTIONS,
    **constructions_everyday.CONSTRUCTIONS,
    **constructions_commands.CONSTRUCTIONS,
    **constructions_clauses.CONSTRUCTIONS,
    **constructions_coordination.CONSTRUCTIONS,
}
LENGTHS: Final = range(2, 15)  # in words
PATIENCE: Final = 60  # a construction that repeats itself so many times in a row has no more to say


@dataclass(frozen=True)
class Sentence:
    """A pair of sentences; ``lemmas`` are the dictionary forms of the Spanish verbs, nouns and adjectives in it."""

    english: str
    spanish: str
    construction: str
    lemmas: tuple[str, ...]


def generate(count: int = 48_000) -> list[Sentence]:
    """That many sentences, or all there are; no English and no Spanish sentence comes twice.

    The constructions take turns, so each has as many as another until it has no more.
    """
    sentences: list[Sentence] = []
    seen: set[str] = set()
    speaking = [_made_by(name, seen) for name in CONSTRUCTIONS]
    while speaking and len(sentences) < count:
        said = [(maker, next(maker, None)) for maker in speaking]
        sentences += [sentence for _, sentence in said if sentence]
        speaking = [maker for maker, sentence in said if sentence]
    return sentences[:count]


def _made_by(construction: str, seen: set[str]) -> Iterator[Sentence]:
    """The construction's sentences in an order at random; those ``seen`` are left out and new ones added there."""
    make, number, repeated = CONSTRUCTIONS[construction], 0, 0
    while repeated < PATIENCE:
        phrase = make(Draw(construction, number))
        number += 1
        if phrase.english in seen or phrase.spanish in seen or not well_sized(phrase):
            repeated += 1
            continue
        repeated = 0
        seen.update((phrase.english, phrase.spanish))
        yield Sentence(phrase.english, phrase.spanish, construction, phrase.lemmas)


def well_sized(phrase: Phrase) -> bool:
    return all(len(text.split()) in LENGTHS for text in (phrase.english, phrase.spanish))
