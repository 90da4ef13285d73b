"""Digests of everything in a run that must not depend on how often it was interrupted."""

import hashlib
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np

from common.files import sha256, sha256_of_file
from evaluation.report import translations_beside
from model.config import ModelConfig
from training.config import TrainingConfig
from training.run.checkpoint import read_notes, restore
from training.run.layout import DATA, METRICS, TOKENIZER, report_path
from training.run.metrics import read_metrics
from training.run.retention import good_steps
from training.state import init_state


def digest_run(run_dir: Path, model: ModelConfig, training: TrainingConfig, vocab_size: int) -> dict[str, str]:
    """Digests and figures of the newest and best checkpoints, metrics, data and validation, by name."""
    newest = good_steps(run_dir)[-1]
    progress = read_notes(run_dir, newest)
    like = init_state(model, training, vocab_size)
    state, best = restore(run_dir, newest, like), restore(run_dir, progress["best_step"], like)
    lines = read_metrics(run_dir)
    return {
        "steps": str(newest),
        "parameters": digest_tree(state.params),
        "optimizer state": digest_tree(state.opt_state),
        "averaged parameters": digest_tree(state.averaged) if state.averaged is not None else "none",
        "sums and counts": digest_tree((state.step, state.sums, state.skipped)),
        "sequence of batches": progress["batches"],
        "lines of metrics.jsonl": str(len(lines)),
        METRICS: sha256(json.dumps(lines)),
        "best checkpoint": f"step {progress['best_step']}, BLEU {progress['best_bleu']!r}",
        "its parameters": digest_tree(best.inference_params),
        "evaluations since": str(progress["stale"]),
        "tokenizer": sha256_of_file(run_dir / TOKENIZER),
        "data": json.loads((run_dir / DATA).read_text(encoding="utf-8"))["fingerprint"],
        "validation translations": sha256_of_file(translations_beside(report_path(run_dir, "valid"))),
    }


def digest_tree(tree: Any) -> str:
    """SHA-256 over the path, type, shape and bits of every leaf, in the order of the tree."""
    digest = hashlib.sha256()
    for path, leaf in jax.tree.leaves_with_path(tree):
        digest.update(f"{jax.tree_util.keystr(path)} {leaf.dtype} {leaf.shape}".encode())
        digest.update(np.ascontiguousarray(leaf).data)
    return digest.hexdigest()
