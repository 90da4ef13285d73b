"""A run directory that commit e0f3953 wrote, before every module moved: it still loads, continues and ends as it did.

``old_run.tar.gz`` holds its corpus, its config, the run with the checkpoint at step 100 of 200, and what the old code
computed: every other file of the finished run, and the digests of its checkpoint at step 200.
"""

import json
import os
import tarfile
from collections import namedtuple
from importlib.metadata import version
from pathlib import Path

import pytest

import eval as eval_program
from common.files import read_json, sha256
from common.processor import processor_id
from configs.load import load_config
from tests.run_digest import digest_run, digest_tree
from train import train
from training.run.checkpoint import restore
from training.run.metrics import read_metrics
from training.run.retention import good_steps
from training.state import state_shapes

ARCHIVE = Path(__file__).with_name("old_run.tar.gz")
# The sums of then, in their order. Later ones are no part of the digests.
Sums = namedtuple("Sums", "smoothed cross_entropy target_tokens source_tokens gradient_norm steps")
EQUAL_ON_EVERY_MACHINE = ("steps", "sequence of batches", "lines of metrics.jsonl", "tokenizer", "data")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.setenv("PUENTE_CORPUS", str(tmp_path / "old_run" / "corpus"))
    return tmp_path / "old_run"


def test_it_translates_as_it_did(folder, run_main):
    reports = folder / "run" / "eval"
    expected, translations = read_json(reports / "test.json"), (reports / "test.translations.txt").read_bytes()
    for path in reports.iterdir():
        path.unlink()
    assert run_main(eval_program.main, folder / "run")[0] == 0
    report = read_json(reports / "test.json")
    assert (reports / "test.translations.txt").read_bytes() == translations
    assert report.keys() >= expected.keys() - {"sentences_per_second", "target_tokens_per_second"}  # are no more
    for key in ("bleu", "chrf", "signature", "sources", "step", "test_set_sha256", "overlap_with_training", "decoding"):
        assert report[key] == expected[key], key


@pytest.mark.slow
def test_it_continues_and_ends_as_it_did(folder, capsys):
    run_dir, expected = folder / "run", read_json(folder / "expected.json")
    old_lines, environment = read_metrics(run_dir), read_json(run_dir / "environment.json")
    config = load_config(folder / "old.yaml", [f"run_dir={run_dir}"])
    assert good_steps(run_dir) == [100]
    train(config)
    assert good_steps(run_dir) == [100, 200]

    lines = [{key: new[key] for key in old} for old, new in zip(old_lines, read_metrics(run_dir), strict=True)]
    for old, new in zip(old_lines, lines, strict=True):
        assert (new["step"], new["kind"]) == (old["step"], old["kind"])
        numbers = [[line[key] for key in old if key != "kind"] for line in (old, new)]
        assert numbers[1] == pytest.approx(numbers[0], rel=1e-5)
    state = restore(run_dir, 200, state_shapes(config.model, config.training, 300))
    sums = Sums(*(getattr(state.sums, name) for name in Sums._fields))
    digests = digest_run(run_dir, config.model, config.training, 300) | {
        "metrics.jsonl": sha256(json.dumps(lines)),
        "sums and counts": digest_tree((state.step, sums, state.skipped)),
    }
    as_then = "optimization_level" not in os.environ.get("XLA_FLAGS", "")  # or LLVM rounds otherwise
    same_jax = environment["packages"]["jax"] == version("jax")
    same_arithmetic = as_then and same_jax and expected["processor"] == processor_id()
    compared = expected["digests"] if same_arithmetic else EQUAL_ON_EVERY_MACHINE
    assert {name: digests[name] for name in compared} == {name: expected["digests"][name] for name in compared}

    capsys.readouterr()
    train(config)
    assert "is complete at step 200: BLEU 2.44 at step 100" in capsys.readouterr().out
    assert good_steps(run_dir) == [100, 200]
