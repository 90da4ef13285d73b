"""Text too long for a model is cut into pieces that fit, at sentence ends where possible.

As in the Europarl corpus's splitter (Koehn 2005), a sentence end is recognised by its punctuation, a list of
abbreviations and the case of the letter that follows.
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
    """Cut a normalised text into pieces of at most ``longest`` tokens; a text that fits is the only piece.

    ``count`` returns the number of tokens of each text, EOS included. A piece ends at the last sentence end that fits,
    else after the last ; : , or dash, else at the last space; a word, but no single character, is cut if it is too long
    by itself. No piece is empty, and ``join`` restores the text, with an extra space wherever a word was cut.
    """
    if count([text])[0] <= longest:
        return [text]
    line = Line(text, split_units(text, longest, count), longest, count)
    ends = find_ends(text, line.units)
    before = list(accumulate((unit.tokens - 1 for unit in line.units), initial=0))  # each count includes an EOS
    stops = [0]
    while (start := stops[-1]) < len(line.units):
        guess = max(start + 1, bisect_right(before, before[start] + longest - 1) - 1)
        stops.append(choose_stop(line, start, find_furthest(line, start, guess), ends))
    return [line.piece(start, stop) for start, stop in pairwise(stops)]


def join(texts: list[str]) -> str:
    """Join pieces, or their translations, without the empty ones."""
    return " ".join(filter(None, texts))


class Unit(NamedTuple):
    """``text[start:stop]``, a word or a part of an overlong word, and its number of tokens."""

    start: int
    stop: int
    tokens: int


@dataclass(frozen=True)
class Line:
    """A text in units; a piece is a sequence of them."""

    text: str
    units: list[Unit]
    longest: int
    count: Count

    def piece(self, start: int, stop: int) -> str:
        return self.text[self.units[start].start : self.units[stop - 1].stop]

    def fit(self, start: int, *stops: int) -> list[bool]:
        """Whether the pieces from ``start`` to each stop fit, by a single call of ``count``, since calls are slow."""
        return [tokens <= self.longest for tokens in self.count([self.piece(start, stop) for stop in stops])]


def split_units(text: str, longest: int, count: Count) -> list[Unit]:
    """The words in order; overlong words are cut again and again until their parts fit."""
    units: list[Unit] = []
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    room = max(1, longest - 2)  # without EOS and the space that a tokenizer may put first
    while spans:
        counts = count([text[start:stop] for start, stop in spans])
        overlong: list[tuple[int, int]] = []
        for (start, stop), tokens in zip(spans, counts, strict=True):
            if tokens <= longest or stop - start == 1:
                units.append(Unit(start, stop, tokens))
            else:
                length = stop - start
                parts = min(-(-tokens // room), length)
                overlong += pairwise(start + length * part // parts for part in range(parts + 1))
        spans = overlong
    return sorted(units)


def find_ends(text: str, units: list[Unit]) -> list[list[int]]:
    """The numbers of units after which a sentence, a clause and a word may end, in order; each list begins with 0.

    A full stop before a small letter ends only a clause: it often belongs to an abbreviation that is not in the list.
    """
    sentences, clauses, words = [0], [0], [0]
    begun = 0  # start of the current word
    for number, unit in enumerate(units, start=1):
        if unit.stop < len(text) and not text[unit.stop].isspace():
            continue
        word, begun = text[begun : unit.stop].strip(), unit.stop
        mark = word.rstrip(CLOSING)[-1:]
        words.append(number)
        if mark and mark in SENTENCE_MARKS + CLAUSE_MARKS and not is_abbreviation(word):
            clauses.append(number)
            if mark in SENTENCE_MARKS and not text[unit.stop + 1 : unit.stop + 2].islower():
                sentences.append(number)
    return [sentences, clauses, words]


def is_abbreviation(word: str) -> bool:
    """Whether the word ends with the full stop of an abbreviation (Sra. EE.) or an initial (J. p. e.g.)."""
    name = re.split(r"\W", word[:-1])[-1]
    return word.endswith(".") and (name in ABBREVIATIONS or (len(name) == 1 and name.isalpha()))


def find_furthest(line: Line, start: int, guess: int) -> int:
    """The last stop that fits, at least ``start + 1``; a correct guess costs one call of ``count``.

    Doubling steps away from the guess, then halves (Bentley and Yao 1976), never count a text much longer than a piece.
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


def choose_stop(line: Line, start: int, last: int, ends: list[list[int]]) -> int:
    """The last sentence end up to ``last``, else clause end, else word end, else ``last`` itself.

    An earlier end is counted again: a tokenizer may need more tokens for a text than for a longer one that begins so.
    """
    if last == len(line.units):
        return last
    candidates = [places[bisect_right(places, last) - 1] for places in ends]
    return next((stop for stop in candidates if stop > start and (stop == last or all(line.fit(start, stop)))), last)
