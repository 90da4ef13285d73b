"""What the contestants compute, and what is counted of them."""

import importlib.util
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention.masks import visible_keys
from benchmarks.attention import Case, compile_calls, count_flops, measure_attention, prepare, report_attention
from benchmarks.turns import Contestant
from common.errors import UserError
from tests.benchmarks.small import measured, refused, results


def test_operations_by_hand():
    # A product over 2 rows, 3 heads, 4 queries, 4 keys and a width of 5 has 480 multiplications and 480 additions.
    assert Case(2, 3, 4, 5).flops(1) == 960
    assert Case(2, 3, 4, 5).flops(7) == 7 * 960
    assert Case(2, 3, 4, 5, causal=True, sentences=2).flops(1) == 960 * 6 // 16  # keys are visible: 1 + 2 in each
    contestants = [Contestant(name, Case(2, 3, 4, 5)) for name in ("definition", "chunked")]
    counts = [count_flops(contestant, call) for contestant in contestants for call in ("forward", "gradients")]
    assert counts == [2 * 960, 6 * 960, 2 * 960, 7 * 960]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [3, 21])
def test_operations_are_those_of_the_visible_keys(causal, length):
    case = Case(1, 1, length, 1, causal=causal, sentences=8)
    segments = jnp.asarray(case.segments())
    assert segments[0] == 1 and segments[-1] == min(length, 8) and set(np.diff(segments).tolist()) <= {0, 1}
    assert case.flops(1) == 2 * int(visible_keys(segments, segments, causal=causal).sum())


@pytest.mark.parametrize(
    ("causal", "sentences"), [(False, 1), pytest.param(True, 1, marks=pytest.mark.slow), (True, 8)]
)
def test_all_contestants_compute_the_same(causal, sentences):
    case = Case(2, 3, 16, 4, causal=causal, sentences=sentences)
    with_torch = importlib.util.find_spec("torch") and sentences == 1  # which takes part where nothing is packed
    definition = compile_calls("definition", case)[0]
    for name in ["jax.nn", "xla", "chunked"] + ["torch"] * bool(with_torch):
        for kind, call in compile_calls(name, case)[0].items():
            found, expected = (jax.tree.leaves(each()) for each in (call, definition[kind]))
            for result, right in zip(found, expected, strict=True):
                array = np.asarray(result).swapaxes(1, 2) if name == "jax.nn" else np.asarray(result)
                np.testing.assert_allclose(array, right, atol=2e-6, err_msg=name)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not report their memory")
def test_a_contestant_that_needs_more_memory_than_there_is_is_refused():
    with pytest.raises(UserError, match=r"^needs .* GiB, more than there is"):
        prepare(Contestant("definition", Case(1, 64, 2**17, 1)))  # 2⁴⁰ scores


def test_if_none_can_take_part_it_says_why():
    with pytest.raises(UserError, match=r"^jax\.nn: left out: the time was up; definition: left out"):
        measure_attention([Case(1, 1, 2, 2, "bfloat16")], ["definition"], 1, deadline=0.0)


def test_a_kernel_that_cannot_serve_is_refused():
    with pytest.raises(UserError, match=rf"^needs a TPU, and this is a {jax.default_backend()}$"):
        prepare(Contestant("tpu", Case(1, 1, 2, 1)))


def test_ratios_are_of_times_and_a_case_ends_with_the_choice_of_auto():
    cases = Case(2, 2, 8, 4), Case(1, 2, 16, 4)
    times = {"torch": {"forward": 2.0, "gradients": 4.0}, "chunked": {"forward": 3.0, "gradients": 2.0}}
    measurements = [measured(name, case, times[name], facts={"temp_bytes": 2**20}) for case in cases for name in times]
    refusals = [refused("tpu", case, "needs a TPU") for case in cases]
    report = report_attention(results(*measurements, *refusals, jax=1e6))

    table = report.table
    figures = ["ratio", "GFLOP/s", "of rate"]
    assert table.header[:6] == ["B,N,T,H", "contestant", "forward ms", *figures]
    assert table.header[6:] == ["with gradients ms", *figures, "temp MiB"]
    names = ["torch", "chunked", "auto: definition"]
    assert [row[:2] for row in table.rows] == [[str(case), name] for case in cases for name in names]
    assert [row[3] for row in table.rows[:2]] == ["1.00", "1.50"] and table.rows[4][-1] == "1.0"
    assert report.json["notes"] == ["tpu: needs a TPU"]
    # With gradients: seven products, of B·N·T·T·H = 1024 multiplications and as many additions, in 2 ms.
    assert report.json["rows"][3]["flops_per_second"] == pytest.approx(1e3 * 7 * 2048 / 2)
