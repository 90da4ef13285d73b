"""Compiled programs are cached for other processes, unless JAX's own variables say otherwise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SETTINGS = "JAX_COMPILATION_CACHE_DIR", "JAX_COMPILATION_CACHE_MAX_SIZE", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"
TELL = """
import os
from cli.process import prepare_process
prepare_process()
print(os.environ.get("JAX_COMPILATION_CACHE_DIR"), os.environ.get("GLIBC_TUNABLES"))
"""
COMPILE = """
from cli.process import prepare_process
prepare_process()
import jax
hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event.endswith("/cache_hits")))
print(jax.jit(lambda x: (x @ x).sum())(jax.numpy.ones((4, 4))), any(hits))
"""


def run(code: str, cache: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A process that has the user's cache folder there, and no settings but ``variables``."""
    environment = {name: value for name, value in os.environ.items() if name not in (*SETTINGS, "GLIBC_TUNABLES")}
    environment |= {"XDG_CACHE_HOME": str(cache)} | variables
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)


def test_the_folder_is_the_users_and_the_process_has_large_pages(tmp_path):
    folder, tunables = run(TELL, tmp_path).stdout.split()
    assert Path(folder).parent == tmp_path / "puente" and Path(folder).is_dir()
    assert tunables == ("glibc.malloc.hugetlb=1" if sys.platform == "linux" else "None")


def test_a_session_that_runs_a_program_goes_on(tmp_path):
    """As %run of IPython does: no new process takes the session's place, and Ctrl-C stays the session's."""
    (tmp_path / "program.py").write_text(TELL)
    session = (
        "import runpy, signal, sys\n"
        "here, sys.argv = 42, ['program.py']\n"
        f"runpy.run_path('{tmp_path / 'program.py'}', run_name='__main__')\n"
        "print(here, signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    )
    told = run(session, tmp_path).stdout.splitlines()
    assert told == [f"{told[0].split()[0]} None", "42 True"]


def test_what_the_environment_says_stays(tmp_path):
    told = run(TELL, tmp_path, JAX_COMPILATION_CACHE_DIR="mine", GLIBC_TUNABLES="glibc.malloc.hugetlb=0").stdout
    assert told.split() == ["mine", "glibc.malloc.hugetlb=0"]
    assert not list(tmp_path.iterdir())


def test_settings_that_would_change_numbers_are_left_out_with_a_line_each_that_says_so(tmp_path):
    """Asked of JAX itself, in a process that starts again: nothing is told twice."""
    code = """
from cli.process import prepare_process
prepare_process()
import jax
print(jax.numpy.arange(3).dtype, jax.random.key(1).dtype, jax.config.values["jax_threefry_partitionable"])
jax.numpy.ones((2, 2), jax.numpy.int32) + jax.numpy.ones(2)
"""
    settings = {
        "JAX_ENABLE_X64": "1",
        "JAX_DEFAULT_PRNG_IMPL": "rbg",
        "JAX_THREEFRY_PARTITIONABLE": "0",
        "JAX_NUMPY_DTYPE_PROMOTION": "strict",
        "JAX_NUMPY_RANK_PROMOTION": "raise",
    }
    done = run(code, tmp_path, **settings)
    assert done.stdout == "int32 key<fry> True\n"
    told = "note: {}={} is left out: it would change the numbers of this program\n"
    assert sorted(done.stderr.splitlines(True)) == sorted(told.format(*setting) for setting in settings.items())


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path):
    (tmp_path / "file").touch()
    done = run(TELL, tmp_path / "file")
    assert done.stdout.split()[0] == "None" and not done.stderr


def test_a_folder_without_file_locks_caches_nothing(tmp_path, without_flock):
    """JAX's own lock there would be a file that a killed process leaves."""
    assert run(TELL, tmp_path, LD_PRELOAD=without_flock["LD_PRELOAD"]).stdout.split()[0] == "None"


def test_ctrl_c_before_the_program_handles_it_leaves_no_traceback(tmp_path):
    usual = "import signal\nsignal.signal(2, signal.default_int_handler)"  # a shell's background jobs ignore Ctrl-C
    code = f"{usual}\n{TELL}\nos.kill(os.getpid(), 2)\nprint('on')"
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-2, "") and not done.stdout.endswith("on\n")


@pytest.mark.slow
def test_a_second_process_takes_what_the_first_compiled_and_a_damaged_program_is_compiled_again(tmp_path):
    at_once = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    assert run(COMPILE, tmp_path, **at_once).stdout.split() == ["64.0", "False"]
    assert run(COMPILE, tmp_path, **at_once).stdout.split() == ["64.0", "True"]
    programs = list(tmp_path.rglob("*-cache"))
    for program in programs:
        program.write_bytes(program.read_bytes()[:100])
        program.with_name(program.name.replace("-cache", "-atime")).unlink()  # as a process leaves it that was killed
    assert run(COMPILE, tmp_path, **at_once).stdout.split() == ["64.0", "False"]
    assert all(program.stat().st_size > 100 for program in programs)


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["JAX_ENABLE_COMPILATION_CACHE=false", "JAX_COMPILATION_CACHE_DIR="])
def test_it_can_be_turned_off(tmp_path, variable):
    name, value = variable.split("=")
    done = run(COMPILE, tmp_path, **{name: value, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"})
    assert done.stdout.split() == ["64.0", "False"] and not list(tmp_path.rglob("*-cache"))
