"""Every program runs the code of its own clone: not that of another one that shares the environment."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.test_imports import ROOMS, ROOT

SCRIPTS = [path.relative_to(ROOT) for path in sorted(ROOT.glob("scripts/*.py"))]
PROGRAMS = [Path("train.py"), Path("eval.py"), *SCRIPTS]


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """A second clone, without an environment of its own, in which an edit ends every program."""
    folder = tmp_path_factory.mktemp("clones") / "second"
    folder.mkdir()
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout
    pack = ["tar", "c", "--null", "-T", "-"]
    packed = subprocess.run(pack, cwd=ROOT, input=files, capture_output=True, check=False)
    subprocess.run(["tar", "x"], cwd=folder, input=packed.stdout, check=True)
    return folder


@pytest.fixture(scope="module")
def other(tmp_path_factory) -> Path:
    """Another project, whose rooms have the same names and end whatever imports them."""
    folder = tmp_path_factory.mktemp("other")
    for room in ROOMS - {"puente"}:
        (folder / f"{room}.py").write_text("raise SystemExit('of another project')")
    return folder


def says(program: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *options, str(program), "--help"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    return subprocess.run(
        command, cwd=program.parents[-2], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_an_edit_of_a_second_clone_is_seen_by_its_programs(clone, other, program):
    """In the environment where this clone is installed, and beside another project."""
    errors = clone / "common/errors.py"
    code = errors.read_text(encoding="utf-8")
    try:
        errors.write_text('raise SystemExit("edited")\n')
        assert "edited" in says(clone / program, PYTHONPATH=str(other)).stderr
    finally:
        errors.write_text(code, encoding="utf-8")


def test_every_script_looks_in_its_own_clone_first():
    line = "    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH\n"
    assert [script for script in SCRIPTS if line not in (ROOT / script).read_text(encoding="utf-8")] == []


@pytest.mark.slow
@pytest.mark.parametrize("program", ["train.py", "scripts/translate.py", "scripts/check_numbers.py"])
def test_a_clone_that_was_moved_after_its_installation_runs(clone, other, program):
    """Also beside another project. Without site, Python does not see what pip wrote of where the clone was."""
    done = says(clone / program, "-S", PYTHONPATH=f"{other}{os.pathsep}{sysconfig.get_path('purelib')}")
    assert (done.returncode, done.stderr) == (0, "") and "usage: " in done.stdout


@pytest.fixture(scope="module")
def site(clone, tmp_path_factory) -> Path:
    """A folder into which Puente is installed from the second clone."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", folder, clone], check=True)
    return folder


def run_code(code: str, folder: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder whose modules it finds first, as a notebook there."""
    environment = os.environ | {"PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_modules_beside_a_notebook_are_not_taken_for_those_of_puente(site, other):
    done = run_code("import puente, data.pairs; print(puente.__file__, data.pairs.__file__)", other, site)
    assert done.stdout.split() == [str(site / "puente.py"), str(site / "data/pairs.py")], done.stderr


@pytest.mark.slow
def test_a_module_that_was_imported_before_puente_is_named(site, tmp_path):
    (tmp_path / "model.py").touch()
    done = run_code("import model, puente", tmp_path, site)
    problem = f"ImportError: {tmp_path}/model.py was imported before Puente, which has a module of the same name"
    assert done.stderr.splitlines()[-1].startswith(problem)
