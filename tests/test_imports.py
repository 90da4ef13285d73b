"""The rules between files: who may import whom, how long an entry point may be, what no file may contain."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = {"attention", "model", "data", "training", "evaluation", "configs"}
ENTRY_POINTS = {"train", "eval"}

# Imports run one way: attention ← model ← training, evaluation ← entry points; data stands beside model.
ROOMS_SEEN = {
    "attention": set(),
    "model": {"attention"},
    "data": set(),
    "training": {"attention", "model", "data"},
    "evaluation": {"model", "data"},
}
# The one module that reads a run directory for the programs: its config and its checkpoint belong together.
READS_RUNS = "evaluation/trained.py"
# What a config may read: the dataclasses, and how errors are told and files written.
SEEN_BY_CONFIGS = {"data.config", "model.config", "training.config", "data.errors", "data.files"}


def tracked(pattern: str = "*") -> list[Path]:
    """Files of the project: committed ones and new ones that git does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", pattern]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return [ROOT / name for name in listed if (ROOT / name).is_file()]


def imported(path: Path) -> set[str]:
    """Dotted names of every module that a file imports, at any depth; relative imports become absolute."""
    package = path.relative_to(ROOT).parent.parts
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = (
                ".".join([*package[: len(package) - node.level + 1], node.module or ""]) if node.level else node.module
            )
            names |= {f"{base}.{alias.name}" for alias in node.names} if base in ROOMS else {str(base)}
    return names


def top(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def in_room(room: str) -> list[Path]:
    return [path for path in tracked("*.py") if path.relative_to(ROOT).parts[0] == room]


def test_every_room_is_walked():
    assert all(in_room(room) for room in ROOMS)


@pytest.mark.parametrize("room", sorted(ROOMS_SEEN))
def test_rooms_import_only_what_lies_below_them(room):
    for path in in_room(room):
        seen = ROOMS_SEEN[room] | ({"configs", "training"} if path == ROOT / READS_RUNS else set())
        foreign = top(imported(path)) & (ROOMS | ENTRY_POINTS) - seen - {room}
        assert not foreign, f"{path.relative_to(ROOT)} imports {foreign}"


def test_attention_imports_jax_and_jaxtyping_only():
    for path in in_room("attention"):
        foreign = top(imported(path)) - {"attention", "jax", "jaxtyping"} - sys.stdlib_module_names
        assert not foreign, f"{path.relative_to(ROOT)} imports {foreign}"


def test_data_never_imports_jax():
    for path in in_room("data"):
        assert not top(imported(path)) & {"jax", "flax", "optax", "orbax"}, path.relative_to(ROOT)


def test_configs_import_config_dataclasses_and_nothing_heavy():
    for path in in_room("configs"):
        for name in imported(path):
            if name.partition(".")[0] in ROOMS - {"configs"}:
                assert name in SEEN_BY_CONFIGS, f"{path.relative_to(ROOT)} imports {name}"
            assert name.partition(".")[0] not in {"jax", "flax", "datasets"}, path.relative_to(ROOT)


def test_only_entry_points_scripts_and_tests_import_configs():
    users = {
        path.relative_to(ROOT).parts[0]
        for path in tracked("*.py")
        if "configs" in top(imported(path)) and path != ROOT / READS_RUNS
    }
    assert users <= {"configs", "train.py", "eval.py", "scripts", "tests"}


def test_nothing_imports_an_entry_point():
    for path in tracked("*.py"):
        if path.relative_to(ROOT).parts[0] != "tests":
            assert not top(imported(path)) & (ENTRY_POINTS | {"scripts", "tests"}), path.relative_to(ROOT)


@pytest.mark.parametrize(("name", "longest"), [("train.py", 250), ("eval.py", 150)])
def test_entry_points_stay_short(name, longest):
    path = ROOT / name
    assert not path.exists() or len(path.read_text(encoding="utf-8").splitlines()) <= longest


def runs_data_as_code(node: ast.AST) -> bool:
    """Whether a node unpickles, evaluates a string, or reads YAML with anything but OmegaConf's safe loader."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        modules = {alias.name for alias in node.names} | {getattr(node, "module", None)}
        return bool(modules & {"pickle", "cloudpickle", "dill", "shelve", "marshal", "joblib"})
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    pickles = any(keyword.arg == "allow_pickle" and ast.unparse(keyword.value) != "False" for keyword in node.keywords)
    return pickles or called in {"eval", "exec", "os.system"} or called.startswith("yaml.")


def test_no_program_runs_data_as_code():
    for path in tracked("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not runs_data_as_code(node), f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


@pytest.mark.parametrize(
    "code", ["import pickle", "from dill import loads", "eval(x)", "yaml.load(x)", "np.load(f, allow_pickle=True)"]
)
def test_the_check_for_running_data_sees_it(code):
    assert any(runs_data_as_code(node) for node in ast.walk(ast.parse(code)))


# Written with classes of one letter so that this file does not contain what it forbids.
FORBIDDEN = {
    "a package registry": r"py[p]i\.|python[h]osted|anaco[n]da\.org|conda-fo[r]ge|test\.py[p]i|simp[l]e/",
    "a machine's path": r"(?<![\w.])/(?:wor[k]|roo[t]|hom[e]/\w|User[s]/|op[t]/)",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_names(what):
    for path in tracked():
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="ignore").splitlines(), 1):
            assert not re.search(FORBIDDEN[what], line), f"{path.relative_to(ROOT)}:{number} names {what}: {line}"
