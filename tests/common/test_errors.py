"""The one line of a user's mistake, and standard error where nothing can be written to it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import run_code

NOTES = """
from common.errors import UserError, exit_on_user_error, write_note
with exit_on_user_error():
    write_note("a note")
    print("a result")
    raise UserError("a mistake")
"""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a device on which no byte has room")
def test_results_and_the_exit_code_do_not_depend_on_standard_error():
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", NOTES], stdout=subprocess.PIPE, stderr=full, text=True)
    assert (done.returncode, done.stdout) == (2, "a result\n")
    done = run_code(NOTES)
    assert (done.returncode, done.stdout, done.stderr) == (2, "a result\n", "a note\nerror: a mistake\n")
