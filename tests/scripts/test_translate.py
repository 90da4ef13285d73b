"""python scripts/translate.py RUN, as a user calls it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = "scripts/translate.py"


def test_a_line_for_a_line(run_dir, call):
    lines = ["Tom runs here.", "", "Ana eats\u2028there today now.", "Tom", "  ", "Ana eats there today now."]
    done = call(PROGRAM, run_dir, text="\n".join(lines).encode())
    assert done.returncode == 0, done.stderr.decode()
    translations = done.stdout.decode().split("\n")
    assert translations.pop() == ""
    assert [bool(line) for line in translations] == [bool(line.strip()) for line in lines]
    assert translations[2] == translations[5]


def test_no_input_gives_no_output(run_dir, call):
    done = call(PROGRAM, run_dir)
    assert (done.returncode, done.stdout) == (0, b"")


def test_mistakes_end_in_one_line_and_code_2(run_dir, call, tmp_path):
    mistakes = {
        "standard input:2: invalid UTF-8 at byte 3": ([run_dir], b"Tom\nAn\xe9\n"),
        "is not a run directory": ([tmp_path], b""),
        "translating cannot change model.d_ff": ([run_dir, "model.d_ff=8"], b""),
    }
    for message, (arguments, text) in mistakes.items():
        done = call(PROGRAM, *arguments, text=text)
        assert done.returncode == 2, message
        assert done.stderr.decode().startswith("error: ")
        assert message in done.stderr.decode()
        assert done.stderr.count(b"\n") == 1
        assert done.stdout == b""


def test_a_closed_pipe_ends_it_quietly(run_dir):
    """The reader takes one line and goes, as ``head -1`` does, while there are more blocks to translate."""
    command = [sys.executable, str(ROOT / PROGRAM), str(run_dir)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(b"Tom\n" * 512)
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"Tom\n" * 512)
        process.stdin.close()
        assert process.stderr.read() == b""
