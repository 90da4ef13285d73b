"""Translate standard input line by line: python translate.py <lines.txt. The README lists the requirements."""

import os
import sys
from typing import Any

import ctranslate2

from sentences import END, FOLDER, LineTranslator, Pieces


class Model(LineTranslator):
    """The model of this folder, with the search settings of the run that it was exported from."""

    library = f"ctranslate2 {ctranslate2.__version__}"
    batch = sys.maxsize  # all: CTranslate2 makes its own batches, and searches several at a time

    def __init__(self, **options: Any) -> None:
        super().__init__("tokenizer.model")
        if options.get("device", "cpu") == "cpu":  # one worker per core is faster than one worker on all cores
            options = {"inter_threads": os.cpu_count() or 1, "intra_threads": 1} | options
        self.translator = ctranslate2.Translator(str(FOLDER), **options)

    def search(self, sources: list[Pieces], limit: int) -> list[Pieces]:
        """The best translation of each source among twice the beam size, preferring finished ones."""
        size = self.facts["search"]["beam_size"]
        found = 2 * size if size > 1 else 1
        options = {"beam_size": size, "num_hypotheses": found, "patience": found / size, "length_penalty": 1e-9}
        options |= {"max_decoding_length": limit, "min_decoding_length": 0, "max_input_length": 0, "max_batch_size": 32}
        results = self.translator.translate_batch(sources, return_scores=True, return_end_token=True, **options)
        return [max(zip(each.scores, each.hypotheses, strict=True), key=self.rank)[1] for each in results]

    def log_probs(self, source: Pieces, target: Pieces) -> list[float]:
        """The log-probability of each piece of the target, including </s>."""
        return list(self.translator.score_batch([source], [target], max_input_length=0)[0].log_probs)

    def rank(self, hypothesis: tuple[float, Pieces]) -> tuple[bool, float]:
        """Whether it ended, and its log-probability divided by a length penalty that CTranslate2 does not have."""
        log_prob, tokens = hypothesis
        search = self.facts["search"]
        base = {"gnmt": (5 + len(tokens)) / 6, "length": len(tokens)}[search["normalization"]]
        return tokens[-1:] == [END], log_prob / float(base ** search["length_penalty"])


if __name__ == "__main__":
    Model().translate_input()
