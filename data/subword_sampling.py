"""Subword regularisation: the same sentence in other subwords at every visit (Kudo 2018, section 3.2)."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
from jaxtyping import Float, Int

from data.batches.packing import TokenTable, token_table
from data.store.mmap_array import GrowingArray
from data.tokenizer import Tokenizer

BLOCK = 10_000  # sentences whose segmentations are lists, which take far more memory than arrays, at the same time


class Segmentations:
    """The likeliest segmentations of each sentence, found when it is first drawn and then kept, mapped.

    Finding them takes twenty times as long as all the rest of making a batch. Kept, they take some 1.1 kB of disk for
    a sentence of ten tokens.
    """

    def __init__(self, tokenizer: Tokenizer, sentences: Sequence[str]) -> None:
        self.tokenizer, self.sentences = tokenizer, sentences
        self.first = np.full(len(sentences), -1)  # of each sentence's segmentations; -1: not found yet
        self.count = np.zeros(len(sentences), np.int64)
        self.tokens, self.start = GrowingArray(np.int32), GrowingArray(np.int64)
        self.length, self.log_prob = GrowingArray(np.int64), GrowingArray(np.float64)

    def draw(self, chosen: Int[np.ndarray, " chosen"], alpha: float, seed: int) -> TokenTable:
        """A segmentation of each chosen sentence, drawn at random; it depends on the arguments and the texts alone.

        One of the likeliest, each with probability ∝ P(segmentation)^alpha; smaller ``alpha`` is more random. Needs a
        unigram vocabulary. SentencePiece's own sampler cannot be used: whatever its seed, it draws differently in every
        process.
        """
        self._find(np.unique(chosen[self.first[chosen] < 0]))
        counts = self.count[chosen]
        candidates = np.repeat(self.first[chosen] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        uniform = np.random.Philox(key=seed).random_raw(len(chosen)) / 2**64
        drawn = candidates[draw(self.log_prob.so_far()[candidates], counts, alpha, uniform)]
        return TokenTable(self.tokens.so_far(), self.start.so_far()[drawn], self.length.so_far()[drawn])

    def _find(self, new: Int[np.ndarray, " new"]) -> None:
        for first in range(0, len(new), BLOCK):
            some = new[first : first + BLOCK]
            found = self.tokenizer.segmentations([self.sentences[i] for i in some.tolist()])
            table = token_table(chain.from_iterable(found))
            counts = np.fromiter(map(len, found), np.int64, len(found))
            self.first[some] = len(self.start) + np.cumsum(counts) - counts
            self.count[some] = counts
            self.start.append(len(self.tokens) + table.start)
            self.length.append(table.length)
            self.log_prob.append(np.add.reduceat(self.tokenizer.scores[table.flat], table.start))
            self.tokens.append(table.flat)


def draw(
    log_probs: Float[np.ndarray, " candidates"],
    counts: Int[np.ndarray, " sentences"],
    alpha: float,
    uniform: Float[np.ndarray, " sentences"],
) -> Int[np.ndarray, " sentences"]:
    """The index of one candidate of every sentence, with probability ∝ exp(alpha · log_probs) among its own.

    The candidates of sentence i are the next ``counts[i]`` of the flat list, likeliest first.
    """
    last = np.cumsum(counts) - 1
    first = last - counts + 1
    weights = np.exp(alpha * (log_probs - np.repeat(log_probs[first], counts)))
    total = np.cumsum(weights)
    before = total[first] - weights[first]
    choice = np.searchsorted(total, before + uniform * (total[last] - before), side="right")
    return np.clip(choice, first, last)
