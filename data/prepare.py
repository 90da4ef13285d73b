"""From a config to everything that training needs of the corpus, and the record of it in the run directory."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.assemble import Corpus, assemble, weights_of
from data.config import DataConfig, TokenizerConfig
from data.corpus import held_out_path
from data.errors import UserError
from data.files import write_atomically
from data.pairs import Pairs, as_tsv, concatenate
from data.split import save_hashes
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
    corpus = assemble(config, run_dir)
    training, weights = concatenate(corpus.sources), weights_of(config, corpus.sources)
    tokenizer = train_or_load_tokenizer(run_dir, training, tokenizer_config)
    stream = BatchStream(training, tokenizer, config, seed, run_dir / "row_counts.json", weights)
    refuse_other_batches(run_dir, stream.fingerprint)
    save_held_out(config, corpus, run_dir)
    tokenizer.save(run_dir)
    save_hashes(run_dir, training)
    report = {
        "direction": f"{config.source}-{config.target}",
        "files": corpus.accounts,
        "dropped": corpus.dropped() | stream.report,
        "training_pairs": stream.pairs,
        "overlap": corpus.overlap,
        "tokenizer": {"sha256": sha256(tokenizer.model), "vocab_size": tokenizer.vocab_size},
        "row_lengths": dict(zip(("source", "target"), stream.row_lengths, strict=True)),
        "fill": dict(zip(("source", "target"), stream.fill(), strict=True)),
        "fingerprint": stream.fingerprint,
    }
    write_atomically(run_dir / "data.json", json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    return Prepared(stream, corpus.valid, tokenizer, report)


def save_held_out(config: DataConfig, corpus: Corpus, run_dir: Path) -> None:
    """Keep the sets that were taken out of the training pairs in the run, and their SHA-256 in their accounts."""
    for split, pairs, name in (("valid", corpus.valid, config.valid), ("test", corpus.test, config.test)):
        if not name:
            turned = config.source != config.columns[0]
            columns = (pairs.targets, pairs.sources) if turned else (pairs.sources, pairs.targets)
            content = as_tsv(*columns).encode()
            write_atomically(held_out_path(run_dir, split), content)
            corpus.accounts[split][0]["sha256"] = sha256(content)


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
