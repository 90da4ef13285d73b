"""Eight simulated devices divide the sentences, and give what one device gives, to the last bit."""

import json

import pytest

from configs.load import load_run_config
from training.run.corpus import load_held_out

EIGHT = "--xla_force_host_platform_device_count=8 --xla_cpu_collective_call_terminate_timeout_seconds=240"
SEARCHES = [[], ["decoding.search=sample", "decoding.candidates=3", "decoding.mbr=chrf"]]


def report(folder):
    """A report without its times, and the sentences with their scores."""
    (facts,), (sentences,) = (
        [path.read_text("utf-8") for path in folder.glob(f"*.{end}")] for end in ("json", "jsonl")
    )
    return {key: value for key, value in json.loads(facts).items() if "second" not in key}, sentences


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES, ids=["beam", "sample"])
def test_every_device_translates(search, run_dir, call, monkeypatch, tmp_path):
    pairs, _ = load_held_out(load_run_config(run_dir).data, "test", run_dir)
    lines = "".join(f"{source}\n" for source in [*pairs.sources, "", pairs.sources[0] * 9]).encode()
    both = "".join(
        f"{source}\t{target}\n" for source, target in zip(pairs.sources, pairs.targets, strict=True)
    ).encode()
    found = []
    for name, flags in (("one", ""), ("eight", EIGHT)):
        monkeypatch.setenv("XLA_FLAGS", flags)
        evaluated = call("eval.py", run_dir, "--output", tmp_path / name, *search)
        translated = call("scripts/translate.py", run_dir, "--scores", *search, text=lines)
        scored = call("scripts/score.py", run_dir, text=both)
        assert [each.returncode for each in (evaluated, translated, scored)] == [0, 0, 0], evaluated.stderr.decode()
        found.append([report(tmp_path / name), translated.stdout, scored.stdout])
    assert found[0] == found[1]
    assert found[0][1].count(b"\n") == len(pairs.sources) + 2 and found[0][2]
