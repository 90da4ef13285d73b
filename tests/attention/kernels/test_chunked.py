"""Attention in chunks: keys that no query of a chunk sees, and no array with a number for every query and key."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention.kernels import chunked
from attention.kernels.request import current_device, tracing_for
from attention.masks import Mask
from attention.multihead import attend
from tests.attention.oracles import close, differentiate, lower, normal, packed, qkv


@pytest.mark.skipif(current_device().platform != "cpu", reason="windows are for CPUs")
@pytest.mark.parametrize("causal", [False, True])
def test_keys_outside_the_window_of_a_chunk_of_queries_are_not_read(causal):
    """Where keys and values are not numbers, what reads them is not either; what does not is as without them."""
    query, key, value = qkv(0, 1, 1, 1, 512, 1024, 8, 8)
    query_segments, key_segments = packed([128, 100, 284], length=512), packed([250, 200, 574], length=1024)
    mask = Mask(query_segments, key_segments, causal)

    @jax.jit
    def output_and_gradients(query, key, value):
        output, pullback = jax.vjp(lambda *qkv: attend(*qkv, mask=mask, kernel="chunked"), query, key, value)
        return output, pullback(jnp.ones_like(output))

    expected, gradients = output_and_gradients(query, key, value)
    hidden = slice(512, 1024)  # from the first chunk of queries: of the third sentence, or later
    unreadable = (array.at[:, :, hidden].set(jnp.nan) for array in (key, value))
    broken, broken_gradients = output_and_gradients(query, *unreadable)
    np.testing.assert_array_equal(broken[:, :, :128], expected[:, :, :128])
    np.testing.assert_array_equal(broken_gradients[0][:, :, :128], gradients[0][:, :, :128])
    assert np.isfinite(expected).all() and np.isnan(broken[:, :, -128:]).all() == (not causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [[1024], [1, 1023], [130, 120, 6, 700], [16] * 60])
def test_windows_of_every_width_equal_the_definition(lengths, causal):
    inputs = dict(zip(("query", "key", "value"), qkv(0, 1, 1, 1, 1024, 1024, 8, 8), strict=True))
    segments = packed(lengths, length=1024)
    arguments = inputs, normal(1, 1, 1, 1024, 8), Mask(segments, segments, causal)
    close(differentiate(*arguments, kernel="chunked"), differentiate(*arguments, kernel="definition"))


def test_spans_are_the_first_key_and_the_one_after_the_last_that_a_chunk_of_queries_sees(monkeypatch):
    monkeypatch.setattr(chunked, "CHUNK", 2)
    rows = chunked.Rows(jnp.array([1, 1, 2, 2, 0, 0]), jnp.array([0, 1, 1, 2, 1, 2, 0]), jnp.arange(6))
    np.testing.assert_array_equal(chunked.visible_spans(rows, causal=False), [[1, 5], [3, 6], [0, 0]])
    np.testing.assert_array_equal(chunked.visible_spans(rows, causal=True), [[1, 2], [3, 4], [0, 0]])


def largest_array(program):
    """Numbers in the largest array of a program, in StableHLO (tensor<2x3xf32>) or in XLA's own text (f32[2,3])."""
    found = re.findall(r"tensor<((?:\d+x)+)|\w\[([\d,]+)\]", program)
    return max(math.prod(map(int, re.findall(r"\d+", a or b))) for a, b in found)


@pytest.mark.slow
@pytest.mark.parametrize("device", [("cpu",), ("gpu",)])
@pytest.mark.parametrize("gradients", [False, True])
def test_chunks_are_a_loop_in_which_no_array_has_a_number_for_every_query_and_key(gradients, device):
    jitted, arguments = lower("chunked", 1, 1, 1, 1024, 1024, 8, 8, gradients=gradients)
    with tracing_for(*device):
        lowered = jitted.lower(*arguments)
    for program in (lowered.as_text(), lowered.compile().as_text()):
        assert "while" in program
        assert largest_array(program) == 128 * 1024  # one chunk's scores


@pytest.mark.slow
def test_memory_of_chunks_grows_with_the_length_and_that_of_the_definition_with_its_square():
    def temporary_bytes(kernel, length):
        jitted, arguments = lower(kernel, 1, 8, 8, length, length, 64, 64, gradients=True)
        return jitted.lower(*arguments).compile().memory_analysis().temp_size_in_bytes

    # At 4096, the scores of the definition are 8 · 4096² numbers of 4 bytes: 512 MiB, and several are there at once.
    kernels, lengths = ("definition", "chunked"), (2048, 4096)
    definition, chunks = ([temporary_bytes(kernel, length) for length in lengths] for kernel in kernels)
    assert definition[1] > 1e9 and definition[1] / definition[0] > 3.5
    assert chunks[1] < 200e6 and chunks[1] / chunks[0] < 2.2
