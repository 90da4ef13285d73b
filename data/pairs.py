"""Parallel sentences: how their text is normalised, and when two sentences count as the same."""

import functools
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress

import numpy as np
from jaxtyping import Bool

from data.store.sentences import SentenceWriter, blocks_of, stored

SHORT = 1000  # characters of a sentence in which no run of combining marks takes long to put in order


@dataclass(frozen=True)
class Pairs:
    """Parallel sentences: ``targets[i]`` translates ``sources[i]``. Those of a corpus are ``Sentences``, not lists."""

    sources: Sequence[str]
    targets: Sequence[str]

    def __len__(self) -> int:
        return len(self.sources)

    def take(self, indices: Sequence[int]) -> "Pairs":
        """A few chosen pairs, in the order of ``indices``, as lists."""
        return Pairs([self.sources[i] for i in indices], [self.targets[i] for i in indices])

    def keep(self, kept: Bool[np.ndarray, " P"]) -> "Pairs":
        """The pairs for which ``kept`` holds, as mapped sentences; itself if it holds for all."""
        if kept.all():
            return self
        return Pairs(stored(compress(self.sources, kept.data)), stored(compress(self.targets, kept.data)))


def concatenate(parts: Sequence[Pairs]) -> Pairs:
    """All pairs of all parts, in order, as mapped sentences; the part itself if there is one."""
    if len(parts) == 1:
        return parts[0]
    return Pairs(
        stored(chain.from_iterable(part.sources for part in parts)),
        stored(chain.from_iterable(part.targets for part in parts)),
    )


def normalised(rows: Iterable[tuple[str, str]]) -> Pairs:
    """The rows, which are read but once, as normalised and mapped sentences."""
    sources, targets = SentenceWriter(), SentenceWriter()
    for block in blocks_of(rows):
        sources.append([normalise(source) for source, _ in block])
        targets.append([normalise(target) for _, target in block])
    return Pairs(sources.sentences(), targets.sentences())


def as_tsv(first: Sequence[str], second: Sequence[str]) -> str:
    """Two columns as the text of a file: a pair a line, split by a tab."""
    return "".join(f"{a}\t{b}\n" for a, b in zip(first, second, strict=True))


def normalise(sentence: str) -> str:
    """Unicode NFC, with every run of white space made one plain space and none left at the ends.

    U+FEFF, once a space of no width and now a byte order mark, is white space here: at the start of a file it would
    not be text.
    """
    text = " ".join(sentence.replace("\ufeff", " ").split())
    return unicodedata.normalize("NFC", text if len(text) <= SHORT else with_marks_in_order(text))


def with_marks_in_order(text: str) -> str:
    """The same text to Unicode, every run of combining marks decomposed and in canonical order.

    NFC puts them in order too, but exchanges neighbours one by one: minutes for a run of a million marks.
    """

    def in_order(run: re.Match[str]) -> str:
        return "".join(sorted("".join(unicodedata.normalize("NFD", c) for c in run[0]), key=unicodedata.combining))

    return marks().sub(in_order, text)


@functools.cache
def marks() -> re.Pattern[str]:
    """Runs of characters that begin with a combining mark when they are decomposed."""
    all_characters = map(chr, range(sys.maxunicode + 1))
    found = [c for c in all_characters if unicodedata.combining(unicodedata.normalize("NFD", c)[0])]
    return re.compile(f"[{''.join(found)}]+")


def fold(sentence: str) -> str:
    """The sentence without case, punctuation and doubled white space; itself if nothing else is left of it."""
    return " ".join(sentence.casefold().translate(PUNCTUATION).split()) or sentence


def fold_all(sentences: Iterable[str]) -> Iterator[str]:
    """``fold`` of each normalised sentence, many at a time: every start folds the whole corpus."""
    for block in blocks_of(sentences):
        text = "\n".join(block).casefold()
        for character in set(text):
            if PUNCTUATION[ord(character)] is None:
                text = text.replace(character, "")
        for folded, sentence in zip(text.split("\n"), block, strict=True):
            yield " ".join(folded.split()) or sentence


class WithoutPunctuation(dict[int, int | None]):
    """A translation table that deletes every character of Unicode's categories P (punctuation) and S (symbols).

    Filled as characters come: a corpus has few of the million, and ``translate`` is slow for those that are missing.
    """

    def __missing__(self, character: int) -> int | None:
        self[character] = None if unicodedata.category(chr(character))[0] in "PS" else character
        return self[character]


PUNCTUATION = WithoutPunctuation()
