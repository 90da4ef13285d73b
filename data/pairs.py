"""Parallel sentences: how their text is normalised, and when two sentences count as the same."""

import functools
import re
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

SHORT = 1000  # characters of a sentence in which no run of combining marks takes long to put in order


@dataclass(frozen=True)
class Pairs:
    """Parallel sentences: ``targets[i]`` translates ``sources[i]``."""

    sources: list[str]
    targets: list[str]

    def __len__(self) -> int:
        return len(self.sources)

    def take(self, indices: Sequence[int]) -> "Pairs":
        """The chosen pairs, in the order of ``indices``."""
        return Pairs([self.sources[i] for i in indices], [self.targets[i] for i in indices])


def concatenate(parts: Sequence[Pairs]) -> Pairs:
    """All pairs of all parts, in order."""
    return Pairs([s for part in parts for s in part.sources], [t for part in parts for t in part.targets])


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
    return " ".join(sentence.casefold().translate(WITHOUT_PUNCTUATION).split()) or sentence


class WithoutPunctuation(dict[int, int | None]):
    """A translation table that deletes every character of Unicode's categories P (punctuation) and S (symbols).

    It is filled as characters are met: to ask for all of them takes longer than to fold a small corpus.
    """

    def __missing__(self, character: int) -> int | None:
        deleted = unicodedata.category(chr(character))[0] in "PS"
        self[character] = None if deleted else character
        return self[character]


WITHOUT_PUNCTUATION = WithoutPunctuation()
