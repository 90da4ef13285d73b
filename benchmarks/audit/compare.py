"""Compare the compiled results of a config's parts with their references."""

import hashlib
from typing import Any, NamedTuple

import jax
import numpy as np

from common.text_table import Table

PEAK = 100  # tolerances: one element may differ by this much, as a share of the root mean square of all
TINY = 1e-30
Figures = dict[str, np.ndarray]


class Finding(NamedTuple):
    """The largest differences of a part's arrays, as shares of their norm and of their root mean square."""

    part: str
    norm: float
    peak: float
    tolerance: float
    same_bits: bool

    @property
    def is_right(self) -> bool:
        return self.norm <= self.tolerance and self.peak <= PEAK * self.tolerance and self.same_bits


def figures_of(tree: Any) -> Figures:
    """The arrays of a tree by path, with bfloat16 as float32, because NumPy's files do not support bfloat16."""
    leaves = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in jax.tree.leaves_with_path(tree)}
    return {path: leaf.astype(np.float32) if leaf.dtype == "bfloat16" else leaf for path, leaf in leaves.items()}


def digest(figures: Figures) -> str:
    return hashlib.sha256(b"".join(np.asarray(array).tobytes() for array in figures.values())).hexdigest()


def compare(part: str, tolerance: float, found: Figures, expected: Figures, same_bits: bool) -> Finding:
    """The largest differences of a part's arrays."""
    norms, peaks = zip(*(difference(found[name], expected[name]) for name in expected), strict=True)
    return Finding(part, max(norms), max(peaks), tolerance, same_bits)


def difference(found: np.ndarray, expected: np.ndarray) -> tuple[float, float]:
    """Norm and largest element of the difference, as shares of the expected norm and root mean square; inf for NaN."""
    wide = expected.astype(np.float64)
    distance = np.nan_to_num(np.abs(found.astype(np.float64) - wide), nan=np.inf)
    norm = np.linalg.norm(wide) + TINY
    return float(np.linalg.norm(distance) / norm), float(distance.max() / norm * wide.size**0.5)


def as_table(title: str, findings: list[Finding]) -> Table:
    """The findings as a table."""
    rows = []
    for each in findings:
        verdict = "right" if each.is_right else "WRONG" if each.same_bits else "OTHER BITS EACH TIME"
        rows.append([each.part, *(f"{share:.0e}" for share in (each.norm, each.peak, each.tolerance)), verdict])
    greatest = f"of one element, as a share of the root mean square, which may be {PEAK} tolerances"
    note = f"difference: its norm, as a share of the reference's norm; greatest: {greatest}"
    return Table(title, note, ["part", "difference", "greatest", "tolerance", ""], rows)
