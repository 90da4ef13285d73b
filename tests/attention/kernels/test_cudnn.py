"""cuDNN's attention: its calls in programs for a GPU, and its numbers, by cuDNN itself on a GPU."""

import re

import jax
import pytest

from attention.kernels import cudnn
from attention.kernels.request import current_device, tracing_for
from attention.masks import Mask
from tests.attention.oracles import close, differentiate, lower, normal, packed, qkv

IS_HERE = current_device().platform == "gpu" and current_device().capability >= 8
FORWARD, BACKWARD = "__cudnn$fmhaScaleBiasSoftmax", "__cudnn$fmhaScaleBiasSoftmaxBackward"


@pytest.fixture
def hopper(monkeypatch):
    """Trace for a Hopper GPU without one: two questions of jax's to a GPU are answered by hand, nothing else."""
    from jax._src.cudnn import fused_attention_stablehlo

    monkeypatch.setattr(fused_attention_stablehlo, "check_cudnn_version", lambda: 91000)
    monkeypatch.setattr(fused_attention_stablehlo, "check_compute_capability", lambda capability: True)
    with tracing_for("gpu", 9.0):
        yield


def program(*shape, **options):
    """What ``attend`` by cuDNN is lowered to for a GPU, in StableHLO."""
    jitted, arguments = lower("cudnn", *shape, dtype="bfloat16", **options)
    unchecked = [jax.export.DisabledSafetyCheck.custom_call(name) for name in (FORWARD, BACKWARD)]
    return jax.export.export(jitted, platforms=["cuda"], disabled_checks=unchecked)(*arguments).mlir_module()


def calls(*shape, **options):
    """The calls of cuDNN in that program, each a name and the shapes of its operands."""
    text = program(*shape, **options)
    found = re.findall(r"custom_call @(__cudnn\S+?)\(.* : \((tensor.*?)\) ->", text)
    assert len(found) == text.count("@__cudnn")
    return [
        (name, [tuple(map(int, re.findall(r"(\d+)x", operand))) for operand in operands.split(", ")])
        for name, operands in found
    ]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_the_program_for_a_gpu_has_cudnn_s_calls_and_one_mask_for_all_heads(groups, causal, hopper):
    shape = (2, 4, groups, 64, 96, 64, 64)
    assert [name for name, _ in calls(*shape, causal=causal)] == [FORWARD]
    of_gradients = calls(*shape, causal=causal, gradients=True)
    assert [name for name, _ in of_gradients] == [FORWARD, BACKWARD]
    for _, operands in of_gradients:
        assert [operand for operand in operands if operand[-2:] == (64, 96)] == [(2, 1, 64, 96)]


def test_cudnn_is_told_the_scale_and_drops_nothing(hopper):
    text = program(2, 4, 2, 64, 96, 64, 64, gradients=True).replace("\\22", '"')
    assert re.findall(r'"mask_type": "(\w+)"', text) == ["NO_MASK", "NO_MASK"]
    assert re.findall(r'"fmha_scale": ([\d.]+)', text) == ["0.125", "0.125"]  # 1 / √64
    assert re.findall(r'"dropout_rate": ([\d.]+)', text) == ["0.0", "0.0"]


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(63, 61), (63, 64), (1, 31)])
def test_cudnn_takes_rows_of_odd_length(queries, keys, gradients, hopper):
    assert len(calls(2, 2, 2, queries, keys, 64, 64, gradients=gradients)) == (2 if gradients else 1)


@pytest.mark.parametrize(("keys", "given"), [(62, 62), (63, 66), (64, 66), (128, 128), (191, 194), (256, 256)])
def test_cudnn_is_never_given_keys_that_leave_64_over_tiles_of_128(keys, given, hopper):
    [(_, (_, key, value, mask)), _] = calls(2, 2, 2, 64, keys, 64, 64, gradients=True)
    assert (key[1], value[1], mask[3]) == (given, given, given)


# (B, N, G, T, S, H, U), the lengths of the sentences in each row of queries, and in each row of keys where they differ.
ROWS: dict[str, tuple[tuple[int, ...], list[list[int]], list[list[int]] | None]] = {
    "packed rows, and one of padding": ((3, 2, 2, 7, 7, 64, 64), [[3, 2], [2, 2, 3], []], None),
    "rows of another side, some sentences empty": (
        (3, 2, 2, 7, 7, 64, 64),
        [[3, 2], [2, 2, 3], []],
        [[4, 1, 2], [2, 0, 3], [7]],
    ),
    "one key head for two query heads": ((3, 2, 1, 7, 7, 64, 64), [[3, 2], [2, 2, 3], []], None),
    "a query for all keys": ((2, 2, 2, 1, 31, 64, 64), [[1], [1]], [[31], [3]]),
    "as many sentences as a row has room for": ((2, 2, 2, 32, 32, 64, 64), [[2] * 16, [2] * 16], None),
    "odd lengths": ((2, 2, 2, 63, 61, 64, 64), [[40, 20], [1] * 20], [[30, 30], [2] * 20]),
    "two key heads for eight query heads": ((2, 8, 2, 64, 64, 64, 64), [[30, 20], [64]], None),
    "the widest heads": ((1, 2, 2, 128, 128, 128, 128), [[100, 20]], None),
    "forty sentences": ((2, 2, 2, 1024, 1024, 64, 64), [[25] * 40, [1000]], None),
    "a sentence of two thousand": ((1, 1, 1, 2048, 2048, 64, 64), [[2000]], None),
}


def by_products(*arrays, **options):
    """The same function of ``jax.nn`` in float32. It gives a query that sees no key a mean, as cuDNN does."""
    exact = (array.astype("float32") for array in arrays)
    return jax.nn.dot_product_attention(*exact, **options, implementation="xla").astype("bfloat16")


@pytest.mark.parametrize(
    ("rows", "causal"),
    [(name, causal) for name, (_, _, of_keys) in ROWS.items() for causal in (False, True) if not (causal and of_keys)],
)
def test_cudnn_equals_the_definition(rows, causal, monkeypatch):
    """cuDNN itself on a GPU that it supports, elsewhere JAX's own products: everything around that call is real."""
    if not IS_HERE:
        monkeypatch.setattr(cudnn, "flash_attention", by_products)
    shape, lengths, of_keys = ROWS[rows]
    batch, heads, _, queries, keys, _, width = shape
    inputs = dict(zip(("query", "key", "value"), qkv(0, *shape, dtype="bfloat16"), strict=True))
    output_gradient = normal(1, batch, heads, queries, width, dtype="bfloat16")
    mask = Mask(packed(*lengths, length=queries), packed(*(of_keys or lengths), length=keys), causal)
    results = differentiate(inputs, output_gradient, mask, kernel="cudnn", device=("gpu", 9.0))
    exact = jax.tree.map(lambda array: array.astype("float32"), (inputs, output_gradient))
    close(results, differentiate(*exact, mask, kernel="definition"), "bfloat16")
