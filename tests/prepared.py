"""Corpora that are prepared as train.py does before its first step."""

from pathlib import Path
from typing import Any

import numpy as np

from configs.load import save_config
from configs.schema import RunConfig
from data.batches.encoded import encode_pairs
from data.batches.packing import Batch, Capacity, Placement, fill_rows, in_row_order
from data.batches.stream import BatchStream
from data.config import DataConfig
from data.corpus.build import Corpus, build, parse_sources
from data.pairs import Pairs, Weights
from data.prepare import Prepared
from data.tokens.table import TokenTable
from data.tokens.tokenizer import Tokenizer
from tests.drawn import drawn_state
from tests.saved import save
from training.run.corpus import prepare_for_run, save_corpus


def build_corpus(config: DataConfig) -> Corpus:
    """The corpus of a config, never from the cache."""
    return build(config, parse_sources(config))


def prepare_and_save(config: Any, tokenizer_config: Any, seed: int, run_dir: Path) -> Prepared:
    prepared = prepare_for_run(run_dir, config, tokenizer_config, seed)
    save_corpus(run_dir, prepared)
    return prepared


def save_untrained(config: RunConfig) -> Path:
    """A run directory as training would leave it, but with random parameters."""
    run = Path(config.run_dir)
    prepared = prepare_and_save(config.data, config.tokenizer, config.training.seed, run)
    save_config(config, run / "config.yaml")
    save(run, drawn_state(config.model, config.training, prepared.tokenizer.vocab_size), {"best_step": 0})
    return run


def stream_of(
    pairs: Pairs, tokenizer: Tokenizer, config: DataConfig, seed: int, weights: Weights = None
) -> BatchStream:
    """The batches of these pairs."""
    return BatchStream(encode_pairs(pairs, tokenizer, config, weights), tokenizer, config, seed)


def fill(sources: TokenTable, targets: TokenTable, placement: Placement, capacity: Capacity) -> Batch:
    """The placed pairs as rows."""
    packed = in_row_order(sources, targets, placement, np.arange(placement.rows))
    return fill_rows(packed, 0, placement.rows, capacity)
