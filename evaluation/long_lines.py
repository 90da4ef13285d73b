"""Text longer than a model may take: cut into pieces that fit, which are translated one by one and joined again.

A piece ends where a sentence does, if one can. As in the Europarl corpus's splitter (Koehn 2005), the end of a
sentence is told by its punctuation, a list of abbreviations and the case of the letter that follows.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

SENTENCE_MARKS, CLAUSE_MARKS = ".!?…", ";:,—–"
CLOSING = "\"'”’»›)]}"  # may stand between a mark and the white space
ABBREVIATIONS = frozenset(
    "Mr Mrs Ms Messrs Dr Prof St Mt Jr Rev Hon Gov Gen Col Capt Lt Sgt vs approx "
    "Sr Sra Sres Sras Srta Dra Dña Ud Uds Vd Vds Lic Ing Mons Excmo Avda EE UU ej aprox pág págs núm tel".split()
)

Count = Callable[[list[str]], list[int]]


def cut(text: str, longest: int, count: Count) -> list[str]:
    """Pieces of a normalised text that have at most ``longest`` tokens each; a text that fits is its only piece.

    ``count`` gives the tokens of each of several texts, EOS included. A piece ends at the furthest end of a sentence
    that fits; if there is none, after the furthest ; : , or dash; if there is none, at a space; a word is cut only if
    alone it is too long. No piece of a text is empty, and ``join`` gives the text back, with a space more wherever a
    word was cut. A single character of more than ``longest`` tokens is a piece all the same.
    """
    if count([text])[0] <= longest:
        return [text]
    line = Line(text, units_of(text, longest, count), longest, count)
    ends = ends_of(text, line.units)
    before = list(accumulate((unit.tokens - 1 for unit in line.units), initial=0))  # each has counted an EOS
    stops = [0]
    while (start := stops[-1]) < len(line.units):
        guess = max(start + 1, bisect_right(before, before[start] + longest - 1) - 1)
        stops.append(best(line, start, furthest(line, start, guess), ends))
    return [line.piece(start, stop) for start, stop in pairwise(stops)]


def join(texts: list[str]) -> str:
    """Pieces, or their translations, as one text; empty ones leave no trace."""
    return " ".join(filter(None, texts))


class Unit(NamedTuple):
    """``text[start:stop]`` and its tokens: a word, or a part of a word that is too long."""

    start: int
    stop: int
    tokens: int


@dataclass(frozen=True)
class Line:
    """A text in units; a piece is some of them that follow each other."""

    text: str
    units: list[Unit]
    longest: int
    count: Count

    def piece(self, start: int, stop: int) -> str:
        return self.text[self.units[start].start : self.units[stop - 1].stop]

    def fit(self, start: int, *stops: int) -> list[bool]:
        """Whether the pieces from ``start`` to each stop fit: one call of ``count``, which costs more than its text."""
        return [tokens <= self.longest for tokens in self.count([self.piece(start, stop) for stop in stops])]


def units_of(text: str, longest: int, count: Count) -> list[Unit]:
    """The words in order, with those that are too long in parts, which are cut again until they fit."""
    units: list[Unit] = []
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    while spans:
        counts = count([text[start:stop] for start, stop in spans])
        counted = [Unit(*span, tokens) for span, tokens in zip(spans, counts, strict=True)]
        units += [unit for unit in counted if unit.tokens <= longest or unit.stop - unit.start == 1]
        long = [unit for unit in counted if unit.tokens > longest and unit.stop - unit.start > 1]
        room = max(1, longest - 2)  # beside EOS, and the space that a tokenizer may begin with
        spans = [part for unit in long for part in parts(unit, -(-unit.tokens // room))]
    return sorted(units)


def parts(unit: Unit, number: int) -> list[tuple[int, int]]:
    """The spans of so many parts of nearly the same length, or of every character if there are fewer."""
    length = unit.stop - unit.start
    number = min(number, length)
    return list(pairwise(unit.start + length * part // number for part in range(number + 1)))


def ends_of(text: str, units: list[Unit]) -> list[list[int]]:
    """After how many units a sentence, a clause and a word may end, in order; each list begins with 0.

    A full stop before a small letter ends a clause: often it is an abbreviation that is not in the list.
    """
    sentences, clauses, words = [0], [0], [0]
    begun = 0  # where the word begins of which the unit is the last part
    for number, unit in enumerate(units, start=1):
        if unit.stop < len(text) and not text[unit.stop].isspace():
            continue
        word, begun = text[begun : unit.stop].strip(), unit.stop
        mark = word.rstrip(CLOSING)[-1:]
        words.append(number)
        if mark and mark in SENTENCE_MARKS + CLAUSE_MARKS and not abbreviated(word):
            clauses.append(number)
            if mark in SENTENCE_MARKS and not text[unit.stop + 1 : unit.stop + 2].islower():
                sentences.append(number)
    return [sentences, clauses, words]


def abbreviated(word: str) -> bool:
    """Whether the full stop at the end of a word is that of an abbreviation (Sra. EE.) or an initial (J. p. e.g.)."""
    name = re.split(r"\W", word[:-1])[-1]
    return word.endswith(".") and (name in ABBREVIATIONS or (len(name) == 1 and name.isalpha()))


def furthest(line: Line, start: int, guess: int) -> int:
    """The last stop that fits, and at least one unit; if it is the guess, one call of ``count`` tells.

    Searched by doubling steps away from the guess, then by halving (Bentley and Yao 1976), so that nothing much longer
    than a piece is ever counted.
    """
    low, high, step = start + 1, len(line.units) + 1, 1  # low fits, high does not
    fits, more_fits = line.fit(start, guess, min(guess + 1, high - 1))
    if fits:
        low = guess
        while low + step < high and more_fits:
            low, step = low + step, 2 * step
            (more_fits,) = line.fit(start, min(low + step, high - 1))
        high = min(high, low + step)
    else:
        high = guess
        while high - step > low and not all(line.fit(start, high - step)):
            high, step = high - step, 2 * step
        low = max(low, high - step)
    return low + bisect_left(range(low + 1, high), True, key=lambda stop: not all(line.fit(start, stop)))


def best(line: Line, start: int, last: int, ends: list[list[int]]) -> int:
    """The last end of a sentence up to ``last``, else of a clause, else of a word, else ``last`` itself.

    The end of the text is all three. An earlier end is counted again: a tokenizer may spell a text with more tokens
    than a longer one that begins with it.
    """
    if last == len(line.units):
        return last
    candidates = [places[bisect_right(places, last) - 1] for places in ends]
    return next((stop for stop in candidates if stop > start and (stop == last or all(line.fit(start, stop)))), last)
