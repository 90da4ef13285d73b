"""What devices send in a compiled step, by hand. A CPU's compiler sums whole arrays; each device keeps its part."""

import json
import math

import pytest

SCALARS = 600  # bytes: losses, counts and norms
EXTRA_TABLES = 2 * 4 * 512 * 64  # a CPU's compiler sums the gradients of two look-ups and of the logits one by one


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "gathers"), [("8 1 1", False), ("1 8 1", True)])
def test_gradients_are_summed_once_and_matrices_gathered_once(shape, gathers, call):
    done = call("tests/training/devices/collectives.py", *shape.split())
    report = json.loads(done.stdout)
    sizes, params = report["sizes"], report["params"]
    assert set(sizes) == ({"all-reduce", "all-gather"} if gathers else {"all-reduce"})
    gradients = 4 * sum(map(math.prod, params)) + EXTRA_TABLES
    assert 0 <= sizes["all-reduce"] - gradients < SCALARS
    # fsdp divides what has an axis of width D and is no vector over D.
    divided = 4 * sum(math.prod(shape) for shape in params if 64 in shape and shape != [64])
    assert sizes.get("all-gather", 0) == (divided if gathers else 0)
