"""The one evaluator, for validation during training and for eval.py."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from tqdm import tqdm

from data.pairs import Pairs
from evaluation.metrics import Scores, group_references, score
from evaluation.translate import Translator
from model.transformer import Params


@dataclass(frozen=True)
class Evaluation:
    """A held-out set, translated and scored. Lists have an entry for each distinct source."""

    sources: list[str]
    references: list[list[str]]
    translations: list[str]
    in_pieces: int  # sources too long to be translated whole
    unended: int  # translations cut off by their length limit
    scores: Scores
    seconds: float  # of translating, compilation included
    target_tokens: int  # without EOS

    @property
    def rows(self) -> int:
        """Pairs of the set: a source has one for each of its references."""
        return sum(map(len, self.references))

    @property
    def sentences_per_second(self) -> float:
        return len(self.sources) / self.seconds

    @property
    def target_tokens_per_second(self) -> float:
        return self.target_tokens / self.seconds


def evaluate(
    translator: Translator, params: Sequence[Params], pairs: Pairs, *, bootstrap: bool = False, progress: bool = False
) -> Evaluation:
    """Translate each distinct source once and score it against all its references; ``progress`` shows a bar."""
    sources, references = group_references(pairs.sources, pairs.targets)
    start = time.perf_counter()
    with tqdm(total=len(sources), unit="sentence", leave=False, disable=None if progress else True) as bar:
        translations = translator.translate(params, sources, on_progress=bar.update)
    seconds = time.perf_counter() - start
    texts = [translation.text for translation in translations]
    in_pieces = sum(len(translation.sources) > 1 for translation in translations)
    unended = sum(not translation.ended for translation in translations)
    scores = score(texts, references, bootstrap=bootstrap)
    target_tokens = sum(translation.length for translation in translations)
    return Evaluation(sources, references, texts, in_pieces, unended, scores, seconds, target_tokens)
