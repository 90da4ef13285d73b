"""What is read from compiled programs, on lines as the compilers of CPUs, GPUs and TPUs write them."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from benchmarks.compiled.hlo import (
    Array,
    Collective,
    count_kernels,
    list_collectives,
    list_products,
    read_program,
)


def program(*lines: str, before: str = ""):
    return read_program(f"{before}\nENTRY %main (x: f32[8]) -> f32[8] {{\n" + "\n".join(lines) + "\n}\n")


def test_sizes_of_arrays():
    sizes = {"f32": 48, "bf16": 24, "pred": 12, "u4": 6, "f8e4m3fn": 12}
    assert {dtype: Array(dtype, (3, 4)).bytes for dtype in sizes} == sizes and Array("s32", ()).bytes == 4


GROUPS = {
    "replica_groups=mesh['axis_0'=2,'axis_1'=4] {'axis_1'}": 4,
    "replica_groups=mesh['axis_0'=2,'axis_1'=4] {'axis_0','axis_1'}": 8,
    "replica_groups=[2,4]<=[8]": 4,
    "replica_groups={{0,2},{1,3}}": 2,
}


@pytest.mark.parametrize("groups", GROUPS)
def test_collectives_count_what_a_device_puts_in(groups):
    read = program(
        "  %a = f32[2,4]{1,0:T(8,128)} parameter(0)",
        "  %b = bf16[8]{0} parameter(1)",
        f"  %c = (f32[2,4]{{1,0}}, /*index=1*/bf16[8]{{0}}) all-reduce(%a, %b), {groups}, to_apply=%add",
        f"  %d = (f32[2,4]{{1,0}}, f32[16,4]{{1,0}}) all-gather-start(%a), {groups}, dimensions={{0}}",
        "  %e = f32[16,4]{1,0} all-gather-done(%d)",
        f"  ROOT %f = ((f32[2,4]), f32[1,4]{{1,0}}) reduce-scatter-start(%a), {groups}, dimensions={{0}}",
    )
    devices = GROUPS[groups]
    assert list_collectives(read) == [
        Collective("all-reduce", "f32", devices, 1, 32),
        Collective("all-reduce", "bf16", devices, 1, 16),
        Collective("all-gather", "f32", devices, 1, 32),
        Collective("reduce-scatter", "f32", devices, 1, 32),
    ]


def test_what_a_device_sends_around_a_ring_by_hand():
    """Of 8 devices: all parts but its own of a sum, twice; its own part to seven others; once to the next."""
    sent = {kind: Collective(kind, "f32", 8, 3, 2400).sent() for kind in ("all-reduce", "all-gather", "reduce-scatter")}
    assert sent == {"all-reduce": 3 * 1400, "all-gather": 3 * 5600, "reduce-scatter": 3 * 700}
    assert Collective("collective-permute", "f32", 1, 3, 2400).sent() == 2400


LOOP = """
%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {
  %p = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[8]{0} get-tuple-element(%p), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %sum = f32[8]{0} all-reduce(%x), replica_groups=[1,4]<=[4], to_apply=%add
  ROOT %pair = (s32[], f32[8]{0}) tuple(%next, %sum)
}

%condition (q: (s32[], f32[8])) -> pred[] {
  %q = (s32[], f32[8]{0}) parameter(0)
  %j = s32[] get-tuple-element(%q), index=0
  %ten = s32[] constant(9)
  ROOT %less = pred[] compare(%j, %ten), direction=LT
}
"""


def test_collectives_in_a_loop_count_as_often_as_it_runs():
    loop = "  ROOT %w = (s32[], f32[8]{0}) while(%start), condition=%condition, body=%body"
    counted = loop + ', backend_config={"known_trip_count":{"n":"7"}}'
    for line, times in ((loop, 9), (counted, 7)):
        [sums] = list_collectives(program("  %start = (s32[], f32[8]{0}) parameter(0)", line, before=LOOP))
        assert (sums.times, sums.bytes) == (times, times * 32)
    unknown = LOOP.replace("direction=LT", "direction=NE")
    assert list_collectives(program(loop, before=unknown))[0].times == 1


def test_products_of_compilers_and_of_cublas():
    read = program(
        "  %a = bf16[4,6]{1,0} parameter(0)",
        "  %b = f32[6,5]{1,0} parameter(1)",
        "  %c = f32[4,5]{1,0} convolution(%a, %b), dim_labels=bf_io->bf",
        "  %d = f32[4,5]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        '  ROOT %e = (f32[4,5], s8[9]) custom-call(%a, %b), custom_call_target="__cublas$lt$matmul"',
    )
    assert list_products(read) == [(Array("bf16", (4, 6)), Array("f32", (6, 5)))] * 3


def test_kernels_by_their_names():
    read = program(
        '  %a = f32[8]{0} custom-call(%x), custom_call_target="__cudnn$fmhaSoftmax"',
        '  %b = f32[8]{0} fusion(%a), kind=kCustom, calls=%f, backend_config={"kind":"__triton_nested_gemm_fusion"}',
        "  %c = f32[8]{0} fusion(%b), kind=kLoop, calls=%f",
        "  ROOT %d = f32[8]{0} copy(%c)",
    )
    assert count_kernels(read) == {"__cudnn$fmhaSoftmax": 1, "triton_nested_gemm_fusion": 1}


def test_a_program_of_this_machine():
    """Four products of 16 × 8 by 8 × 8, in a loop."""

    def function(x, w):
        return jax.lax.fori_loop(0, 4, lambda _, x: jnp.tanh(x @ w), x)

    compiled: Any = jax.jit(function).lower(jnp.ones((16, 8)), jnp.ones((8, 8))).compile()
    [product] = [each for each in read_program(compiled.as_text()) if each.opcode == "dot"]
    assert product.times == 4 and product.inputs == (Array("f32", (16, 8)), Array("f32", (8, 8)))
