"""Do the splits share sentences? Compared without case, punctuation and white space, on each side."""

import hashlib
import io
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt64

from common.errors import UserError
from common.files import write_atomically
from common.text import in_brief
from data.pairs import Pairs, fold_all
from data.sources.corpus import SPLITS
from data.store.sentences import blocks_of

HASHES_FILE = "training_sentences.npz"
Audit = dict[str, dict[str, Any]]


def sentence_hashes(sentences: Iterable[str]) -> UInt64[np.ndarray, " H"]:
    """Sorted distinct 8-byte BLAKE2b hashes of the folded sentences."""
    digests = bytearray()  # of every sentence: the sentences themselves would be too many to keep and compare
    for block in blocks_of(sentences):
        digests += b"".join([hashlib.blake2b(s.encode(), digest_size=8).digest() for s in set(fold_all(block))])
    hashes = np.frombuffer(digests, dtype="<u8")
    hashes.sort()  # in place, and not by np.unique, which puts integers into a table of six times their size
    distinct = np.ones(len(hashes), dtype=bool)
    distinct[1:] = hashes[1:] != hashes[:-1]
    return hashes[distinct]


def audit(splits: dict[str, Pairs]) -> Audit:
    """For every two splits and each side: how many distinct folded sentences both have, and up to 3 of them."""
    sources = comparable({name: pairs.sources for name, pairs in splits.items()})
    targets = comparable({name: pairs.targets for name, pairs in splits.items()})
    return {
        f"{a}/{b}": {"source": shared(sources[a], sources[b]), "target": shared(targets[a], targets[b])}
        for a, b in itertools.combinations(SPLITS, 2)
    }


def comparable(splits: dict[str, Sequence[str]]) -> dict[str, set[str]]:
    """The folded sentences of each split, but of ``train``, which may be large, only what another split has too."""
    others = {name: set(fold_all(sentences)) for name, sentences in splits.items() if name != "train"}
    held_out = set().union(*others.values())
    return others | {"train": {folded for folded in fold_all(splits["train"]) if folded in held_out}}


def shared(some: set[str], others: set[str]) -> dict[str, Any]:
    common = sorted(some & others)
    return {"shared": len(common), "examples": common[:3]}


def refuse_overlap(report: Audit, allowed: list[str]) -> None:
    """UserError if two splits share sentences and ``data.allow_overlap`` does not name them."""
    leaks = {
        pair: sides
        for pair, sides in report.items()
        if pair not in allowed and (sides["source"]["shared"] or sides["target"]["shared"])
    }
    if not leaks:
        return
    told = "; ".join(describe(pair, sides) for pair, sides in leaks.items())
    names = ",".join([*allowed, *leaks])
    raise UserError(
        f"splits share sentences (case and punctuation ignored): {told}. "
        f"Remove them from one of the files, or accept them with data.allow_overlap=[{names}]"
    )


def describe(pair: str, sides: dict[str, Any]) -> str:
    source, target = sides["source"], sides["target"]
    example = (source["examples"] + target["examples"])[0]
    return f'{pair} {source["shared"]} source and {target["shared"]} target sentences, such as "{in_brief(example)}"'


def save_hashes(run_dir: Path, training: Pairs) -> None:
    """Keep the hashes of the training sentences in the run, so that any later test set can be checked against it."""
    content = io.BytesIO()
    np.savez(content, source=sentence_hashes(training.sources), target=sentence_hashes(training.targets))
    write_atomically(run_dir / HASHES_FILE, content.getvalue())


def overlap_with_training(run_dir: Path, sources: Iterable[str], targets: Iterable[str]) -> tuple[int, int]:
    """How many distinct folded sources, and targets, are among the run's training sentences of that side."""
    known_sources, known_targets = load_hashes(run_dir)
    return (
        int(np.isin(sentence_hashes(sources), known_sources, assume_unique=True).sum()),
        int(np.isin(sentence_hashes(targets), known_targets, assume_unique=True).sum()),
    )


def load_hashes(run_dir: Path) -> tuple[UInt64[np.ndarray, " H"], UInt64[np.ndarray, " H"]]:
    """What ``save_hashes`` kept; UserError if it is missing or anything else. Nothing is unpickled."""
    path = run_dir / HASHES_FILE
    try:
        with np.load(path, allow_pickle=False) as training:
            sources, targets = training["source"], training["target"]
    except FileNotFoundError as error:
        raise UserError(f"{run_dir} has no {HASHES_FILE}: is it the directory of a training run?") from error
    except Exception as error:  # of zipfile, zlib and NumPy: they have no common ancestor
        raise UserError(damaged(path)) from error
    arrays = [array for array in (sources, targets) if isinstance(array, np.ndarray)]
    if [(array.dtype, array.ndim) for array in arrays] != [(np.uint64, 1)] * 2:
        raise UserError(damaged(path))
    return sources, targets


def damaged(path: Path) -> str:
    return f"{path} is damaged: continue the run with train.py, which writes it again, or bring the file back"
