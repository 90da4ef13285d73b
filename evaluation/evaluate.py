"""The single evaluator, for validation during training and for eval.py."""

import time
from dataclasses import dataclass, replace

from tqdm import tqdm

from data.pairs import Pairs
from evaluation.comparison.significance import bleu_interval
from evaluation.metrics import Scores, group_references, score
from evaluation.sentences import Sentence
from evaluation.translate import Ensemble, Translator


@dataclass(frozen=True)
class Evaluation:
    """A held-out set, translated and scored; ``sentences`` has an entry for each distinct source."""

    sentences: list[Sentence]
    scores: Scores
    seconds: float  # spent translating, including compilation

    @property
    def rows(self) -> int:
        """Number of pairs in the set: a source has one for each of its references."""
        return sum(len(sentence.references) for sentence in self.sentences)

    @property
    def in_pieces(self) -> int:
        """Number of sources that were not translated in one piece."""
        return sum(sentence.pieces > 1 for sentence in self.sentences)

    @property
    def unended(self) -> int:
        """Number of translations cut off by their length limit."""
        return sum(not sentence.ended for sentence in self.sentences)


def evaluate(
    translator: Translator, params: Ensemble, pairs: Pairs, *, set_name: str | None = None, progress: bool = False
) -> Evaluation:
    """Translate each distinct source once and score it against all its references.

    ``set_name``, the set's name in reports, adds BLEU's interval; ``progress`` shows a progress bar.
    """
    sources, references = group_references(pairs.sources, pairs.targets)
    start = time.perf_counter()
    with tqdm(total=len(sources), unit="sentence", leave=False, disable=None if progress else True) as bar:
        translations = translator.translate(params, sources, on_progress=bar.update)
    seconds = time.perf_counter() - start
    scores = score([translation.text for translation in translations], references)
    sentences = [
        Sentence(source, known, found.text, found.tokens, found.log_prob, found.score, found.ended, len(found.sources))
        for source, known, found in zip(sources, references, translations, strict=True)
    ]
    if set_name is not None:
        scores = replace(scores, bleu_interval=bleu_interval(sentences, set_name))
    return Evaluation(sentences, scores, seconds)
