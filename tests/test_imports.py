"""The rules between files: who may import whom, how long an entry point may be, what no file may contain."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = {
    *("common", "attention", "model", "data", "configs", "training", "evaluation", "experiment"),
    *("benchmarks", "exports", "cli"),
}
ENTRY_POINTS = {"train", "eval"}

# Imports run one way: common, attention ← model ← evaluation ← training ← experiment ← benchmarks, exports, cli ← entry
# points. data stands beside model. Training imports evaluation because validation is the one evaluator. configs
# composes the config dataclasses of the rooms, which SEEN_BY_CONFIGS names.
ROOMS_SEEN = {
    "common": set(),
    "attention": set(),
    "model": {"common", "attention"},
    "data": {"common"},
    "evaluation": {"common", "attention", "model", "data"},
    "training": {"common", "attention", "model", "data", "evaluation"},
    "experiment": {"common", "configs", "model", "data", "training", "evaluation"},
    "benchmarks": {"common", "attention", "model", "data", "training", "evaluation"},
    "exports": {"common", "attention", "model", "data", "evaluation"},
    "cli": {"common", "configs"},
}
SEEN_BY_CONFIGS = {"data.config", "model.config", "training.config", "common.errors", "common.files", "common.text"}
SEEN_BY_CONFIGS |= {"common.option"}


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
        foreign = top(imported(path)) & (ROOMS | ENTRY_POINTS) - ROOMS_SEEN[room] - {room}
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


def test_only_the_command_line_entry_points_scripts_and_tests_import_configs():
    users = {path.relative_to(ROOT).parts[0] for path in tracked("*.py") if "configs" in top(imported(path))}
    assert users <= {"configs", "experiment", "cli", "train.py", "eval.py", "scripts", "tests"}


def test_nothing_imports_an_entry_point():
    for path in tracked("*.py"):
        if path.relative_to(ROOT).parts[0] != "tests":
            assert not top(imported(path)) & (ENTRY_POINTS | {"scripts", "tests"}), path.relative_to(ROOT)


@pytest.mark.parametrize(("name", "longest"), [("train.py", 180), ("eval.py", 150)])
def test_entry_points_stay_short(name, longest):
    assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= longest


def test_train_py_names_few_things_of_ours():
    tree = ast.parse((ROOT / "train.py").read_text(encoding="utf-8"))
    ours = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and top({str(node.module)}) & ROOMS]
    assert sum(len(node.names) for node in ours) <= 35


def sources() -> list[Path]:
    """The project's own modules, without the tests."""
    return [path for path in tracked("*.py") if path.relative_to(ROOT).parts[0] != "tests"]


def test_modules_and_functions_stay_short():
    for path in sources():
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 350, path.relative_to(ROOT)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 60, f"{path.relative_to(ROOT)}:{node.name}"


UNPICKLING = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "shelve", "marshal", "joblib", "jsonpickle"}
EVALUATING = {"eval", "exec", "compile", "__import__", "execfile"}
STARTING_A_SHELL = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}
LOADING_OBJECTS = {"read_pickle", "load_module", "run_path", "SourceFileLoader"}
# What a keyword must be wherever it is given, so that data stay data.
ONLY = {"allow_pickle": "False", "trust_remote_code": "False", "shell": "False", "weights_only": "True"}
# What may be had of PyYAML: its errors, and its syntax without anything built of it.
OF_YAML = {"MarkedYAMLError", "YAMLError", "parse", "ScalarEvent", "CollectionStartEvent", "CollectionEndEvent"}
OF_YAML |= {"SafeLoader", "CSafeLoader"}


def runs_data_as_code(node: ast.AST) -> bool:
    """Whether a node unpickles, evaluates a string, starts a shell, or reads YAML with anything but a safe loader."""
    if isinstance(node, ast.Import):
        return bool(top({alias.name for alias in node.names}) & UNPICKLING)
    if isinstance(node, ast.ImportFrom):
        module, names = str(node.module).partition(".")[0], {alias.name for alias in node.names}
        dangerous = {"os": {"system", "popen"}, "subprocess": {"getoutput", "getstatusoutput"}}.get(module, set())
        return module in UNPICKLING or (module == "yaml" and not names <= OF_YAML) or bool(names & dangerous)
    return isinstance(node, ast.Call) and calls_code(node)


def calls_code(call: ast.Call) -> bool:
    called, given = ast.unparse(call.func), {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    if any(given.get(name, only) != only for name, only in ONLY.items()):
        return True
    if called.removeprefix("builtins.") in EVALUATING or called in STARTING_A_SHELL:
        return True
    unsafe = called in {"torch.load", "torch.jit.load"} and "weights_only" not in given
    return unsafe or called.rpartition(".")[2] in LOADING_OBJECTS or called.startswith("yaml.")


def test_no_program_runs_data_as_code():
    for path in tracked("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not runs_data_as_code(node), f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "import os, pickle as p",
        "import cloudpickle.cloudpickle",
        "from dill import loads",
        "from joblib.numpy_pickle import load",
        "import shelve",
        "import marshal",
        "eval(x)",
        "exec(x)",
        "compile(x, '', 'exec')",
        "builtins.eval(x)",
        "__import__(x)",
        "yaml.load(x)",
        "yaml.full_load(x)",
        "from yaml import load",
        "from yaml import unsafe_load, YAMLError",
        "np.load(f, allow_pickle=True)",
        "np.load(f, allow_pickle=allowed)",
        "np.lib.format.read_array(f, allow_pickle=1)",
        "pd.read_pickle(f)",
        "torch.load(f)",
        "torch.load(f, weights_only=False)",
        "subprocess.run(x, shell=True)",
        "subprocess.getoutput(x)",
        "os.system(x)",
        "os.popen(x)",
        "from os import system",
        "datasets.load_dataset(x, trust_remote_code=True)",
        "AutoModel.from_pretrained(x, trust_remote_code=trusted)",
        "runpy.run_path(x)",
    ],
)
def test_the_check_for_running_data_sees_it(code):
    assert any(runs_data_as_code(node) for node in ast.walk(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "re.compile(x)",
        "jax.jit(f).lower(x).compile()",
        "model.eval()",
        "np.load(f)",
        "np.load(f, allow_pickle=False)",
        "torch.load(f, weights_only=True)",
        "subprocess.run([x], check=True)",
        "json.load(f)",
        "ast.literal_eval(x)",
        "from yaml import YAMLError, parse",
    ],
)
def test_the_check_for_running_data_lets_the_rest_through(code):
    assert not any(runs_data_as_code(node) for node in ast.walk(ast.parse(code)))


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
