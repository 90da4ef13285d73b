"""cuDNN's attention: its calls in programs for a GPU, what they are told, and its numbers, by cuDNN itself on a GPU."""

import math
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention import Mask, Score, attend, current_device, dot_product, tracing_for, visible_keys
from attention.kernels import cudnn

IS_HERE = current_device().platform == "gpu" and current_device().capability >= 9
FORWARD, BACKWARD = "__cudnn$fmhaSoftmax", "__cudnn$fmhaSoftmaxBackward"


@pytest.fixture
def hopper(monkeypatch):
    """Trace for a Hopper GPU without one: two questions of jax's to a GPU are answered by hand, nothing else."""
    from jax._src.cudnn import fused_attention_stablehlo

    monkeypatch.setattr(fused_attention_stablehlo, "check_cudnn_version", lambda: 91000)
    monkeypatch.setattr(fused_attention_stablehlo, "check_compute_capability", lambda capability: True)
    with tracing_for("gpu", 9.0):
        yield


@pytest.fixture
def program(hopper, lower):
    """``program(*shape, …)``: what ``attend`` by cuDNN is lowered to for a GPU, in StableHLO."""

    def program(*shape, **options):
        jitted, arguments = lower("cudnn", *shape, dtype="bfloat16", **options)
        unchecked = [jax.export.DisabledSafetyCheck.custom_call(name) for name in (FORWARD, BACKWARD)]
        return jax.export.export(jitted, platforms=["cuda"], disabled_checks=unchecked)(*arguments).mlir_module()

    return program


@pytest.fixture
def calls(program):
    """``calls(*shape, …)``: the calls of cuDNN in that program, each a name and the shapes of its operands."""

    def calls(*shape, **options):
        text = program(*shape, **options)
        found = re.findall(r"custom_call @(__cudnn\S+?)\(.* : \((tensor.*?)\) ->", text)
        assert len(found) == text.count("@__cudnn")
        return [
            (name, [tuple(map(int, re.findall(r"(\d+)x", operand))) for operand in operands.split(", ")])
            for name, operands in found
        ]

    return calls


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_the_program_for_a_gpu_has_cudnn_s_calls_without_a_mask_or_bias(groups, causal, calls):
    shape = (2, 4, groups, 64, 96, 64, 64)
    assert [name for name, _ in calls(*shape, causal=causal)] == [FORWARD]
    of_gradients = calls(*shape, causal=causal, gradients=True)
    assert [name for name, _ in of_gradients] == [FORWARD, BACKWARD]
    for _, operands in of_gradients:
        assert not [operand for operand in operands if operand[-2:] == (64, 96)]


@pytest.mark.parametrize(("causal", "mask"), [(False, "PADDING"), (True, "PADDING_CAUSAL")])
def test_cudnn_is_told_the_scale_and_whether_the_future_is_hidden(causal, mask, program):
    text = program(2, 4, 2, 64, 96, 64, 64, causal=causal, gradients=True).replace("\\22", '"')
    assert re.findall(r'"mask_type": "(\w+)"', text) == [mask, mask]
    assert re.findall(r'"fmha_scale": ([\d.]+)', text) == ["0.125", "0.125"]  # 1 / √64
    assert re.findall(r'"dropout_rate": ([\d.]+)', text) == ["0.0", "0.0"]


def test_all_that_grows_faster_than_a_row_is_one_number_a_segment_head_and_position(calls):
    # There may be a segment for every two positions: B · T/2 of them, each with N · T numbers.
    for length in (64, 512):
        operands = [operand for _, found in calls(2, 4, 4, length, length, 64, 64, gradients=True) for operand in found]
        large = [operand for operand in operands if math.prod(operand) > 2 * 4 * length * 64]  # than a query
        assert large == ([(2 * 256, 4, 512)] if length == 512 else [])


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(63, 61), (63, 64), (1, 31)])
def test_cudnn_takes_rows_of_odd_length(queries, keys, gradients, calls):
    assert len(calls(2, 2, 2, queries, keys, 64, 64, gradients=gradients)) == (2 if gradients else 1)


def test_the_shortest_rows_are_packed_rows_too(program):
    """One segment at most would be no packed row to jax, and a length of -1 would reach cuDNN."""
    assert re.findall(r'"max_seg_per_batch": (\d+)', program(2, 2, 2, 2, 2, 64, 64).replace("\\22", '"')) == ["2"]


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_cudnn_is_told_where_every_segment_starts_in_memory(groups, qkv, packed, hopper, monkeypatch):
    """What reaches cuDNN, after jax has turned lengths and offsets in rows into those in memory."""
    from jax._src.cudnn.fused_attention_stablehlo import _fix_seqlen_offsets

    told: list[Any] = []

    def packed_attention(*arguments, **_):
        told[:] = arguments
        return arguments[0]

    monkeypatch.setattr(cudnn, "packed_attention", packed_attention)
    query_segments, key_segments = packed([3, 2], [4, 1, 1], length=6), packed([1, 4], [2, 2, 3], length=7)
    arrays = qkv(0, 2, 4, groups, 6, 7, 8, 8, dtype="bfloat16")
    attend(*arrays, mask=Mask(query_segments, key_segments), kernel="cudnn")
    query, key, _, where = told
    *lengths, query_starts, key_starts = _fix_seqlen_offsets(*where, query, key)  # type: ignore[call-arg]
    for result, expected in zip(lengths, ([3, 2, 4, 1, 1], [1, 4, 2, 2, 3]), strict=True):
        assert np.ravel(result).tolist() == [*expected, 0]
    # In tokens. Seven keys became eight: the second row starts at 6 and at 8, and the rows end at 12 and at 16.
    starts = (query_starts, query, [0, 3, 6, 10, 11, 12]), (key_starts, key, [0, 1, 8, 10, 12, 16])
    for result, array, expected in starts:
        numbers_per_token = math.prod(array.shape[2:])
        assert (np.ravel(result) / numbers_per_token).tolist()[:6] == expected


def test_more_segments_than_there_may_be_give_nan_and_leave_the_others_alone(qkv, hopper, monkeypatch):
    query, key, value = qkv(0, 1, 1, 1, 4, 4, 8, 8, dtype="bfloat16")
    monkeypatch.setattr(cudnn, "packed_attention", lambda query, *_, **__: query)  # as if it gave the queries
    segments = jnp.array([[1, 2, 3, 0]])  # two may be in four positions
    result = attend(query, key, value, mask=Mask(segments, segments, causal=True), kernel="cudnn")
    np.testing.assert_array_equal(result[0, 0, :2], query[0, 0, :2])
    assert np.isnan(result[0, 0, 2]).all() and (result[0, 0, 3] == 0).all()


def extents(query_segments, key_segments):
    """For each row (query length, query start, key length, key start) of the segments that have queries."""
    query_segments, key_segments = jnp.array(query_segments), jnp.array(key_segments)
    told = cudnn.extents(query_segments, key_segments, query_segments.shape[1])
    query_lengths, key_lengths, query_starts, key_starts = (np.asarray(array) for array in told)
    found = []
    for row in zip(query_lengths, query_starts[:, :-1], key_lengths, key_starts[:, :-1], strict=True):
        there = row[0] >= 0
        assert all((numbers[~there] == -1).all() and (numbers[there] >= 0).all() for numbers in row)
        found.append([tuple(map(int, segment)) for segment in np.array(row).T[there]])
    assert (query_starts[:, -1] == -1).all() and (key_starts[:, -1] == -1).all()
    return found


def test_extents_by_hand():
    rows = extents([[1, 1, 2, 2, 2, 0], [1, 2, 3, 3, 0, 0]], [[1, 1, 1, 2, 0], [1, 1, 2, 2, 3]])
    assert rows == [[(2, 0, 3, 0), (3, 2, 1, 3)], [(1, 0, 2, 0), (1, 1, 2, 2), (2, 2, 1, 4)]]
    assert extents([[0, 0, 0]], [[1, 1, 0]]) == [[]]  # all padding
    assert extents([[1, 2, 2]], [[1, 1, 0]]) == [[(1, 0, 2, 0), (2, 1, 0, 2)]]  # no keys for the second
    assert extents([[1, 1, 0]], [[1, 2, 2]]) == [[(2, 0, 1, 0)]]  # no queries for the second
    assert extents([[1, 1, 3]], [[1, 2, 3]]) == [[(2, 0, 1, 0), (1, 2, 1, 2)]]  # none for one in the middle


@given(pairs=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4))
def test_inside_the_extents_is_what_is_visible(packed, pairs):
    query_segments, key_segments = (packed(lengths, length=12) for lengths in zip(*pairs, strict=True))
    inside = np.zeros((12, 12), bool)
    for query_length, query_start, key_length, key_start in extents(query_segments, key_segments)[0]:
        inside[query_start : query_start + query_length, key_start : key_start + key_length] = True
    np.testing.assert_array_equal(inside, visible_keys(query_segments[0], key_segments[0], causal=False))


def numbers_of(lengths, starts, length):
    """For each position of a row the number of its segment, from the extents; 0 outside of all."""
    places, lengths, starts = jnp.arange(length), lengths[:, :, None], starts[:, :-1, None]
    inside = (places >= starts) & (places < starts + lengths) & (lengths >= 0)
    return (inside * jnp.arange(1, lengths.shape[1] + 1)[:, None]).sum(axis=1)


def as_cudnn_does(query, key, value, where, *, scale, causal):
    """Attention from what cuDNN is told and nothing else; NaN is what it leaves open, in the gradients too."""
    query_numbers = numbers_of(where.query_lengths, where.query_offsets, query.shape[1])
    key_numbers = numbers_of(where.key_lengths, where.key_offsets, key.shape[1])
    open_places = [(numbers == 0)[:, :, None, None] for numbers in (query_numbers, key_numbers, key_numbers)]
    mask = Mask(query_numbers, key_numbers, causal)

    @jax.custom_vjp
    def attended(query, key, value):
        heads_first = (array.swapaxes(1, 2) for array in (query * scale, key, value))
        return jnp.where(
            open_places[0], jnp.nan, attend(*heads_first, mask=mask, score=Score(dot_product)).swapaxes(1, 2)
        )

    def forward(*arrays):
        return jax.vjp(attended.fun, *arrays)

    def backward(pullback, gradient):
        gradients = pullback(gradient)
        return tuple(jnp.where(place, jnp.nan, of) for place, of in zip(open_places, gradients, strict=True))

    attended.defvjp(forward, backward)
    return attended(query, key, value)


# (B, N, G, T, S, H, U), the lengths of the sentences in each row of queries, and in each row of keys where they differ.
ROWS: dict[str, tuple[tuple[int, ...], list[list[int]], list[list[int]] | None]] = {
    "packed rows, and one of padding": ((3, 2, 2, 7, 7, 8, 8), [[3, 2], [2, 2, 3], []], None),
    "rows of another side, some sentences empty": (
        (3, 2, 2, 7, 7, 8, 8),
        [[3, 2], [2, 2, 3], []],
        [[4, 1, 2], [2, 0, 3], [7]],
    ),
    "one key head for two query heads": ((3, 2, 1, 7, 7, 8, 8), [[3, 2], [2, 2, 3], []], None),
    "a query for all keys": ((2, 2, 2, 1, 31, 8, 8), [[1], [1]], [[31], [3]]),
    "as many sentences as a row has room for": ((2, 2, 2, 32, 32, 8, 8), [[2] * 16, [2] * 16], None),
    "odd lengths": ((2, 2, 2, 63, 61, 64, 64), [[40, 20], [1] * 20], [[30, 30], [2] * 20]),
    "two key heads for eight query heads": ((2, 8, 2, 64, 64, 16, 16), [[30, 20], [64]], None),
    "the widest heads": ((1, 2, 2, 128, 128, 128, 128), [[100, 20]], None),
    "forty sentences": ((2, 2, 2, 1024, 1024, 64, 64), [[25] * 40, [1000]], None),
    "a sentence of two thousand": ((1, 1, 1, 2048, 2048, 64, 64), [[2000]], None),
}


def marks_of(name):
    """Without cuDNN, rows longer than 32 prove no more than shorter ones, and take longer."""
    return [] if IS_HERE or ROWS[name][0][3] <= 32 else [pytest.mark.slow]


@pytest.mark.parametrize(
    ("rows", "causal"),
    [
        pytest.param(name, causal, marks=marks_of(name))
        for name, (_, _, of_keys) in ROWS.items()
        for causal in (False, True)
        if not (causal and of_keys)
    ],
)
def test_cudnn_equals_the_definition(rows, causal, qkv, normal, packed, differentiate, close, monkeypatch):
    """cuDNN itself on a GPU that it supports. Elsewhere what follows nothing but what cuDNN is told, and leaves open
    what cuDNN leaves open: everything around that one call is real.
    """
    if not IS_HERE:
        monkeypatch.setattr(cudnn, "packed_attention", as_cudnn_does)
    shape, lengths, of_keys = ROWS[rows]
    batch, heads, _, queries, keys, _, width = shape
    inputs = dict(zip(("query", "key", "value"), qkv(0, *shape, dtype="bfloat16"), strict=True))
    output_gradient = normal(1, batch, heads, queries, width, dtype="bfloat16")
    mask = Mask(packed(*lengths, length=queries), packed(*(of_keys or lengths), length=keys), causal)
    results = differentiate(inputs, output_gradient, mask, kernel="cudnn", device=("gpu", 9.0))
    exact = jax.tree.map(lambda array: array.astype("float32"), (inputs, output_gradient))
    close(results, differentiate(*exact, mask, kernel="definition"), "bfloat16")
