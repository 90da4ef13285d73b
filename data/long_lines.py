"""Split lines unlike those that a model was trained on into sentences, and cut sentences that are still too long.

sentencex, which knows the abbreviations of about 300 languages, finds the sentences. Text that must be cut to a given
length, such as an overlong sentence, is cut where the Europarl corpus's splitter (Koehn 2005) would: by punctuation, a
list of abbreviations and the case of the following letter. Exports include this module.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from sentencex import segment

SENTENCE_MARKS, CLAUSE_MARKS = ".!?…", ";:,—–"
CLOSING = "\"'”’»›)]}"  # may come between a mark and the white space
ABBREVIATIONS = frozenset(
    "Mr Mrs Ms Messrs Dr Prof St Mt Jr Rev Hon Gov Gen Col Capt Lt Sgt vs approx "
    "Sr Sra Sres Sras Srta Dra Dña Ud Uds Vd Vds Lic Ing Mons Excmo Avda EE UU ej aprox pág págs núm tel".split()
)

RARE = 50  # a model has learned lengths that at least one training line in this many has

Count = Callable[[list[str]], list[int]]
Span = tuple[int, int]  # text[start:stop], a word or a part of an overlong one
Fits = Callable[[int, int], bool]  # whether the units from start to stop fit into a piece


@dataclass(frozen=True)
class Usual:
    """The largest lengths of the lines that a model was trained on."""

    sentences: int  # rare lines may have more
    tokens: int  # including EOS


def split_line(text: str, language: str, usual: Usual, count: Count) -> list[str]:
    """The normalised text itself if training had lines like it, else its sentences; overlong sentences are cut."""
    sentences = split_sentences(text, language)
    if len(sentences) <= usual.sentences and count([text])[0] <= usual.tokens:
        return [text]
    return list(chain.from_iterable(cut(sentence, usual.tokens, count) for sentence in sentences))


def has_fewer_sentences(translation: str, target: str, text: str, source: str) -> bool:
    """Whether a translation in the language ``target`` has lost a sentence of a normalised text in ``source``."""
    return len(split_sentences(translation, target)) < len(split_sentences(text, source))


def count_usual_sentences(lines: Sequence[str], languages: Iterable[str]) -> int:
    """The largest number of sentences that at least one line in ``RARE`` has."""
    numbers = Counter(map(len, map(split_sentences, lines, languages)))
    return max((number for number, count in numbers.items() if count * RARE >= len(lines)), default=1)


def split_sentences(text: str, language: str) -> list[str]:
    """The sentences of a normalised text; text in an unknown ``language`` is split as English.

    A part without a letter, such as "1.", belongs to the next part. So does a part that ends with an abbreviated title:
    sentencex knows the titles of only one language, but names appear in others.
    """
    ends, stop = [0], 0
    for part in segment(language, text):
        stop += len(part)
        if any(map(str.isalpha, part)) and name_before_stop(part.rstrip()) not in ABBREVIATIONS:
            ends.append(stop)
    return [text[start:stop].strip() for start, stop in pairwise([0, *ends[1:-1], len(text)])]


def cut(text: str, longest: int, count: Count) -> list[str]:
    """Cut a normalised text into pieces of at most ``longest`` tokens; a text that fits is the only piece.

    ``count`` returns the number of tokens of each text, including EOS. A piece ends at the last sentence end that fits,
    else after the last ; : , or dash, else at the last space. A word too long by itself is cut, but never inside a
    character. No piece is empty; joined by spaces, they restore the text, with an extra space wherever a word was cut.
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
    """The words in order; overlong words are cut repeatedly until their parts fit."""
    units: list[Span] = []
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    room = max(1, longest - 2)  # without EOS and the space that a tokenizer may add at the start
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
    """The numbers of units after which a sentence, a clause and a word may end, in order; each list starts with 0.

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
    """Whether the word ends with the full stop of an abbreviation (Sra. EE.) or of an initial (J. p. e.g.)."""
    name = name_before_stop(word)
    return word.endswith(".") and (name in ABBREVIATIONS or (len(name) == 1 and name.isalpha()))


def name_before_stop(text: str) -> str:
    """The letters and digits before the last character."""
    return re.split(r"\W", text[:-1])[-1]


def find_furthest(start: int, end: int, fits: Fits) -> int:
    """The last stop up to ``end`` such that the piece from ``start`` fits; a single unit always does.

    Doubling the step, then bisecting (Bentley and Yao 1976), never tokenizes a text much longer than a piece.
    """
    step = 1
    while start + 2 * step <= end and fits(start, start + 2 * step):
        step *= 2
    unknown = range(start + step + 1, min(start + 2 * step, end + 1))
    return start + step + bisect_left(unknown, True, key=lambda stop: not fits(start, stop))


def choose_stop(start: int, last: int, ends: list[list[int]], fits: Fits) -> int:
    """The last sentence end up to ``last``, else clause end, else word end, else ``last`` itself.

    An earlier end is checked again: a tokenizer may need more tokens for a text than for a longer text that starts so.
    """
    if last == ends[-1][-1]:
        return last
    candidates = [places[bisect_right(places, last) - 1] for places in ends]
    return next((stop for stop in candidates if stop > start and (stop == last or fits(start, stop))), last)
