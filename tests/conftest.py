"""Tests run on the CPU, offline, and leave nothing in the home folder. Set before anything imports jax or datasets."""

import gc
import io
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings

from common.processor import processor_id
from common.programs import program_environment

ROOT = Path(__file__).parents[1]
os.environ.update(program_environment())  # for the programs that tests start

_cache = tempfile.TemporaryDirectory(prefix="puente-tests-")  # removed when the test process ends

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # JAX_PLATFORMS=cuda,cpu make test runs them on a GPU
if os.environ["JAX_PLATFORMS"] != "cpu":  # processes share the device, and its float32 products have all their digits
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ.setdefault("JAX_DEFAULT_MATMUL_PRECISION", "float32")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # as in cli/process.py
os.environ["HF_HOME"] = _cache.name
os.environ["HF_DATASETS_CACHE"] = os.path.join(_cache.name, "datasets")
os.environ["XDG_CACHE_HOME"] = _cache.name
# Compiling takes most of the time. Programs stay in .jax_cache until make clean, so a second run takes a fraction.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".jax_cache" / processor_id()))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ["MPLCONFIGDIR"] = os.path.join(_cache.name, "matplotlib")

# The folder of the real corpus is for the tests that ask for it; experiments here have corpora of their own. Workers of
# pytest-xdist find it under the other name.
_corpus = os.environ.pop("PUENTE_CORPUS", str(ROOT.parent / "shared/corpus/tatoeba-en-es"))
CORPUS = Path(os.environ.setdefault("PUENTE_CORPUS_OF_TESTS", _corpus))

# The same examples on every run, and no limit of time for one of them: machines are shared.
settings.register_profile("puente", derandomize=True, deadline=None)
settings.load_profile("puente")


@pytest.fixture(scope="module", autouse=True)
def release_compiled_programs():
    """Programs compiled by a test module are dropped at its end: together they would take gigabytes."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
        gc.collect()


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before tests are chosen by their marks, and after
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """What reads the real corpus is slow. Files with few tests come first: they are long, and would be waited for."""
    for item in items:
        if "corpus_root" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
    yield
    counts = Counter(item.path for item in items)
    items.sort(key=lambda item: (counts[item.path], item.path))


WORDS = ["Tom", "Ana", "eats", "runs", "here", "there", *map("".join, itertools.permutations("arnoste", 3))]
SMALL: dict[str, dict[str, Any]] = {
    "tokenizer": {"vocab_size": 300},
    "model": {"d_model": 16, "num_heads": 2, "head_dim": 8, "encoder_layers": 1, "decoder_layers": 1, "d_ff": 32},
    "training": {"steps": 10},
    "decoding": {"beam_size": 2, "batch_sentences": 4, "max_length_factor": 1.0},
    "data": {"row_length": 64, "batch_rows": 2},
}


@pytest.fixture(scope="session")
def corpus_root() -> Path:
    """The folder of the real corpus; without it, the test is skipped."""
    if not (CORPUS / "train.tsv").exists():
        pytest.skip(f"the real corpus is not at {CORPUS}; set PUENTE_CORPUS to its folder")
    return CORPUS


@pytest.fixture(scope="session")
def trained_run() -> Path:
    """A run of configs/tatoeba-small.yaml with a report on its test set; without it, the test is skipped."""
    run = ROOT / "runs/tatoeba-small"
    if not (run / "eval/test.json").exists():
        pytest.skip(f"needs {run}: python train.py configs/tatoeba-small.yaml, then python eval.py runs/tatoeba-small")
    return run


def made_up_pairs(first: int, count: int) -> str:
    """Pairs of made-up sentences, no two alike."""
    numbers = range(first, first + count)
    sources = (" ".join([WORDS[number % 216], WORDS[number // 2], WORDS[-number]]) for number in numbers)
    return "".join(f"{source}.\t¡{source[::-1]}!\n" for source in sources)


@pytest.fixture(scope="session")
def small_experiment(tmp_path_factory) -> Path:
    """A config file for a model of a few thousand parameters on 160 made-up pairs that lie beside it."""
    folder = tmp_path_factory.mktemp("corpus")
    for name, first, count in (("train", 1, 160), ("valid", 170, 8), ("test", 180, 12)):
        (folder / f"{name}.tsv").write_text(made_up_pairs(first, count), encoding="utf-8")
    config = SMALL | {"data": SMALL["data"] | {"root": str(folder)}}
    (folder / "small.yaml").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    return folder / "small.yaml"


@pytest.fixture(scope="session")
def call():
    """``call("eval.py", …)`` runs a program of the clone as a user does; it must end with ``code``, if that is one."""

    def call(
        program: str, *arguments: object, text: bytes = b"", code: int | None = 0
    ) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, str(ROOT / program), *map(str, arguments)]
        done = subprocess.run(command, input=text, capture_output=True, timeout=900, check=False)
        assert code in (None, done.returncode), (done.stdout + done.stderr).decode()[-4000:]
        return done

    return call


@pytest.fixture
def run_main(monkeypatch, capsys):
    """``run_main(program.main, argument, …, text=b"")`` in this process; returns exit code, output and errors."""

    def run_main(main, *arguments, text=b""):
        monkeypatch.setattr("sys.argv", ["program", *map(str, arguments)])
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text), isatty=lambda: False))
        monkeypatch.setattr("signal.signal", lambda *_: None)  # the test process keeps its handlers
        capsys.readouterr()  # what fixtures printed
        code: object = 0
        try:
            main()
        except SystemExit as stopped:
            code = stopped.code
        return code, *capsys.readouterr()

    return run_main


@pytest.fixture
def refuses(run_main):
    """Asserts that ``refuses(program.main, message, argument, …)`` ends with 2 and one line that has ``message``."""

    def refuses(main, message, *arguments):
        code, out, err = run_main(main, *arguments)
        assert (code, out) == (2, ""), message
        assert err.startswith("error: ") and message in err and err.count("\n") == 1, err

    return refuses


NO_FLOCK = "#include <errno.h>\nint flock(int file, int how) { (void)file; (void)how; errno = ENOSYS; return -1; }\n"


@pytest.fixture(scope="session")
def without_flock(tmp_path_factory) -> dict[str, str]:
    """The environment of a process whose file systems have no flock."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("needs Linux and a C compiler")
    folder = tmp_path_factory.mktemp("library")
    (folder / "no_flock.c").write_text(NO_FLOCK)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", "no_flock.so", "no_flock.c"], cwd=folder, check=True)
    return os.environ | {"LD_PRELOAD": str(folder / "no_flock.so")}
