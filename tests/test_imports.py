"""The rules between files: who may import whom, how long a module may be, what no file may contain."""

import ast
import json
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Imports go down: a room sees the rooms of earlier lines, and not its neighbours. configs stands above the rooms whose
# config dataclasses it composes; training sees evaluation because validation is the one evaluator.
LEVELS = """
common attention
model data
evaluation
training
configs
experiment
exports
benchmarks cli
puente
train eval scripts
"""
LEVEL_OF = {room: level for level, rooms in enumerate(LEVELS.split("\n")) for room in rooms.split()}
ENTRY_POINTS = {"train", "eval", "scripts"}
ROOMS = LEVEL_OF.keys() - ENTRY_POINTS


def tracked(pattern: str = "*") -> list[Path]:
    """Files of the project: committed ones and new ones that git does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", pattern]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return [ROOT / name for name in listed if (ROOT / name).is_file()]


def module_name(path: Path) -> str:
    """``data.sources`` for data/sources/__init__.py, ``data.pairs`` for data/pairs.py."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in tracked("*.py") if path.relative_to(ROOT).parts[0] != "tests"}


@cache
def parsed(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def imported(module: str) -> frozenset[str]:
    """Dotted names of all that a module imports, at any depth: modules of ours, and packages of others."""
    names = set[str]()
    package = MODULES[module].relative_to(ROOT).parent.parts
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *filter(None, [node.module])])
            names |= {f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base for alias in node.names}
    return frozenset(names)


def top(names: frozenset[str] | set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def behind(module: str) -> set[str]:
    """All that is loaded with a module: what it imports, what that imports, and so on."""
    found, left = set[str](), [module]
    while left:
        new = imported(left.pop()) - found
        found |= new
        left += new & MODULES.keys()
    return found


def of_room(room: str) -> list[str]:
    return [module for module in MODULES if f"{module}.".startswith(f"{room}.")]


def test_no_module_imports_itself_by_way_of_others():
    graph = {module: imported(module) & MODULES.keys() for module in MODULES}
    TopologicalSorter(graph).prepare()  # CycleError names the modules


def test_imports_go_down():
    for module in MODULES:
        room = module.partition(".")[0]
        for other in top(imported(module) & MODULES.keys()) - {room}:
            assert LEVEL_OF[other] < LEVEL_OF[room], f"{module} imports {other}"


def test_nothing_imports_an_entry_point():
    """Nor a test."""
    assert [module for module in MODULES if top(imported(module)) & {*ENTRY_POINTS, "tests"}] == []


def test_attention_imports_jax_and_jaxtyping_only():
    for module in of_room("attention"):
        assert top(imported(module)) <= {"attention", "jax", "jaxtyping"} | sys.stdlib_module_names, module


def test_common_and_data_never_load_jax():
    for module in [*of_room("common"), *of_room("data")]:
        assert not top(behind(module)) & {"jax", "flax", "optax", "orbax"}, module


def test_configs_import_config_dataclasses_where_a_run_lies_and_nothing_heavy():
    allowed = (".config", "training.run.layout")
    for module in of_room("configs"):
        ours = imported(module) & MODULES.keys()
        assert all(name.endswith(allowed) for name in ours if top({name}) <= ROOMS - {"configs", "common"}), module
        assert not top(imported(module)) & {"jax", "flax", "datasets"}, module


def test_train_py_names_few_things_of_ours():
    imports = [node for node in ast.walk(parsed("train")) if isinstance(node, ast.ImportFrom)]
    assert sum(len(node.names) for node in imports if top({str(node.module)}) <= ROOMS) <= 28


def test_modules_and_functions_stay_short():
    for module in MODULES:
        limit = 150 if module in ENTRY_POINTS else 350
        assert len(MODULES[module].read_text(encoding="utf-8").splitlines()) <= limit, module
        for node in ast.walk(parsed(module)):
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 60, f"{module}.{node.name}"


# What must stand wherever one of these is given, so that data stay data.
SAFE = {"allow_pickle": "False", "trust_remote_code": "False", "weights_only": "True"}


def runs_data_as_code(node: ast.AST) -> bool:
    """Whether a node unpickles, trusts code from elsewhere, or compiles; ruff refuses the rest (pyproject.toml)."""
    if isinstance(node, ast.keyword) and node.arg in SAFE:
        return ast.unparse(node.value) != SAFE[node.arg]
    return isinstance(node, ast.Name) and node.id in {"compile", "__import__", "builtins"}


def test_no_program_runs_data_as_code():
    for path in tracked("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not runs_data_as_code(node), f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


REFUSED_BY_RUFF = """
import cloudpickle.cloudpickle
import marshal
import os, pickle as p
import shelve
import yaml; yaml.full_load(x)
from dill import loads
from joblib.numpy_pickle import load
from os import system; system(x)
from pandas import read_pickle
from runpy import run_path
from subprocess import getoutput
from yaml import load, YAMLError
from yaml import unsafe_load
import subprocess; subprocess.run(x, shell=True)
import torch; torch.load(f)
eval(x)
exec(x)
""".strip()


def test_ruff_refuses_every_line_that_runs_data_as_code():
    command = [sys.executable, "-m", "ruff", "check", "--select", "S,TID", "--output-format", "json", "-"]
    found = json.loads(subprocess.run(command, input=REFUSED_BY_RUFF, capture_output=True, text=True, cwd=ROOT).stdout)
    assert {each["location"]["row"] for each in found} == set(range(1, REFUSED_BY_RUFF.count("\n") + 2))


@pytest.mark.parametrize(
    ("code", "dangerous"),
    [
        ("np.load(f, allow_pickle=1)", True),
        ("np.lib.format.read_array(f, allow_pickle=allowed)", True),
        ("AutoModel.from_pretrained(x, trust_remote_code=trusted)", True),
        ("compile(x, '', 'exec')", True),
        ("builtins.eval(x)", True),
        ("np.load(f, allow_pickle=False)", False),
        ("re.compile(x)", False),
        ("jax.jit(f).lower(x).compile()", False),
        ("model.eval()", False),
    ],
)
def test_the_check_above_sees_the_rest(code, dangerous):
    assert any(map(runs_data_as_code, ast.walk(ast.parse(code)))) == dangerous


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
