"""Eight simulated devices divide the sentences, and give what one device gives, to the last bit."""

import json
import os

import pytest

from configs.load import load_run_config
from eval import main as evaluate
from scripts.score import main as score
from scripts.translate import main as translate
from training.run.corpus import load_held_out

EIGHT = "--xla_force_host_platform_device_count=8 --xla_cpu_collective_call_terminate_timeout_seconds=240"
SAMPLE = ["decoding.search=sample", "decoding.candidates=3", "decoding.mbr=chrf"]


def report(folder):
    """A report without its times, and the sentences with their scores."""
    (facts,), (lines,) = ([path.read_text("utf-8") for path in folder.glob(f"*.{end}")] for end in ("json", "jsonl"))
    return {key: value for key, value in json.loads(facts).items() if "second" not in key}, lines


@pytest.fixture
def eight(call, monkeypatch):
    """``eight("eval.py", …)``: what a program prints in a process that has eight devices."""

    def eight(program, *arguments, text=b""):
        monkeypatch.setenv("XLA_FLAGS", f"{os.environ.get('XLA_FLAGS', '')} {EIGHT}")
        return call(program, *arguments, text=text).stdout.decode()

    return eight


@pytest.mark.slow
def test_every_device_translates(run_dir, run_main, eight, tmp_path):
    """By a beam in eval.py and by draws in translate.py; this process has one device."""
    assert run_main(evaluate, run_dir, "--output", tmp_path / "one")[0] == 0
    eight("eval.py", run_dir, "--output", tmp_path / "eight")
    assert report(tmp_path / "eight") == report(tmp_path / "one")
    sources = load_held_out(load_run_config(run_dir).data, "test", run_dir)[0].sources
    lines = "".join(f"{source}\n" for source in [*sources, "", sources[0] * 9]).encode()
    code, translated, _ = run_main(translate, run_dir, "--scores", *SAMPLE, text=lines)
    assert code == 0 and translated.count("\n") == len(sources) + 2
    assert eight("scripts/translate.py", run_dir, "--scores", *SAMPLE, text=lines) == translated


@pytest.mark.slow
def test_every_device_scores(run_dir, run_main, eight):
    pairs = (run_dir.parent / "test.tsv").read_bytes()
    code, scored, _ = run_main(score, run_dir, text=pairs)
    assert code == 0 and scored.count("\n") == 12
    assert eight("scripts/score.py", run_dir, text=pairs) == scored
