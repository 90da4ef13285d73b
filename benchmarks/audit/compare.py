"""Compute the parts of a config, compiled and by their references, and compare."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks.audit.parts import Part, parts_of
from common.text_table import Table
from configs.schema import RunConfig

PEAK = 100  # tolerances: one element may differ by so much of the root mean square of all
TINY = 1e-30
Figures = dict[str, np.ndarray]


class Computed(NamedTuple):
    """The arrays of a part, and the SHA-256 of their bits when they were computed first and again."""

    figures: Figures
    digests: tuple[str, str]


@dataclass(frozen=True)
class Finding:
    """The greatest differences of a part's arrays, as shares of their norm and of their root mean square."""

    part: str
    norm: float
    peak: float
    tolerance: float
    same_bits: bool

    @property
    def is_right(self) -> bool:
        return self.norm <= self.tolerance and self.peak <= PEAK * self.tolerance and self.same_bits


def compute(config: RunConfig) -> Iterator[tuple[Part, Computed]]:
    """Each part as it is compiled here, computed twice."""
    for part in parts_of(config):
        first, second = (figures_of(part.compute(*part.arguments)) for _ in range(2))
        yield part, Computed(first, (digest(first), digest(second)))


def expect(config: RunConfig) -> Iterator[tuple[str, Figures]]:
    """Each part by its reference, or one operation of JAX after the other."""
    with jax.disable_jit():
        for part in parts_of(config):
            yield part.name, figures_of((part.reference or part.compute)(*part.arguments))


def figures_of(tree: Any) -> Figures:
    leaves = jax.tree.leaves_with_path(tree)
    return {jax.tree_util.keystr(path): np.asarray(leaf, host_dtype(leaf)) for path, leaf in leaves}


def host_dtype(leaf: Any) -> Any:
    """NumPy's files have no bfloat16."""
    return np.float32 if np.asarray(leaf).dtype == "bfloat16" else None


def digest(figures: Figures) -> str:
    return hashlib.sha256(b"".join(np.asarray(array).tobytes() for array in figures.values())).hexdigest()


def compare(part: str, tolerance: float, found: Figures, expected: Figures, same_bits: bool) -> Finding:
    """The greatest differences of a part's arrays."""
    norms, peaks = zip(*(difference(found[name], expected[name]) for name in expected), strict=True)
    return Finding(part, max(norms), max(peaks), tolerance, same_bits)


def difference(found: np.ndarray, expected: np.ndarray) -> tuple[float, float]:
    """The norm of the difference and its greatest element, as shares of the expected norm and root mean square.

    A NaN differs infinitely.
    """
    wide = expected.astype(np.float64)
    distance = np.nan_to_num(np.abs(found.astype(np.float64) - wide), nan=np.inf)
    norm = np.linalg.norm(wide) + TINY
    return float(np.linalg.norm(distance) / norm), float(distance.max() / norm * wide.size**0.5)


def as_table(title: str, findings: list[Finding]) -> Table:
    """The findings for a reader."""
    rows = []
    for each in findings:
        verdict = "right" if each.is_right else "WRONG" if each.same_bits else "OTHER BITS EACH TIME"
        rows.append([each.part, *(f"{share:.0e}" for share in (each.norm, each.peak, each.tolerance)), verdict])
    note = (
        "difference: its norm, as a share of the norm of what is right; greatest: of one element, as a share of the "
        f"root mean square, which may be {PEAK} tolerances"
    )
    return Table(title, note, ["part", "difference", "greatest", "tolerance", ""], rows)
