"""The N best translations of a line that read differently: different tokens can spell the same text."""

from evaluation.translate import Ensemble, OnProgress, Translation, Translator

MOST_ALIKE = 16  # times as many translations are searched before fewer texts are returned


def n_best(
    translator: Translator,
    params: Ensemble,
    lines: list[str],
    count: int,
    *,
    prefix: str = "",
    on_progress: OnProgress = None,
) -> list[list[Translation]]:
    """The ``count`` best translations of each line with different texts; fewer if the search has no more.

    A line that has too few texts is searched for more: the first ones stay as they are.
    """
    found: list[list[Translation]] = [[] for _ in lines]
    short, asked = list(range(len(lines))), count
    while short and asked <= MOST_ALIKE * count:
        texts = [lines[index] for index in short]
        candidates = translator.candidates(params, texts, asked, prefix=prefix, on_progress=on_progress)
        for index, each in zip(short, candidates, strict=True):
            found[index] = distinct(each)[:count]
        searched = zip(short, candidates, strict=True)
        short = [index for index, each in searched if len(each) == asked and len(found[index]) < count]
        asked *= 2
    return found


def distinct(translations: list[Translation]) -> list[Translation]:
    """The best translation of each text."""
    best = {translation.text: translation for translation in reversed(translations)}
    return [each for each in translations if best[each.text] is each]
