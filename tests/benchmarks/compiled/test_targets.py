"""Targets and their compilers, as far as that goes without the compilers."""

from importlib.util import find_spec

import pytest

from benchmarks.compiled.targets import open_target
from common.errors import UserError

TARGETS = "t4, h100, h200, v5e, v5p, v6e"


def test_what_is_no_target():
    for name, message in {
        "h300:8": f"unknown target h300:8; the nearest is h200. Targets are {TARGETS}, with",
        "tpu:4": f"unknown target tpu:4. Targets are {TARGETS}, with",
        "h200": "target h200: give a number of GPUs, as h200:8; several nodes have a multiple of 8",
        "h200:12": "target h200:12: give a number of GPUs, as h200:8; several nodes have a multiple of 8",
        "h200:8x2": "target h200:8x2: give a number of GPUs",
        "v5e:4": "target v5e:4: give a slice of 2 dimensions, as v5e:2x2",
        "v5p:4x4": "target v5p:4x4: give a slice of 3 dimensions, as v5p:2x2x2",
        "v5e:4x-4": "target v5e:4x-4: give a slice",
    }.items():
        with pytest.raises(UserError) as error:
            open_target(name)
        assert str(error.value).startswith(message) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "module", "package", "extra"),
    [("h200:8", "nvidia", "jax-cuda13-plugin", "aot-cuda"), ("v5e:4x4", "libtpu", "libtpu", "aot-tpu")],
)
def test_without_its_compiler(name, module, package, extra):
    if find_spec(module):
        pytest.skip(f"{package} is installed")
    told = rf"^compiling for {name[:3]}\w? needs {package}: pip install -e '.\[{extra}\]'$"
    with pytest.raises(UserError, match=told):
        open_target(name)
