"""Sentences that splits share, compared without case, punctuation and white space on each side."""

import hashlib
import io
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import UInt64

from common.errors import UserError
from common.files import write_atomically
from common.text import in_brief
from data.pairs import Pairs, fold_all
from data.report import SPLITS, Overlap, SharedSentences, Sides
from data.store import in_blocks

HASHES_FILE = "training_sentences.npz"


def hash_sentences(sentences: Iterable[str]) -> UInt64[np.ndarray, " distinct"]:
    """Sorted distinct 8-byte BLAKE2b hashes of the folded sentences."""
    digests = bytearray()  # the sentences themselves would take too much memory
    for block in in_blocks(sentences):
        digests += b"".join([hashlib.blake2b(s.encode(), digest_size=8).digest() for s in set(fold_all(block))])
    hashes = np.frombuffer(digests, dtype="<u8")
    hashes.sort()  # in place: np.unique would put integers into a table of six times their size
    is_new = np.ones(len(hashes), dtype=bool)
    is_new[1:] = hashes[1:] != hashes[:-1]
    return hashes[is_new]


def find_overlap(splits: dict[str, Pairs]) -> Overlap:
    """For every two splits and each side, the distinct folded sentences in both."""
    sources = folded_splits({name: pairs.sources for name, pairs in splits.items()})
    targets = folded_splits({name: pairs.targets for name, pairs in splits.items()})
    return {
        f"{a}/{b}": Sides(intersect(sources[a], sources[b]), intersect(targets[a], targets[b]))
        for a, b in itertools.combinations(SPLITS, 2)
    }


def folded_splits(splits: dict[str, Sequence[str]]) -> dict[str, set[str]]:
    """The folded sentences of each split; of ``train``, which may be large, only those that another split has."""
    others = {name: set(fold_all(sentences)) for name, sentences in splits.items() if name != "train"}
    held_out = set().union(*others.values())
    return others | {"train": {folded for folded in fold_all(splits["train"]) if folded in held_out}}


def intersect(some: set[str], others: set[str]) -> SharedSentences:
    common = sorted(some & others)
    return SharedSentences(len(common), common[:3])


def refuse_overlap(overlap: Overlap, allowed: list[str]) -> None:
    """UserError if two splits share sentences and ``data.allow_overlap`` does not name them."""
    leaks = {splits: sides for splits, sides in overlap.items() if splits not in allowed and has_shared(sides)}
    if not leaks:
        return
    described = "; ".join(describe(splits, sides) for splits, sides in leaks.items())
    names = ",".join([*allowed, *leaks])
    raise UserError(
        f"splits share sentences (case and punctuation ignored): {described}. "
        f"Remove them from one of the files, or accept them with data.allow_overlap=[{names}]"
    )


def has_shared(sides: Sides[SharedSentences]) -> bool:
    return sides.source.shared + sides.target.shared > 0


def describe(splits: str, sides: Sides[SharedSentences]) -> str:
    source, target = sides.source, sides.target
    example = (source.examples + target.examples)[0]
    return f'{splits} {source.shared} source and {target.shared} target sentences, such as "{in_brief(example)}"'


def save_hashes(run_dir: Path, training: Pairs) -> None:
    """Write the hashes of the training sentences, so that later test sets can be compared with them."""
    content = io.BytesIO()
    np.savez(content, source=hash_sentences(training.sources), target=hash_sentences(training.targets))
    write_atomically(run_dir / HASHES_FILE, content.getvalue())


def overlap_with_training(run_dir: Path, sources: Iterable[str], targets: Iterable[str]) -> tuple[int, int]:
    """How many distinct folded sources and targets are among the run's training sentences of the same side."""
    known_sources, known_targets = load_hashes(run_dir)
    return (
        int(np.isin(hash_sentences(sources), known_sources, assume_unique=True).sum()),
        int(np.isin(hash_sentences(targets), known_targets, assume_unique=True).sum()),
    )


def load_hashes(run_dir: Path) -> tuple[UInt64[np.ndarray, " sources"], UInt64[np.ndarray, " targets"]]:
    """Read what ``save_hashes`` wrote, unpickling nothing; UserError if it is missing or damaged."""
    path = run_dir / HASHES_FILE
    damaged = UserError(
        f"{path} is damaged: continue the run with train.py, which writes it again, or bring the file back"
    )
    try:
        with np.load(path, allow_pickle=False) as training:
            sources, targets = training["source"], training["target"]
    except FileNotFoundError as error:
        raise UserError(f"{run_dir} has no {HASHES_FILE}: is it the directory of a training run?") from error
    except Exception as error:  # of zipfile, zlib and NumPy: they have no common ancestor
        raise damaged from error
    arrays = [array for array in (sources, targets) if isinstance(array, np.ndarray)]
    if [(array.dtype, array.ndim) for array in arrays] != [(np.uint64, 1)] * 2:
        raise damaged
    return sources, targets
