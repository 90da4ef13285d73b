"""From a config to everything that training needs of the corpus, and the record of it in the run directory."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from data.config import DataConfig, TokenizerConfig
from data.corpus import SPLITS, Pairs, filter_pairs, load_split
from data.errors import UserError
from data.files import write_atomically
from data.split import audit, refuse_overlap, save_hashes
from data.stream import BatchStream
from data.tokenizer import Tokenizer, sha256, train_or_load_tokenizer


@dataclass(frozen=True)
class Prepared:
    """The training batches, the validation pairs, the tokenizer, and what ``data.json`` says about them."""

    stream: BatchStream
    valid: Pairs
    tokenizer: Tokenizer
    report: dict[str, Any]


def prepare(config: DataConfig, tokenizer_config: TokenizerConfig, seed: int, run_dir: Path) -> Prepared:
    """Load, filter, audit, tokenize and pack. Every check of the input comes before the first file is written."""
    loaded = {split: load_split(config, split) for split in SPLITS}
    training, dropped = filter_pairs(loaded["train"][0], config.max_length_ratio)
    if len(training) == 0:
        raise UserError(f"the filters drop every training pair of {loaded['train'][1].file}: {dropped}")
    splits = {"train": training, "valid": loaded["valid"][0], "test": loaded["test"][0]}
    overlap = audit(splits)
    refuse_overlap(overlap, config.allow_overlap)
    tokenizer = train_or_load_tokenizer(run_dir, training, tokenizer_config)
    stream = BatchStream(training, tokenizer, config, seed, run_dir / "row_counts.json")
    refuse_other_batches(run_dir, stream.fingerprint)
    tokenizer.save(run_dir)
    save_hashes(run_dir, training)
    report = {
        "direction": f"{config.source}-{config.target}",
        "files": {split: asdict(report) for split, (_, report) in loaded.items()},
        "dropped": dropped | stream.report,
        "training_pairs": stream.pairs,
        "overlap": overlap,
        "tokenizer": {"sha256": sha256(tokenizer.model), "vocab_size": tokenizer.vocab_size},
        "row_lengths": dict(zip(("source", "target"), stream.row_lengths, strict=True)),
        "fill": dict(zip(("source", "target"), stream.fill(), strict=True)),
        "fingerprint": stream.fingerprint,
    }
    write_atomically(run_dir / "data.json", json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    return Prepared(stream, splits["valid"], tokenizer, report)


def refuse_other_batches(run_dir: Path, fingerprint: str) -> None:
    """UserError if the run has checkpoints but its corpus, tokenizer, seed or packing has changed since."""
    if not any(path.is_dir() for path in run_dir.glob("checkpoints/*")):
        return
    try:
        known = json.loads((run_dir / "data.json").read_text())["fingerprint"]
    except (OSError, ValueError, KeyError):
        return  # the record is lost; the tokenizer's own check has passed
    if known != fingerprint:
        raise UserError(f"the training data of {run_dir} changed since its checkpoints; choose a new run_dir=FOLDER")
