"""What is read from compiled programs, on lines as the compilers of CPUs, GPUs and TPUs write them."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from benchmarks.compiled.hlo import Array, Collective, read_program


def program(*lines: str, before: str = ""):
    return read_program(f"{before}\nENTRY %main (x: f32[8]) -> f32[8] {{\n" + "\n".join(lines) + "\n}\n")


def test_sizes_of_arrays():
    assert Array("f32", (3, 4)).bytes == 48 and Array("bf16", (3,)).bytes == 6 and Array("pred", (7,)).bytes == 7
    assert Array("s32", ()).bytes == 4 and Array("u4", (6,)).bytes == 3 and Array("f8e4m3fn", (5,)).bytes == 5
    assert str(Array("bf16", (2, 3))) == "bf16[2,3]"


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
    assert read.collectives() == [
        Collective("all-reduce", "f32", 32, devices, 1),
        Collective("all-reduce", "bf16", 16, devices, 1),
        Collective("all-gather", "f32", 32, devices, 1),
        Collective("reduce-scatter", "f32", 32, devices, 1),
    ]


def test_what_a_device_sends_around_a_ring_by_hand():
    """Of 8 devices: all parts but its own of a sum, twice; its own part to seven others; once to the next."""
    sent = {kind: Collective(kind, "f32", 800, 8, 3).sent() for kind in ("all-reduce", "all-gather", "reduce-scatter")}
    assert sent == {"all-reduce": 3 * 1400, "all-gather": 3 * 5600, "reduce-scatter": 3 * 700}
    assert Collective("collective-permute", "f32", 800, 1, 3).sent() == 2400


LOOP = """
%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {
  %p = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[8]{0} get-tuple-element(%p), index=1
  %two = s32[] constant(2)
  %next = s32[] add(%i, %two)
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
    for line, times in ((loop, 5), (counted, 7)):  # 0, 2, 4, 6, 8 are below 9
        [sum_of_devices] = program("  %start = (s32[], f32[8]{0}) parameter(0)", line, before=LOOP).collectives()
        assert sum_of_devices.times == times
    unknown = LOOP.replace("direction=LT", "direction=NE")
    assert program(loop, before=unknown).collectives()[0].times == 1


def test_products_that_a_tpu_computes_as_convolutions():
    """Rows by columns; summed over two axes; and eight products at once, for which the result keeps the axis."""
    arrays = "  %a = bf16[4,6]{1,0} parameter(0)", "  %b = bf16[6,5]{1,0} parameter(1)"
    plain = "  ROOT %c = f32[4,5]{1,0} convolution(%a, %b), dim_labels=bf_io->bf"
    [product] = program(*arrays, plain).products()
    assert product.operations == 2 * 4 * 6 * 5 and str(product) == "bf16[4,6] · bf16[6,5] → f32[4,5]"
    arrays = "  %a = bf16[3,8,6]{2,1,0} parameter(0)", "  %b = bf16[3,8,5]{2,1,0} parameter(1)"
    summed = "  ROOT %c = f32[1,6,5]{2,1,0} convolution(%a, %b), window={size=3}, dim_labels=0fb_0io->0bf"
    assert program(*arrays, summed).products()[0].operations == 2 * 6 * (3 * 8) * 5
    arrays = "  %a = bf16[8,4,6]{2,1,0} parameter(0)", "  %b = bf16[8,6,5]{2,1,0} parameter(1)"
    batch = "  ROOT %c = f32[8,4,5]{2,1,0} convolution(%a, %b), window={size=8}, dim_labels=0bf_0io->0bf"
    assert program(*arrays, batch).products()[0].operations == 8 * 2 * 4 * 6 * 5


def test_products_that_cublas_computes():
    sizes = '"dot_dimension_numbers":{"lhs_contracting_dimensions":["0"],"rhs_contracting_dimensions":["0"]}'
    [product] = program(
        "  %a = f32[6,4]{1,0} parameter(0)",
        "  %b = f32[6,5]{1,0} parameter(1)",
        f'  %c = (f32[4,5], s8[9]) custom-call(%a, %b), custom_call_target="__cublas$lt$matmul", {{{sizes}}}',
    ).products()
    assert product.operations == 2 * 4 * 6 * 5 and product.result == Array("f32", (4, 5))


def test_kernels_by_their_names():
    read = program(
        '  %a = f32[8]{0} custom-call(%x), custom_call_target="__cudnn$fmhaSoftmax"',
        '  %b = f32[8]{0} fusion(%a), kind=kCustom, calls=%f, backend_config={"kind":"__triton_nested_gemm_fusion"}',
        "  %c = f32[8]{0} fusion(%b), kind=kLoop, calls=%f",
        "  ROOT %d.remat2 = f32[8]{0} copy(%c)",
    )
    assert read.kernels() == {"__cudnn$fmhaSoftmax": 1, "triton_nested_gemm_fusion": 1}
    assert read.moved("copy") == 32 and read.moved("transpose") == 0 and read.rematerialized() == 1


def test_a_program_of_this_machine():
    """Four products of 16 × 8 by 8 × 8, in a loop."""

    def function(x, w):
        return jax.lax.fori_loop(0, 4, lambda _, x: jnp.tanh(x @ w), x)

    compiled: Any = jax.jit(function).lower(jnp.ones((16, 8)), jnp.ones((8, 8))).compile()
    [product] = read_program(compiled.as_text()).products()
    assert (product.times, product.operations) == (4, 4 * 2 * 16 * 8 * 8)
