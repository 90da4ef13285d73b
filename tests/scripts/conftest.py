"""A run directory as training would leave it, but with random parameters."""

from pathlib import Path

import pytest

from configs.load import load_config, save_config
from tests.prepared import prepare_and_save
from training.run.checkpoint import save
from training.state import init_state


@pytest.fixture(scope="session")
def run_dir(small_experiment) -> Path:
    run = small_experiment.parent / "run"
    config = load_config(small_experiment, [f"run_dir={run}"])
    prepared = prepare_and_save(config.data, config.tokenizer, config.training.seed, run)
    save_config(config, run / "config.yaml")
    save(run, init_state(config.model, config.training, prepared.tokenizer.vocab_size), {"best_step": 0})
    return run
