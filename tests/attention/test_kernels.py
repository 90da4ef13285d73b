"""Every kernel that runs anywhere against the definition; who serves what, and how the others refuse."""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.kernels import KERNELS, KernelError, kernel_for
from attention.kernels.request import Device, Request, current_device, request_of, tracing_for
from attention.masks import Mask
from attention.multihead import attend
from attention.scores import SCALED_DOT_PRODUCT, SCORES, Score, general
from tests.attention.oracles import close, differentiate, lower, make_score, normal, packed, qkv
from tests.variants import KERNELS_ANYWHERE, PLAIN, serves

# What attention asks: (B, N, G, T, S, H, U), causality, score, bias, dtype. Chunks are of 4 queries, so that 5, 9 and
# 12 (two heads of 6 over shared keys) are several, the last one not full.
ASKED = {
    "two query heads to a key head, causal": ((2, 4, 2, 6, 6, 4, 4), True, "scaled_dot_product", False, "float32"),
    "one key head, general": ((2, 3, 1, 5, 6, 4, 4), False, "general", False, "float32"),
    "bfloat16, causal": ((2, 2, 1, 9, 9, 4, 4), True, "scaled_dot_product", False, "bfloat16"),
    "wide values": ((2, 2, 2, 5, 6, 4, 7), True, "dot_product", False, "float32"),
    "bias": ((2, 4, 2, 5, 6, 4, 4), True, "scaled_dot_product", True, "float32"),
}
SERVES: dict[str, tuple[dict[str, Any], Iterable[str]]] = {  # how to ask for a kernel, and which of the above it serves
    "xla": ({"kernel": "xla"}, ASKED.keys() - {"wide values"}),
    "chunked": ({"kernel": "chunked", "chunk": 4}, ASKED.keys() - {"bias"}),
    "chunked as on a GPU": ({"kernel": "chunked", "chunk": 4, "device": ("gpu",)}, ASKED.keys() - {"bias"}),
    "auto": ({"kernel": "auto"}, ["bias"]),
}


def test_every_kernel_that_runs_anywhere_is_compared():
    assert {str(way["kernel"]) for way, _ in SERVES.values()} == {*KERNELS_ANYWHERE[1:], "auto"}


@pytest.mark.parametrize(("asked", "way"), [(a, w) for w, (_, served) in SERVES.items() for a in ASKED if a in served])
@settings(max_examples=12)
@given(data=st.data(), seed=st.integers(0, 2**31))
def test_values_and_gradients_equal_the_definition(asked, way, data, seed):
    shape, causal, score, has_bias, dtype = ASKED[asked]
    batch, heads, _, queries, keys, width, _ = shape
    inputs = dict(zip(("query", "key", "value"), qkv(seed, *shape, dtype=dtype), strict=True))
    inputs["score"] = make_score(score, [seed, 3], width, (heads,))
    if has_bias:
        inputs["bias"] = normal([seed, 4], batch, heads, queries, keys)

    def segments(length):  # any numbers in any order: packed rows, padding anywhere, rows of padding
        numbers = st.lists(st.integers(0, 2), min_size=batch * length, max_size=batch * length)
        return jnp.array(data.draw(numbers)).reshape(batch, length)

    mask = Mask(segments(queries), segments(keys), causal)
    output_gradient = normal([seed, 5], batch, heads, queries, shape[-1], dtype=dtype)
    results = differentiate(inputs, output_gradient, mask, **SERVES[way][0])
    exact = jax.tree.map(lambda array: array.astype("float32"), (inputs, output_gradient))
    expected = differentiate(*exact, mask, kernel="definition")
    assert results["output"].dtype == inputs["value"].dtype and results["query"].dtype == inputs["query"].dtype
    close(results, expected, dtype)


@pytest.mark.parametrize(("queries", "keys", "kernel"), [(300, 219, "chunked"), (300, 218, "definition")])
def test_auto_is_the_kernel_that_its_rule_names_bit_for_bit(queries, keys, kernel):
    # 300 · 219 is more than 256², and 300 · 218 is less.
    inputs = dict(zip(("query", "key", "value"), qkv(0, 1, 1, 1, queries, keys, 4, 4), strict=True))
    mask = Mask(packed([100, 150], length=queries), packed([100, 110], length=keys))
    arguments = inputs, normal(1, 1, 1, queries, 4), mask
    results = [differentiate(*arguments, kernel=name) for name in ("auto", kernel)]
    for result, expected in zip(*map(jax.tree.leaves, results), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(("kernel", "calls"), [("xla", 1), ("definition", 0)])
def test_xla_is_attention_by_jax_nn_and_the_definition_is_not(kernel, calls, monkeypatch):
    counted = Mock(wraps=jax.nn.dot_product_attention)
    monkeypatch.setattr(jax.nn, "dot_product_attention", counted)
    jitted, arguments = lower(kernel, 2, 2, 2, 5, 6, 4, 4)
    jitted.trace(*arguments)
    assert counted.call_count == calls


# Who serves what


CPU, GPU, OLD_GPU, TPU = Device("cpu"), Device("gpu", 9.0), Device("gpu", 7.5), Device("tpu")
ON_GPU = replace(PLAIN, device=GPU, dtype="bfloat16")
ON_TPU = replace(PLAIN, device=TPU)
NO_ADDITIVE = "has dot-product scores only, not additive ones"
EVERY_KEY = Mask(jnp.ones((2, 5), int), jnp.ones((2, 5), int))
WIDTHS = "needs keys and values of width 64 or 128, not"


@pytest.mark.parametrize(
    ("kernel", "request_", "reason"),
    [
        ("xla", replace(PLAIN, score="additive"), NO_ADDITIVE),
        ("xla", replace(PLAIN, value_width=72), "needs values as wide as keys, not 72 beside 64"),
        ("chunked", replace(PLAIN, dropout=True), "has no attention dropout"),
        ("chunked", replace(PLAIN, bias=True), "takes no position bias, which is as large as the scores"),
        ("cudnn", PLAIN, "needs an NVIDIA GPU, and this is a cpu"),
        ("cudnn", ON_TPU, "needs an NVIDIA GPU, and this is a tpu"),
        ("cudnn", replace(ON_GPU, device=OLD_GPU), "needs compute capability 8.0 (Ampere) or newer, not 7.5"),
        ("cudnn", replace(ON_GPU, dtype="float32"), "computes in bfloat16, not float32 (model.dtype=bfloat16)"),
        ("cudnn", replace(ON_GPU, score="additive"), NO_ADDITIVE),
        ("cudnn", replace(ON_GPU, bias=True), "takes no position bias: its gradient would be as large as the scores"),
        ("cudnn", replace(ON_GPU, value_width=72), f"{WIDTHS} 64 and 72"),
        ("cudnn", replace(ON_GPU, width=136, value_width=136), f"{WIDTHS} 136 and 136"),
        ("tpu", ON_GPU, "needs a TPU, and this is a gpu"),
        ("tpu", replace(ON_TPU, bias=True), "takes no position bias"),
        ("tpu", replace(ON_TPU, dropout=True), "has no attention dropout"),
    ],
)
def test_a_refusal_says_what_and_why(kernel, request_, reason):
    with pytest.raises(KernelError, match=re.escape(f"kernel {kernel} {reason}")):
        kernel_for(kernel, request_)


def test_a_name_that_no_kernel_has_is_refused_with_those_that_there_are():
    expected = f"there is no kernel flash; choose {', '.join(KERNELS)} or auto"
    with pytest.raises(KernelError) as error:
        kernel_for("flash", PLAIN)
    assert str(error.value) == expected


@pytest.mark.parametrize(
    ("request_", "kernel"),
    [
        (PLAIN, "definition"),
        (replace(PLAIN, queries=256, keys=256), "chunked"),
        (replace(PLAIN, queries=255, keys=256), "definition"),
        (replace(PLAIN, queries=4096, keys=4096, bias=True), "definition"),
        (replace(PLAIN, queries=4096, keys=4096, dropout=True), "definition"),
        (replace(ON_GPU, queries=4096, keys=4096), "cudnn"),
        (replace(ON_GPU, dtype="float32"), "definition"),
        (replace(ON_GPU, device=OLD_GPU, queries=4096, keys=4096), "chunked"),
        (replace(ON_GPU, bias=True), "definition"),
        (ON_TPU, "tpu"),
        (replace(ON_TPU, value_width=72), "tpu"),
        (replace(ON_TPU, dropout=True), "definition"),
    ],
)
def test_auto_chooses_as_its_rule_says(request_, kernel):
    assert kernel_for("auto", request_) == kernel


@pytest.mark.parametrize("device", [CPU, GPU, TPU])
def test_a_score_of_ones_own_is_for_the_definition_alone(device):
    own = replace(PLAIN, device=device, dtype="bfloat16", score="cosine", queries=4096, keys=4096)
    assert kernel_for("auto", own) == "definition"
    for kernel in ("xla", "chunked"):
        with pytest.raises(KernelError, match=r"not cosine ones; for this attention choose definition$"):
            kernel_for(kernel, own)


EVERYTHING = [
    Request(device, dtype, score, length, length, width, value_width, bias, dropout)
    for device in (CPU, GPU, OLD_GPU, TPU)
    for dtype in ("float32", "bfloat16")
    for score in SCORES
    for length in (1, 256)
    for width, value_width in ((64, 64), (60, 60), (64, 128), (256, 256))
    for bias in (False, True)
    for dropout in (False, True)
]


def test_auto_chooses_what_can_serve_the_definition_serves_everything_and_no_kernel_is_replaced_in_silence():
    for request in EVERYTHING:
        chosen = kernel_for("auto", request)
        assert kernel_for(chosen, request) == chosen
        assert kernel_for("definition", request) == "definition"
        for kernel in KERNELS:
            try:
                assert kernel_for(kernel, request) == kernel
            except KernelError as error:
                able = str(error).split("; for this attention choose ")[1].split(" or ")
                assert kernel not in able and able == [name for name in KERNELS if serves(name, request)]


def test_attend_itself_raises_what_a_kernel_refuses():
    with tracing_for("gpu", 7.5), pytest.raises(KernelError, match=r"kernel cudnn needs compute capability 8\.0"):
        attend(*qkv(0, 2, 2, 2, 5, 5, 4, 4), mask=EVERY_KEY, kernel="cudnn")


@pytest.mark.parametrize("off", [{"dropout_key": jax.random.key(0)}, {"dropout_rate": 0.1}])
@pytest.mark.parametrize("kernel", KERNELS_ANYWHERE)
def test_without_a_rate_or_without_a_key_nothing_is_dropped_and_no_kernel_refuses(kernel, off):
    attended = partial(attend, *qkv(0, 2, 2, 2, 5, 5, 4, 4), mask=EVERY_KEY, kernel=kernel)
    np.testing.assert_array_equal(attended(**off), attended())


def test_a_request_says_what_the_arguments_of_attend_are():
    query, _, value = qkv(0, 2, 4, 2, 5, 6, 8, 3, dtype="bfloat16")
    plain = Request(CPU, "bfloat16", "scaled_dot_product", 5, 6, 8, 3)
    with tracing_for("cpu"):
        assert request_of(query, value, None, SCALED_DOT_PRODUCT, False) == plain
        bias, score = normal(1, 2, 4, 5, 6), Score(general, normal(2, 4, 8, 8))
        everything = request_of(query, value, bias, score, True)
    assert everything == replace(plain, score="general", bias=True, dropout=True)


def test_tracing_for_another_device_ends_with_its_block_and_with_an_error():
    here = current_device()
    with tracing_for("tpu"):
        with pytest.raises(KeyError, match=r"gpu.*9\.0"), tracing_for("gpu", 9.0):
            raise KeyError(current_device())
        assert current_device() == Device("tpu")
    assert current_device() == here and here.platform == jax.default_backend()
