"""Whatever the encoding of the standard streams, a program ends as it would with UTF-8."""

import json
import os
import subprocess
import sys

import pytest

from tests.processes import run_code

TELL = """
import json
from common.errors import UserError, exit_on_user_error
with exit_on_user_error():
    print("se\\u00f1or \\u201cnear\\u201d \\U0001f600")
    print(json.dumps({"text": "se\\u00f1or \\u201cnear\\u201d \\U0001f600"}, ensure_ascii=False))
    raise UserError("no \\u201csuch\\u201d file")
"""
LATIN = {"PYTHONIOENCODING": "iso-8859-1"}
STRICT = {"PYTHONIOENCODING": "ascii:strict"}
POSIX = {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
STEER = """
import json
from common.errors import UserError, exit_on_user_error, write_note
with exit_on_user_error():
    print("a\\tb\\x1b[2J\\u202e", json.dumps("\\x9b\\u2066", ensure_ascii=False))
    write_note("\\x1b]0;title\\x07")
    raise UserError("no file \\x9b2J")
"""


def test_no_text_steers_the_terminal():
    done = run_code(STEER)
    assert done.stdout == 'a\tb\\u001b[2J\\u202e "\\u009b\\u2066"\n'
    assert done.stderr == "\\u001b]0;title\\u0007\nerror: no file \\u009b2J\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_the_null_device_and_no_file_has_its_number(tmp_path, closed):
    code = """
import sys; from common.errors import exit_on_user_error, write_note
with exit_on_user_error(), open(sys.argv[1], "w") as file:
    print("to the output", sys.stdin.read(), file=sys.stdout)
    write_note("to the errors")
    file.write(str(file.fileno()))
"""
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", code, str(tmp_path / "file")]
    done = subprocess.run(shell, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (
        "" if closed.startswith(">") or "2>&-" in closed[4:] else "to the output \n",
        "" if "2>&-" in closed else "to the errors\n",
    )
    assert int((tmp_path / "file").read_text()) > 2


@pytest.mark.parametrize(("variables", "encoding"), [(LATIN, "iso-8859-1"), (STRICT, "ascii"), (POSIX, "ascii")])
def test_letters_that_the_encoding_lacks_are_escaped_and_json_stays_json(variables, encoding):
    """Letters beyond 16 bits as two escapes, which JSON reads as one letter."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONUTF8", "LC_"))}
    done = subprocess.run([sys.executable, "-c", TELL], env=environment | variables, capture_output=True, check=False)
    text, as_json = done.stdout.decode(encoding).splitlines()
    eñe = "ñ" if encoding == "iso-8859-1" else "\\u00f1"
    assert text == f"se{eñe}or \\u201cnear\\u201d \\ud83d\\ude00"
    assert json.loads(as_json) == {"text": "señor “near” \U0001f600"}
    assert (done.returncode, done.stderr.decode(encoding)) == (2, "error: no \\u201csuch\\u201d file\n")
