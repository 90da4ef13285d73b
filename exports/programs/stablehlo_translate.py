"""Translate standard input line by line: python translate.py <lines.txt. Needs jax, flatbuffers, sentencepiece."""

from collections import defaultdict
from typing import Any

import jax
import jax.export
import numpy as np

from sentences import FOLDER, LineTranslator, Pieces

ROWS = 32  # sentences searched together: one shape for each program, which is compiled once


class Model(LineTranslator):
    """The model of this folder, with the search settings of the run that it was exported from."""

    library = f"jax {jax.__version__}"

    def __init__(self) -> None:
        super().__init__("tokenizer.model")
        with np.load(FOLDER / "weights.npz") as arrays:
            self.weights = {name: jax.device_put(arrays[name]) for name in arrays}
        self.loaded: dict[str, Any] = {}

    def run(self, name: str, *arguments: Any) -> Any:
        """What a program computes, which is loaded and compiled at its first use."""
        if name not in self.loaded:
            program = jax.export.deserialize(bytearray((FOLDER / f"{name}.stablehlo").read_bytes()))
            self.loaded[name] = jax.jit(program.call)
        return self.loaded[name](self.weights, *arguments)

    def translate_pieces(self, sources: list[Pieces]) -> list[Pieces]:
        """The pieces of each translation, with </s> at the end if it ended before its limit."""
        groups: dict[int, list[int]] = defaultdict(list)
        found: dict[int, Pieces] = {}
        for index, source in enumerate(sources):
            groups[self.bucket(source)].append(index)
        for length, indices in groups.items():
            for first in range(0, len(indices), ROWS):
                batch = indices[first : first + ROWS]
                found.update(zip(batch, self.search([sources[index] for index in batch], length), strict=True))
        return [found[index] for index in range(len(sources))]

    def search(self, sources: list[Pieces], length: int) -> list[Pieces]:
        """The best translation of each source; a row without a source costs no time."""
        limits = np.array([*map(self.limit, sources), *[0] * (ROWS - len(sources))], np.int32)
        rows = self.rows([*sources, *[[]] * (ROWS - len(sources))], length)
        kind = "greedy" if self.facts["search"]["beam_size"] == 1 else "beam"
        found = self.run(f"{kind}-{length}", rows, limits)
        ends = zip(np.asarray(found["tokens"]).tolist(), found["lengths"].tolist(), strict=True)
        return [[self.pieces.id_to_piece(token) for token in tokens[:end]] for tokens, end in ends][: len(sources)]

    def log_probs(self, source: Pieces, target: Pieces) -> list[float]:
        """The log-probability of each piece of the target, </s> included: the encoder, then a step for each."""
        targets, token, found = self.ids(target), self.pieces.bos_id(), []
        room = max(len(targets), self.facts["longest_target"])  # more than it takes: another shape would be compiled
        cache = self.run("encode", self.rows([source], self.bucket(source)), np.zeros(room, np.int32))
        for position, following in enumerate(targets):
            log_probs, cache = self.run("step", np.array([token], np.int32), np.int32(position), cache)
            token = following
            found.append(float(log_probs[0, token]))
        return found

    def bucket(self, source: Pieces) -> int:
        """The padded length of a source."""
        return next(length for length in self.facts["buckets"] if len(source) < length)

    def rows(self, sources: list[Pieces], length: int) -> Any:
        """Tokens of each source, </s> and <pad>; <pad> alone where there is none."""
        rows = np.zeros((len(sources), length), np.int32)
        for row, source in zip(rows, sources, strict=True):
            row[: len(source) + 1] = self.ids(source) if source else 0
        return rows


if __name__ == "__main__":
    Model().translate_input()
