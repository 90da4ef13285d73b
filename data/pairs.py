"""Parallel sentences: text normalisation, and the folding that decides when two sentences are the same."""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, compress, groupby

import numpy as np
from jaxtyping import Bool, Float

from data.invisible import INVISIBLE, is_blank
from data.sentences import Sentences, SentenceWriter, in_blocks, store_sentences

Weights = Float[np.ndarray, " P"] | None  # average visits to each pair in an epoch; None: all 1
SHORT = 1000  # characters; in shorter sentences, sorting combining marks never takes long


@dataclass(frozen=True)
class Pairs:
    """Parallel sentences: ``targets[i]`` translates ``sources[i]``. A corpus is stored as mapped ``Sentences``."""

    sources: Sequence[str]
    targets: Sequence[str]

    def __len__(self) -> int:
        return len(self.sources)

    def reversed(self) -> "Pairs":
        """The pairs in the other direction."""
        return Pairs(self.targets, self.sources)

    def take(self, indices: Sequence[int]) -> "Pairs":
        """The pairs at ``indices``, in that order, as lists."""
        return Pairs([self.sources[i] for i in indices], [self.targets[i] for i in indices])

    def select(self, mask: Bool[np.ndarray, " P"]) -> "Pairs":
        """The pairs where ``mask`` is true, mapped from disk; the object itself if it is true everywhere."""
        if mask.all():
            return self
        return Pairs(*(store_sentences(compress(side, mask.data)) for side in (self.sources, self.targets)))

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """The pairs as four arrays, named after ``name``; ``Pairs.mapped`` restores them."""
        found = {}
        for side, sentences in (("source", self.sources), ("target", self.targets)):
            stored = sentences if isinstance(sentences, Sentences) else store_sentences(sentences)
            found[f"{name}_{side}_text"], found[f"{name}_{side}_start"] = stored.arrays
        return found

    @classmethod
    def mapped(cls, name: str, arrays: dict[str, np.ndarray]) -> "Pairs":
        """The pairs stored in ``arrays`` under this name."""
        sides = ((arrays[f"{name}_{side}_text"], arrays[f"{name}_{side}_start"]) for side in ("source", "target"))
        return cls(*(Sentences(text, start) for text, start in sides))


def count_one_sided(pairs: Pairs) -> int:
    """How many pairs have text on one side only."""
    return sum(bool(source) != bool(target) for source, target in zip(pairs.sources, pairs.targets, strict=True))


def concatenate(parts: Sequence[Pairs]) -> Pairs:
    """All pairs of all parts, in order, mapped from disk; a single part is returned as it is."""
    if len(parts) == 1:
        return parts[0]
    sides = (part.sources for part in parts), (part.targets for part in parts)
    return Pairs(*(store_sentences(chain.from_iterable(side)) for side in sides))


def normalise_rows(rows: Iterable[tuple[str, str]]) -> tuple[Pairs, int]:
    """Normalise rows in one pass and map the result from disk; drop and count rows that are empty on both sides."""
    sources, targets, empty = SentenceWriter(), SentenceWriter(), 0
    for block in in_blocks(rows):
        first, second = [normalise(source) for source, _ in block], [normalise(target) for _, target in block]
        if "" in first and "" in second:
            has_text = [bool(source or target) for source, target in zip(first, second, strict=True)]
            first, second = list(compress(first, has_text)), list(compress(second, has_text))
            empty += has_text.count(False)
        sources.append(first)
        targets.append(second)
    return Pairs(sources.view(), targets.view()), empty


def as_tsv(pairs: Pairs) -> str:
    """The pairs as tab-separated lines."""
    return "".join(f"{source}\t{target}\n" for source, target in zip(pairs.sources, pairs.targets, strict=True))


def normalise(sentence: str) -> str:
    """Unicode NFC, with every run of white space collapsed to one space and the ends stripped.

    U+FEFF, once a zero-width space and now the byte order mark, counts as white space, because it is not text at the
    start of a file. Other invisible characters stay, but a sentence with nothing else is empty.
    """
    text = " ".join(sentence.replace("\ufeff", " ").split())
    if is_blank(text):
        return ""
    return unicodedata.normalize("NFC", text if len(text) <= SHORT else sort_combining_marks(text))


def beginning_of(prefix: str) -> str:
    """The normalised text of a prefix, but with a space at its end kept: it ends the last word."""
    text = normalise(prefix)
    return f"{text} " if text and prefix[-1].isspace() else text


def sort_combining_marks(text: str) -> str:
    """Unicode NFD of a text. ``unicodedata`` sorts marks by swapping neighbours, in minutes for a run of a million."""
    characters = chain.from_iterable(unicodedata.normalize("NFD", character) for character in text)
    runs = groupby(characters, lambda character: unicodedata.combining(character) > 0)
    return "".join(chain.from_iterable(sorted(run, key=unicodedata.combining) for _, run in runs))


def fold(sentence: str) -> str:
    """The sentence without case, punctuation, invisible characters and repeated spaces; itself if nothing is left."""
    return " ".join(sentence.casefold().translate(PUNCTUATION).split()) or sentence


class PunctuationTable(dict[int, int | None]):
    """A translation table that deletes invisible characters, and Unicode's categories P (punctuation) and S (symbols).

    Entries are added as characters occur: a corpus has few of the million characters, and ``translate`` is slow for
    missing ones.
    """

    def __missing__(self, character: int) -> int | None:
        is_text = unicodedata.category(chr(character))[0] not in "PS" and not INVISIBLE.match(chr(character))
        self[character] = character if is_text else None
        return self[character]


PUNCTUATION = PunctuationTable()
