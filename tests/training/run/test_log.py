"""The lines of a run: their time, which stream has them, and what a lost one does."""

import io
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from training.run.log import tell, warn
from training.run.monitor import Monitor

SAY = """
import sys, time
from pathlib import Path
from cli.process import prepare_process
prepare_process()
from common.errors import exit_on_user_error
from training.run.monitor import Monitor
with exit_on_user_error():
    monitor = Monitor(Path(sys.argv[1]), 0, 3)
    for step in range(3):
        monitor.say(f"line {step} \N{RIGHTWARDS ARROW} é" + "." * 5000)
        if step == 0 and len(sys.argv) > 2:
            sys.stdin.readline()  # until the reader of the first line is gone
    monitor.close()
"""


def said(run_dir):
    """The lines of log.txt without their times."""
    return [line[21:].rstrip(".") for line in (run_dir / "log.txt").read_text(encoding="utf-8").splitlines()]


ALL = [f"line {step} → é" for step in range(3)]


def speak(run_dir, shell):
    """A process that says three lines, its streams redirected as a shell does."""
    command = ["sh", "-c", f'exec "$@" {shell}', "sh", sys.executable, "-c", SAY, str(run_dir)]
    return subprocess.run(command, capture_output=True, timeout=60, check=False)


def test_a_line_has_its_time_in_utc_on_standard_output_and_in_the_log(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TZ", "America/Mexico_City")
    before = datetime.now(UTC).replace(microsecond=0)
    tell(tmp_path, "a line")
    out, err = capsys.readouterr()
    assert err == "" and out == (tmp_path / "log.txt").read_text()
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ) a line\n", out)
    assert found and timedelta(0) <= datetime.fromisoformat(found[1]) - before < timedelta(seconds=60)


def test_a_warning_stays_on_standard_error(tmp_path, capsys):
    warn(tmp_path, "take care")
    assert capsys.readouterr() == ("", "warning: take care\n")
    assert said(tmp_path) == ["warning: take care"]


def test_a_redirected_run_has_its_lines_in_the_file_and_nothing_on_standard_error(tmp_path):
    done = speak(tmp_path, f">{tmp_path}/out.txt")
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "out.txt").read_bytes() == (tmp_path / "log.txt").read_bytes()
    assert said(tmp_path) == ALL


@pytest.mark.parametrize("shell", [">/dev/full", "<&- >&- 2>&-"])
def test_an_output_that_takes_nothing_costs_the_run_nothing(tmp_path, shell):
    """Closed, a stream must not become the number of a file of the run, which would then receive its lines."""
    done = speak(tmp_path, shell)
    full = shell == ">/dev/full"
    assert done.returncode == 0
    assert [line for line in said(tmp_path) if not line.startswith("warning")] == ALL
    assert done.stdout == b"" and done.stderr.count(b"\n") == full
    assert (b"cannot write to standard output any more ([Errno 28] No space left on device)" in done.stderr) == full
    assert all(b"line 0" not in path.read_bytes() for path in tmp_path.glob("events*"))


def test_a_reader_that_goes_costs_the_run_nothing(tmp_path):
    command = [sys.executable, "-c", SAY, str(tmp_path), "wait"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin and process.stdout and process.stderr
        assert b"line 0" in process.stdout.readline()
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0
    assert said(tmp_path) == ALL


def test_text_of_a_corpus_steers_no_terminal_on_which_the_log_is_read(tmp_path, capsys):
    tell(tmp_path, "\x1b[2Jtold")
    warn(tmp_path, "\u202ewarned")
    assert said(tmp_path) == ["\\u001b[2Jtold", "warning: \\u202ewarned"]
    assert capsys.readouterr().err == "warning: \\u202ewarned\n"


class Terminal(io.StringIO):
    """What a terminal shows that two streams write to."""

    def isatty(self):
        return True


def test_on_a_terminal_lines_stand_above_the_bar(tmp_path, monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(sys, "stdout", shown)
    monitor = Monitor(tmp_path, 0, 10)
    monitor.record(1, "train", {"loss": 1.0, "learning_rate": 0.1, "tokens_per_second": 5.0})
    monitor.advance()
    monitor.say("a line")
    monitor.close()
    rows = [row.rpartition("\r")[2] for row in shown.getvalue().split("\n")]  # a carriage return overwrites the bar
    *lines, bar, last = rows
    assert lines == (tmp_path / "log.txt").read_text().splitlines() and len(lines) == 2
    assert "/10 [" in bar and "loss 1.000" in shown.getvalue() and last == ""
