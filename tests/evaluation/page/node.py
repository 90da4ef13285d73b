"""The worker of a page in Node.js, to which a test can put questions, and the parameters as a page rounds them."""

import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evaluation.page.pack import PackedRun, quantise
from evaluation.page.page import WORKER, scripts
from model.transformer import Params

ANSWERS = Path(__file__).with_name("answers.js")
UNCHANGED: dict[str, Any] = {"cut": [], "unscaled": False, "weights": {}}


def ask(run: PackedRun, folder: Path, *questions: dict[str, Any]) -> list[Any]:
    """The answers of answers.js; without Node.js the test is skipped."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node.js")
    code = ["globalThis.self = globalThis;\n", *scripts(WORKER), ANSWERS.read_text(encoding="utf-8")]
    program = folder / "worker.js"
    program.write_text("".join(code), encoding="utf-8")
    content = base64.b64encode(run.content).decode()
    lines = "\n".join([json.dumps(run.facts), content, *map(json.dumps, questions)])
    done = subprocess.run([node, str(program)], input=lines.encode(), capture_output=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def rounded(params: Params, bits: int) -> Params:
    """The parameters that a page of 8 or 16 bits has."""

    def nearest(path, array):
        if array.ndim < 2:
            return array
        is_kernel = jax.tree_util.keystr(path[-1:], simple=True) == "kernel"
        scales, numbers = quantise(np.asarray(array.T if is_kernel else array), bits)
        assert np.abs(numbers).max() == 2 ** (bits - 1) - 1
        return jnp.asarray(scales * numbers).T if is_kernel else jnp.asarray(scales * numbers)

    return jax.tree_util.tree_map_with_path(nearest, params)
