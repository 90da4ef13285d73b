"""Metrics survive crashes and restarts without a gap or a repeat."""

import json

from training.monitor import Monitor, keep_metrics_until


def test_lines_after_the_restored_step_and_half_lines_go(tmp_path):
    path = tmp_path / "metrics.jsonl"
    lines = [json.dumps({"step": step, "kind": "train"}) for step in (2, 4, 4, 6)]
    path.write_text("\n".join(lines) + '\n{"step": 8, "ki')
    keep_metrics_until(path, 4)
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [2, 4, 4]


def test_records_are_json_even_when_they_are_not_finite(tmp_path):
    monitor = Monitor(tmp_path, 0, 10)
    monitor.record(2, "valid", {"loss": float("nan"), "bleu": 1.5})
    monitor.close()
    (line,) = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line) == {"step": 2, "kind": "valid", "loss": "nan", "bleu": 1.5}
    assert "bleu 1.5" in (tmp_path / "log.txt").read_text()
    assert list(tmp_path.glob("events.out.tfevents.*"))
