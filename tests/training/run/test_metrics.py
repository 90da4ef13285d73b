"""Metrics survive crashes and restarts without a gap or a repeat."""

import errno
import io
import json
import sys
from datetime import UTC, datetime

from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.proto.plugin_hparams_pb2 import HParamsPluginData

from evaluation.sentences import Sentence
from training.run.metrics import read_metrics, rewind_metrics
from training.run.monitor import Monitor


def evaluated(run_dir, done=0, **metrics):
    """What a run records that begins after so many steps and is evaluated two steps later."""
    monitor = Monitor(run_dir, done, 10)
    monitor.record(done + 2, "valid", metrics or {"bleu": 1.5})
    monitor.close()


def test_lines_after_the_restored_step_and_half_lines_go(tmp_path):
    path = tmp_path / "metrics.jsonl"
    lines = [json.dumps({"step": step, "kind": "train"}) for step in (2, 4, 4, 6)]
    path.write_text("\n".join(lines) + '\n{"step": 8, "ki')
    rewind_metrics(path, 4)
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [2, 4, 4]


def test_records_are_json_even_when_they_are_not_finite(tmp_path):
    evaluated(tmp_path, loss=float("nan"), bleu=1.5)
    (line,) = (tmp_path / "metrics.jsonl").read_text().splitlines()
    entry = json.loads(line)
    assert datetime.fromisoformat(entry.pop("time")) <= datetime.now(UTC)
    assert entry == {"step": 2, "kind": "valid", "loss": "nan", "bleu": 1.5}
    assert "bleu 1.5" in (tmp_path / "log.txt").read_text()
    assert list(tmp_path.glob("events.out.tfevents.*"))


def test_the_evaluation_of_a_step_goes_too_where_it_was_not_finished(tmp_path):
    path = tmp_path / "metrics.jsonl"
    lines = [{"step": 2, "kind": "train"}, {"step": 2, "kind": "valid"}, {"step": 4, "kind": "train"}]
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"step": 4, "kind": "valid"}]))
    rewind_metrics(path, 4, evaluated=True)
    assert len(path.read_text().splitlines()) == 4
    rewind_metrics(path, 4, evaluated=False)
    assert [json.loads(line) for line in path.read_text().splitlines()] == lines


def test_lines_that_are_no_metrics_are_kept_aside_and_told(tmp_path, capsys):
    damaged = [b"\xff\x00", b"[1]", b'{"step": "4", "kind": "train"}', b"[" * 100_000]
    damaged += [b'{"step": 4, "kind": "valid", "loss": %s}' % value for value in (b"[1]", b'"x"', b"1" + b"0" * 400)]
    good = [b'{"step": 2, "kind": "train"}', b'{"step": 4, "kind": "valid"}']
    lines = [damaged[0], good[0], *damaged[1:], good[1]]
    (tmp_path / "metrics.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    Monitor(tmp_path, 4, 10).close()
    assert (tmp_path / "metrics.jsonl").read_bytes().splitlines() == good
    assert (tmp_path / "metrics.rejected.txt").read_bytes().splitlines() == damaged
    assert "warning: 7 lines of" in capsys.readouterr().err


def test_the_time_differs_when_a_run_is_repeated_and_older_lines_have_none(tmp_path):
    evaluated(tmp_path)
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1, "kind": "train", "loss": 3.0}\n' + path.read_text())
    assert rewind_metrics(path, 2) == 0
    assert read_metrics(tmp_path) == [
        {"step": 1, "kind": "train", "loss": 3.0},
        {"step": 2, "kind": "valid", "bleu": 1.5},
    ]


def test_a_terminal_that_is_gone_ends_nothing(tmp_path, monkeypatch):
    class Gone(io.StringIO):
        def write(self, text):
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(sys, "stdout", Gone())
    monkeypatch.setattr(sys, "stderr", Gone())
    monitor = Monitor(tmp_path, 0, 10)
    monitor.advance()
    monitor.record(2, "valid", {"bleu": 1.5})
    monitor.close()
    assert "bleu 1.5" in (tmp_path / "log.txt").read_text()


def test_only_the_first_process_writes_and_shows(tmp_path, monkeypatch, capsys):
    (tmp_path / "metrics.jsonl").write_text('{"step": 9, "kind": "train"}\n')
    monkeypatch.setattr("training.run.monitor.is_first", lambda: False)
    monitor = Monitor(tmp_path, 2, 10)
    monitor.advance()
    monitor.show_settings(2, {"training.steps": 10})
    monitor.record(3, "valid", {"bleu": 1.5})
    monitor.say("a line")
    monitor.close()
    assert capsys.readouterr() == ("", "")
    assert [path.read_text() for path in tmp_path.iterdir()] == ['{"step": 9, "kind": "train"}\n']


def read_events(run_dir):
    """The events of TensorBoard, without the first, which has the version of the file."""
    (path,) = run_dir.glob("events.out.tfevents.*")
    content, events = path.read_bytes(), []
    while content:  # a record: its length in 8 bytes, 4 of checksum, the event, 4 of checksum
        length = int.from_bytes(content[:8], "little")
        events.append(Event.FromString(content[12 : 12 + length]))
        content = content[16 + length :]
    return events[1:]


def test_tensorboard_reads_the_events(tmp_path):
    evaluated(tmp_path, done=2)
    start, *others = read_events(tmp_path)
    assert start.step == 3 and start.session_log.status == SessionLog.START  # later steps are told again
    assert [(e.step, e.summary.value[0].tag, e.summary.value[0].simple_value) for e in others] == [
        (4, "valid/bleu", 1.5)
    ]


def test_tensorboard_gets_the_settings_with_their_types_and_samples_as_a_table(tmp_path):
    settings = {"model.d_model": 64, "model.norm": "pre", "training.ema_decay": 0.5, "data.train": ["a.tsv"]}
    monitor = Monitor(tmp_path, 0, 10)
    monitor.show_settings(0, settings | {"data.drop_overlap": True})
    monitor.show_samples(4, "valid", [Sentence("A | b.", ["¡A!", "B"], "a\nb", [], -1.0, -1.0, True, 1)])
    monitor.close()
    experiment, session, samples = (event.summary.value[0] for event in read_events(tmp_path)[1:])
    of_experiment, of_session = (
        HParamsPluginData.FromString(each.metadata.plugin_data.content) for each in (experiment, session)
    )
    assert [each.name.tag for each in of_experiment.experiment.metric_infos] == ["valid/bleu", "valid/loss"]
    values = of_session.session_start_info.hparams
    assert (values["model.d_model"].number_value, values["training.ema_decay"].number_value) == (64, 0.5)
    assert (values["model.norm"].string_value, values["data.train"].string_value) == ("pre", "['a.tsv']")
    assert values["data.drop_overlap"].bool_value and len(values) == 5
    assert samples.metadata.plugin_data.plugin_name == "text"
    header, _, row = samples.tensor.string_val[0].decode().splitlines()[-3:]
    assert (header, row) == ("| source | reference | translation |", "| A \\| b. | ¡A! | a\\<U+000A\\>b |")
