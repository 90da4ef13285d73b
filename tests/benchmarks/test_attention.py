"""What the contestants are given, and what is counted of them."""

import importlib.util
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention import visible_keys
from benchmarks.attention import Case, prepare, prepared_or_reason, products_of

TORCH = pytest.param("torch", marks=pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="no torch here"))


def test_operations_by_hand():
    # A product over 2 rows, 3 heads, 4 queries, 4 keys and a width of 5 has 480 multiplications and 480 additions.
    assert Case(2, 3, 4, 5).flops(1) == 960
    assert Case(2, 3, 4, 5).flops(7) == 7 * 960
    assert Case(2, 3, 4, 5, causal=True).flops(1) == 960 * 10 // 16  # 1 + 2 + 3 + 4 keys are visible, of 16
    assert Case(2, 3, 4, 5, sentences=2).flops(1) == 960 * 8 // 16  # 2 · 2 in each sentence
    assert Case(2, 3, 4, 5, causal=True, sentences=2).flops(1) == 960 * 6 // 16
    assert products_of("definition") == (2, 6) and products_of("chunked") == (2, 7)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [3, 8, 21])
def test_operations_are_those_of_the_visible_keys(causal, length):
    case = Case(1, 1, length, 1, causal=causal, sentences=8)
    segments = jnp.asarray(case.segments())
    assert segments[0] == 1 and segments[-1] == min(length, 8) and set(np.diff(segments).tolist()) <= {0, 1}
    assert case.flops(1) == 2 * int(visible_keys(segments, segments, causal=causal).sum())


@pytest.mark.parametrize("name", [TORCH, "jax.nn", "xla", "chunked"])
@pytest.mark.parametrize(("causal", "sentences"), [(False, 1), (True, 1), (True, 8)])
def test_all_contestants_do_the_same_work(name, causal, sentences):
    if name == "torch" and sentences > 1:
        pytest.skip("torch takes part where nothing is packed")
    case = Case(2, 3, 16, 4, causal=causal, sentences=sentences)
    contestant, definition = prepare(name, case), prepare("definition", case)
    for kind, call in contestant.calls().items():
        results, expected = (jax.tree.leaves(work()) for work in (call, definition.calls()[kind]))
        for result, right in zip(results, expected, strict=True):
            array = np.asarray(result).swapaxes(1, 2) if name == "jax.nn" else np.asarray(result)
            np.testing.assert_allclose(array, right, atol=2e-6)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell how much memory there is")
def test_what_needs_more_memory_than_there_is_says_so():
    case = Case(1, 64, 2**17, 1)  # 2⁴⁰ scores
    assert "GiB at 1,64,131072,1, more than there is" in str(prepared_or_reason("definition", case))
