"""A run directory as training would leave it, but with random parameters, and a way to call programs on it."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from configs.load import load_config, save_config
from data.prepare import prepare
from training.checkpoint import save
from training.state import init_state

ROOT = Path(__file__).parents[2]
WORDS = ["Tom", "Ana", "eats", "runs", "here", "there", *map("".join, itertools.permutations("arnoste", 3))]
CONFIG = {
    "tokenizer": {"vocab_size": 300},
    "model": {"d_model": 16, "num_heads": 2, "head_dim": 8, "encoder_layers": 1, "decoder_layers": 1, "d_ff": 32},
    "training": {"steps": 10},
    "decoding": {"beam_size": 2, "batch_sentences": 4, "max_length_factor": 1.0},
    "data": {"row_length": 64, "batch_rows": 2},
}


def pairs(first: int, count: int) -> str:
    """Pairs of made-up sentences, no two alike."""
    sources = (
        " ".join([WORDS[number % 216], WORDS[number // 2], WORDS[-number]]) for number in range(first, first + count)
    )
    return "".join(f"{source}.\t¡{source[::-1]}!\n" for source in sources)


@pytest.fixture(scope="session")
def run_dir(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for name, first, count in (("train", 1, 160), ("valid", 170, 8), ("test", 180, 12)):
        (folder / f"{name}.tsv").write_text(pairs(first, count), encoding="utf-8")
    (folder / "tiny.yaml").write_text(json.dumps(CONFIG), encoding="utf-8")  # JSON is YAML
    run = folder / "run"
    config = load_config(folder / "tiny.yaml", [f"data.root={folder}", f"run_dir={run}"])
    prepared = prepare(config.data, config.tokenizer, config.training.seed, run)
    save_config(config, run / "config.yaml")
    save(run, init_state(config.model, config.training, prepared.tokenizer.vocab_size), {"best_step": 0})
    return run


@pytest.fixture(scope="session")
def call():
    """``call("eval.py", …)`` runs a program of the clone as a user does."""

    def call(program: str, *arguments: object, text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, str(ROOT / program), *map(str, arguments)]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        return subprocess.run(command, input=text, capture_output=True, env=environment, timeout=300, check=False)

    return call
