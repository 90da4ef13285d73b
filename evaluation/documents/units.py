"""From the parts of a document to units of translation, and back; a unit is the text between two kept parts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, chain, groupby

from evaluation.documents.parts import Part
from evaluation.forced_scores import Aligned

Span = tuple[int, int]  # text[start:stop]
Marks = list[tuple[int, str]]  # positions in a translation, and the mark at each


@dataclass(frozen=True)
class Unit:
    """Text with marks that open and close spans of it."""

    parts: list[Part]

    @property
    def raw(self) -> str:
        return "".join(part.raw for part in self.parts)

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts)

    def between_marks(self) -> "Iterator[Unit | str]":
        """The texts between marks, each as a unit."""
        return find_units(part if part.kind == "text" else Part("keep", part.raw) for part in self.parts)

    def spans(self) -> list[tuple[Span, str, str]]:
        """The span between each pair of marks, and the marks; outer pairs first."""
        ends = list(accumulate(len(part.text) for part in self.parts))
        pairs = sorted(pair_marks(self.parts))
        return [((ends[one], ends[two]), self.parts[one].raw, self.parts[two].raw) for one, two in pairs]


def find_units(parts: Iterable[Part]) -> Iterator[Unit | str]:
    """The units of a document, and the kept text between them. A mark without its partner is kept."""
    for is_kept, group in groupby(parts, key=lambda part: part.kind == "keep"):
        unit = Unit(list(group))
        if is_kept or not any(map(str.isalpha, unit.text)):
            yield unit.raw
        elif alone := unpaired(unit.parts):
            places = enumerate(unit.parts)
            yield from find_units(Part("keep", part.raw) if place in alone else part for place, part in places)
        else:
            yield unit


def unpaired(parts: list[Part]) -> set[int]:
    """The places of marks that open or close nothing."""
    marks = {place for place, part in enumerate(parts) if part.kind in ("open", "close")}
    return marks.difference(chain(*pair_marks(parts)))


def pair_marks(parts: list[Part]) -> list[tuple[int, int]]:
    """The places of each opening mark and its closing mark."""
    opened, pairs = list[int](), list[tuple[int, int]]()
    for place, part in enumerate(parts):
        if part.kind == "open":
            opened.append(place)
        elif part.kind == "close" and opened:
            pairs.append((opened.pop(), place))
    return pairs


def place_marks(unit: Unit, translation: str, aligned: Aligned) -> Marks | None:
    """Where each mark goes in the translation: around the words aligned with the words it surrounds in the source.

    None if the alignment does not show where, or if spans that did not overlap would overlap.
    """
    sources, targets = find_words(aligned.source_words, unit.text), find_words(aligned.target_words, translation)
    if not sources or not targets:
        return None
    spans, placed = unit.spans(), list[Span]()
    for (start, stop), _, _ in spans:
        covered = {index for index, (first, last) in enumerate(sources) if first < stop and start < last}
        if not covered:
            return None
        words = project(covered, aligned.alignment, len(targets))
        whole = len(covered) == len(sources)
        placed.append((0, len(translation)) if whole else (targets[words.start][0], targets[words.stop - 1][1]))
    for outer, (one, found) in enumerate(zip(spans, placed, strict=True)):
        for other, later in zip(spans[outer + 1 :], placed[outer + 1 :], strict=True):
            is_inside, overlap = other[0][1] <= one[0][1], found[0] < later[1] and later[0] < found[1]
            if not (found[0] <= later[0] and later[1] <= found[1]) if is_inside else overlap:
                return None
    marks: list[tuple[int, int, int, str]] = []  # at the same place, closing marks come first, inner before outer
    for index, ((start, stop), (_, opening, closing)) in enumerate(zip(placed, spans, strict=True)):
        marks += [(start, 1, index, opening), (stop, 0, -index, closing)]
    return [(place, mark) for place, _, _, mark in sorted(marks)]


def project(covered: set[int], alignment: list[tuple[int, int]], targets: int) -> range:
    """The longest run of target words aligned with the covered source words, or else the word at the same position."""
    runs: list[range] = []
    for source, target in sorted(alignment, key=lambda pair: pair[1]):
        if source in covered:
            last = runs.pop() if runs and runs[-1].stop == target else range(target, target)
            runs.append(range(last.start, target + 1))
    sources = max(source for source, _ in alignment) + 1
    middle = min(targets - 1, sum(covered) * targets // (len(covered) * max(sources, max(covered) + 1)))
    return max(runs, key=len, default=range(middle, middle + 1))


def find_words(words: list[str], text: str) -> list[Span]:
    """The spans of the words in the text, one after the other; none if a word is missing."""
    spans: list[Span] = []
    done = 0
    for word in words:
        start = text.find(word, done)
        if start < 0:
            return []
        done = start + len(word)
        spans.append((start, done))
    return spans
