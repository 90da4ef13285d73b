"""Everything of a run that must not depend on how often it was interrupted, as digests that two runs can compare."""

import hashlib
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np

from common.digests import sha256
from model.config import ModelConfig
from training.config import TrainingConfig
from training.run.checkpoint import good_steps, notes, restore
from training.run.metrics import MEASURED
from training.state import init_state


def outcome(run_dir: Path, model: ModelConfig, training: TrainingConfig, vocab_size: int) -> dict[str, str]:
    """Digests and figures of a run's newest and best checkpoints, metrics, data and validation, by name."""
    newest = good_steps(run_dir)[-1]
    progress = notes(run_dir, newest)
    like = init_state(model, training, vocab_size)
    state, best = restore(run_dir, newest, like), restore(run_dir, progress["best_step"], like)
    lines = metrics_of(run_dir)
    return {
        "steps": str(newest),
        "parameters": digest_of(state.params),
        "optimizer state": digest_of(state.opt_state),
        "averaged parameters": digest_of(state.averaged) if state.averaged is not None else "none",
        "sums and counts": digest_of((state.step, state.sums, state.skipped)),
        "sequence of batches": progress["batches"],
        "lines of metrics.jsonl": str(len(lines)),
        "metrics.jsonl": sha256(json.dumps(lines).encode()),
        "best checkpoint": f"step {progress['best_step']}, BLEU {progress['best_bleu']!r}",
        "its parameters": digest_of(best.evaluated),
        "evaluations since": str(progress["stale"]),
        "tokenizer": sha256((run_dir / "tokenizer.model").read_bytes()),
        "data": json.loads((run_dir / "data.json").read_text(encoding="utf-8"))["fingerprint"],
        "validation translations": sha256((run_dir / "eval" / "valid.translations.txt").read_bytes()),
    }


def metrics_of(run_dir: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl without what is measured: the same whenever the run is repeated."""
    lines = map(json.loads, (run_dir / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [{key: value for key, value in line.items() if key not in MEASURED} for line in lines]


def digest_of(tree: Any) -> str:
    """SHA-256 of the bits of all leaves, in the order of the tree."""
    digest = hashlib.sha256()
    for path, leaf in jax.tree.leaves_with_path(tree):
        digest.update(f"{jax.tree_util.keystr(path)} {leaf.dtype} {leaf.shape}".encode())
        digest.update(np.ascontiguousarray(leaf).data)
    return digest.hexdigest()
