"""Subword regularisation: every visit splits a sentence into different subwords (Kudo 2018, section 3.2)."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
from jaxtyping import Float, Int

from data.sentences import GrowingArray
from data.tokens.table import GrowingTable, TokenTable, token_table
from data.tokens.tokenizer import Tokenizer

BLOCK = 10_000  # sentences to segment at once: as lists, segmentations take far more memory than as arrays


class Segmentations:
    """The most probable segmentations of each sentence, found at its first draw and then cached on disk.

    Finding them takes twenty times as long as the rest of building a batch. The cache takes about 1.1 kB of disk for a
    sentence of ten tokens.
    """

    def __init__(self, tokenizer: Tokenizer, sentences: Sequence[str]) -> None:
        self.tokenizer, self.sentences = tokenizer, sentences
        self.first = np.full(len(sentences), -1)  # each sentence's first segmentation in ``table``; -1: not found yet
        self.count = np.zeros(len(sentences), np.int64)
        self.table, self.log_prob = GrowingTable(), GrowingArray(np.float64)

    def draw(self, chosen: Int[np.ndarray, " chosen"], alpha: float, seed: int) -> TokenTable:
        """Draw a segmentation of each chosen sentence; the result depends only on the arguments and the texts.

        The most probable ones are drawn with probability ∝ P(segmentation)^alpha: a smaller ``alpha`` is more
        random. Needs a unigram vocabulary. SentencePiece's own sampler would draw differently in every process,
        whatever its seed.
        """
        self._find(np.unique(chosen[self.first[chosen] < 0]))
        counts = self.count[chosen]
        candidates = np.repeat(self.first[chosen] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        uniform = np.random.Philox(key=seed).random_raw(len(chosen)) / 2**64
        drawn = draw_candidates(self.log_prob.view()[candidates], counts, alpha, uniform)
        return self.table.view().take(candidates[drawn])

    def _find(self, new: Int[np.ndarray, " new"]) -> None:
        for first in range(0, len(new), BLOCK):
            some = new[first : first + BLOCK]
            found = self.tokenizer.segmentations([self.sentences[i] for i in some.tolist()])
            counts = np.fromiter(map(len, found), np.int64, len(found))
            self.first[some] = len(self.table) + np.cumsum(counts) - counts
            self.count[some] = counts
            table = token_table(chain.from_iterable(found))
            self.table.append(table)
            self.log_prob.append(np.add.reduceat(self.tokenizer.scores[table.flat], table.start))


def draw_candidates(
    log_probs: Float[np.ndarray, " candidates"],
    counts: Int[np.ndarray, " sentences"],
    alpha: float,
    uniform: Float[np.ndarray, " sentences"],
) -> Int[np.ndarray, " sentences"]:
    """The index of one candidate for each sentence, drawn with probability ∝ exp(alpha · log_probs) among its own.

    The candidates of sentence i are the next ``counts[i]`` of the flat list, most probable first.
    """
    last = np.cumsum(counts) - 1
    first = last - counts + 1
    unnormalised = np.exp(alpha * (log_probs - np.repeat(log_probs[first], counts)))
    total = np.cumsum(unnormalised)
    before = total[first] - unnormalised[first]
    choice = np.searchsorted(total, before + uniform * (total[last] - before), side="right")
    return np.clip(choice, first, last)
