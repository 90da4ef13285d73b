"""Splash attention: its calls in programs for a TPU, and its numbers where Pallas interprets it."""

from functools import partial

import jax
import numpy as np
import pytest
from jax.experimental.pallas.ops.tpu import splash_attention

from attention.kernels.request import tracing_for
from attention.masks import Mask, visible_keys
from tests.attention.oracles import close, differentiate, lower, normal, packed, qkv


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "shape",  # B, N, G, T, S, H, U
    [
        (2, 2, 2, 128, 128, 64, 64),
        (2, 4, 2, 200, 300, 128, 128),
        (2, 4, 1, 60, 60, 64, 128),
        (2, 2, 2, 300, 7, 128, 64),
        (2, 2, 2, 1, 62, 64, 64),
    ],
)
def test_the_program_for_a_tpu_has_its_kernels(shape, dtype, causal):
    calls = []
    for gradients in (False, True):
        jitted, arguments = lower("tpu", *shape, causal=causal, dtype=dtype, gradients=gradients)
        with tracing_for("tpu"):
            program = jax.export.export(jitted, platforms=["tpu"])(*arguments).mlir_module()
        calls.append(program.count("@tpu_custom_call"))
    assert calls[0] == 1 and calls[1] > 1  # and at least one more for the gradients


@pytest.mark.parametrize(
    ("shape", "causal", "targets", "sources"),
    [
        # 130 positions are two blocks; there is padding, and two heads share keys and values.
        ((2, 4, 2, 130, 130, 8, 8), True, ([70, 40], [128]), ([70, 40], [128])),
        # The second target of the first row has no source, the second row no target; values are wider.
        ((2, 2, 2, 20, 150, 8, 16), False, ([9, 8], []), ([140], [60, 70])),
    ],
)
def test_where_pallas_interprets_it_it_equals_the_definition(shape, causal, targets, sources, monkeypatch):
    """Numbers without a TPU: Pallas runs the kernel's own program on the CPU, one operation after the other."""
    interpreted = partial(splash_attention.make_splash_mha, interpret=True)
    monkeypatch.setattr(splash_attention, "make_splash_mha", interpreted)
    batch, heads, _, queries, keys, _, value_width = shape
    inputs = dict(zip(("query", "key", "value"), qkv(0, *shape), strict=True))
    segments = packed(*targets, length=queries), packed(*sources, length=keys)
    arguments = inputs, normal(1, batch, heads, queries, value_width), Mask(*segments, causal)
    results = differentiate(*arguments, kernel="tpu", device=("tpu",))
    close(results, differentiate(*arguments, kernel="definition"))
    blind = ~np.array([visible_keys(*row, causal=causal) for row in zip(*segments, strict=True)]).any(axis=2)
    for name in ("output", "query"):
        np.testing.assert_array_equal(np.asarray(results[name]).swapaxes(1, 2)[blind], 0)
