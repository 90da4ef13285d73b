"""The N best translations of a line with different texts: different tokens can spell the same text."""

from collections.abc import Callable

from common.errors import UserError
from evaluation.translate import Translation
from model.config import DecodingConfig

MOST_ALIKE = 16  # search for up to this many times as many translations before returning fewer texts

Candidates = Callable[[list[str], int], list[list[Translation]]]  # up to this many translations of each line


def check_count(count: int, decoding: DecodingConfig, option: str) -> None:
    """UserError, which names the ``option``, if a search cannot list this many translations."""
    if count < 1 or (not decoding.draws and count > decoding.beam_size):
        raise UserError(f"{option} {count} must be from 1 to decoding.beam_size, {decoding.beam_size}")
    if decoding.mbr != "none":
        raise UserError(f"{option} lists all candidates, but decoding.mbr chooses one: leave one of them out")


def n_best(candidates: Candidates, lines: list[str], count: int) -> list[list[Translation]]:
    """The ``count`` best translations of each line with different texts; fewer if the search has no more.

    A line with too few texts is searched again for more translations; the first ones stay the same.
    """
    found: dict[int, list[Translation]] = {}
    short, asked = list(range(len(lines))), count
    while short and asked <= MOST_ALIKE * count:
        searched = dict(zip(short, candidates([lines[index] for index in short], asked), strict=True))
        found.update((index, distinct(each)[:count]) for index, each in searched.items())
        short = [index for index, each in searched.items() if len(each) == asked and len(found[index]) < count]
        asked *= 2
    return [found[index] for index in range(len(lines))]


def distinct(translations: list[Translation]) -> list[Translation]:
    """The best translation of each text."""
    best = {translation.text: translation for translation in reversed(translations)}
    return [each for each in translations if best[each.text] is each]
