"""Text too long for a model is cut into pieces that fit, at sentence ends where possible.

As in the Europarl corpus's splitter (Koehn 2005), a sentence end is recognised by its punctuation, a list of
abbreviations and the case of the letter that follows.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import pairwise

SENTENCE_MARKS, CLAUSE_MARKS = ".!?…", ";:,—–"
CLOSING = "\"'”’»›)]}"  # may stand between a mark and the white space
ABBREVIATIONS = frozenset(
    "Mr Mrs Ms Messrs Dr Prof St Mt Jr Rev Hon Gov Gen Col Capt Lt Sgt vs approx "
    "Sr Sra Sres Sras Srta Dra Dña Ud Uds Vd Vds Lic Ing Mons Excmo Avda EE UU ej aprox pág págs núm tel".split()
)

Count = Callable[[list[str]], list[int]]
Span = tuple[int, int]  # text[start:stop], a word or a part of an overlong one
Fits = Callable[[int, int], bool]  # whether the units from start to stop have at most so many tokens as a piece may


def cut(text: str, longest: int, count: Count) -> list[str]:
    """Cut a normalised text into pieces of at most ``longest`` tokens; a text that fits is the only piece.

    ``count`` returns the number of tokens of each text, EOS included. A piece ends at the last sentence end that fits,
    else after the last ; : , or dash, else at the last space; a word, but no single character, is cut if it is too long
    by itself. No piece is empty, and spaces between them restore the text, with one more wherever a word was cut.
    """
    if count([text])[0] <= longest:
        return [text]
    units = split_units(text, longest, count)
    ends, stops = find_ends(text, units), [0]

    def fits(start: int, stop: int) -> bool:
        return count([text[units[start][0] : units[stop - 1][1]]])[0] <= longest

    while (start := stops[-1]) < len(units):
        stops.append(choose_stop(start, find_furthest(start, len(units), fits), ends, fits))
    return [text[units[start][0] : units[stop - 1][1]] for start, stop in pairwise(stops)]


def split_units(text: str, longest: int, count: Count) -> list[Span]:
    """The words in order; overlong words are cut again and again until their parts fit."""
    units: list[Span] = []
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    room = max(1, longest - 2)  # without EOS and the space that a tokenizer may put first
    while spans:
        counts = count([text[start:stop] for start, stop in spans])
        overlong: list[Span] = []
        for (start, stop), tokens in zip(spans, counts, strict=True):
            length = stop - start
            if tokens <= longest or length == 1:
                units.append((start, stop))
            else:
                parts = min(-(-tokens // room), length)
                overlong += pairwise(start + length * part // parts for part in range(parts + 1))
        spans = overlong
    return sorted(units)


def find_ends(text: str, units: list[Span]) -> list[list[int]]:
    """The numbers of units after which a sentence, a clause and a word may end, in order; each list begins with 0.

    A full stop before a small letter ends only a clause: it often belongs to an abbreviation that is not in the list.
    """
    sentences, clauses, words = [0], [0], [0]
    begun = 0  # start of the current word
    for number, (_, stop) in enumerate(units, start=1):
        if stop < len(text) and not text[stop].isspace():
            continue
        word, begun = text[begun:stop].strip(), stop
        mark = word.rstrip(CLOSING)[-1:]
        words.append(number)
        if mark and mark in SENTENCE_MARKS + CLAUSE_MARKS and not is_abbreviation(word):
            clauses.append(number)
            if mark in SENTENCE_MARKS and not text[stop + 1 : stop + 2].islower():
                sentences.append(number)
    return [sentences, clauses, words]


def is_abbreviation(word: str) -> bool:
    """Whether the word ends with the full stop of an abbreviation (Sra. EE.) or an initial (J. p. e.g.)."""
    name = re.split(r"\W", word[:-1])[-1]
    return word.endswith(".") and (name in ABBREVIATIONS or (len(name) == 1 and name.isalpha()))


def find_furthest(start: int, end: int, fits: Fits) -> int:
    """The last stop up to ``end`` whose piece from ``start`` fits; a unit always does.

    Doubling steps, then halves (Bentley and Yao 1976), never count a text much longer than a piece.
    """
    step = 1
    while start + 2 * step <= end and fits(start, start + 2 * step):
        step *= 2
    unknown = range(start + step + 1, min(start + 2 * step, end + 1))
    return start + step + bisect_left(unknown, True, key=lambda stop: not fits(start, stop))


def choose_stop(start: int, last: int, ends: list[list[int]], fits: Fits) -> int:
    """The last sentence end up to ``last``, else clause end, else word end, else ``last`` itself.

    An earlier end is counted again: a tokenizer may need more tokens for a text than for a longer one that begins so.
    """
    if last == ends[-1][-1]:
        return last
    candidates = [places[bisect_right(places, last) - 1] for places in ends]
    return next((stop for stop in candidates if stop > start and (stop == last or fits(start, stop))), last)
