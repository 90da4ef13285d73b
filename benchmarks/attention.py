"""Measure the speed of attention, and the memory that XLA plans: this project's kernels, ``jax.nn`` and PyTorch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import chain, groupby
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32

from attention.kernels import KernelError, kernel_for
from attention.kernels.request import Request, current_device
from attention.masks import Mask
from attention.multihead import attend
from attention.scores import SCALED_DOT_PRODUCT
from benchmarks.machine import Call
from benchmarks.report import Report, Row, create_report, flops_unit, mebibytes, with_ratios
from benchmarks.turns import Contestant, Entrant, Results, enter, enter_products, measure
from common.errors import UserError
from common.text_table import three_digits
from training.devices.preflight import device_memory

RECOMPUTING = {"torch", "jax.nn cudnn", "chunked", "cudnn", "tpu"}  # these recompute the scores for the gradients


@dataclass(frozen=True)
class Case:
    """Self-attention of one size, so S equals T. ``sentences`` of equal length share each row."""

    B: int
    N: int
    T: int
    H: int
    dtype: str = "float32"
    causal: bool = False
    sentences: int = 1

    def __str__(self) -> str:
        masks = ["causal"] * self.causal + ["packed"] * (self.sentences > 1)
        return " ".join([f"{self.B},{self.N},{self.T},{self.H}", *masks])

    def segments(self) -> Int32[np.ndarray, " T"]:
        """Return the segment ids of a row: 1, 2, 3 …. A row shorter than ``sentences`` has one for each token."""
        return (np.arange(self.T) * min(self.sentences, self.T) // self.T + 1).astype(np.int32)

    def flops(self, products: int) -> int:
        """Return the number of multiplications and additions in this many matrix products over the visible keys."""
        lengths = np.bincount(self.segments()).tolist()
        visible = sum(length * (length + 1) // 2 if self.causal else length**2 for length in lengths)
        return 2 * products * self.B * self.N * visible * self.H

    def automatic_kernel(self) -> str:
        """Return what ``model.kernel=auto`` chooses."""
        score, device = SCALED_DOT_PRODUCT.func.__name__, current_device()
        return kernel_for("auto", Request(device, self.dtype, score, self.T, self.T, self.H, self.H))


def count_flops(contestant: Contestant[Case], call: str) -> int:
    """Count the products of scores and output; with gradients, four more, or five if scores are recomputed."""
    return contestant.workload.flops(2 if call == "forward" else 7 if contestant.name in RECOMPUTING else 6)


def list_contestants(case: Case, kernels: Sequence[str]) -> list[Contestant[Case]]:
    """Return the peers that can take part in a case, then this project's kernels."""
    if jax.default_backend() == "gpu":
        peers = ["jax.nn cudnn"]  # its other implementation is the kernel xla
    else:
        with_torch = case.dtype == "float32" and case.sentences == 1 and find_spec("torch")
        peers = ["torch", "jax.nn"] if with_torch else ["jax.nn"]
    return [Contestant(name, case) for name in [*peers, *kernels]]


def prepare(contestant: Contestant[Case]) -> Entrant:
    """Compile and run both calls; UserError if the kernel does not support the case or memory is short."""
    try:
        calls, memory = compile_calls(contestant.name, contestant.workload)
    except KernelError as error:
        raise UserError(str(error).removeprefix(f"kernel {contestant.name} ").partition(";")[0]) from None
    total = memory and memory.temp_size_in_bytes + memory.argument_size_in_bytes + memory.output_size_in_bytes
    if memory and total > (device_memory() or total):
        raise UserError(f"needs {total / 2**30:.1f} GiB, more than there is")
    return enter(calls, lambda: {"temp_bytes": memory and memory.temp_size_in_bytes})


def compile_calls(name: str, case: Case) -> tuple[Mapping[str, Call], Any]:
    """Return both calls on inputs in the contestant's own layout, and XLA's memory analysis of the call with gradients.

    That call also returns the output, which training needs. PyTorch has no memory analysis.
    """
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal((case.B, case.N, case.T, case.H), np.float32) for _ in range(4)]
    if name == "torch":
        from benchmarks.peers.pytorch import attention_calls

        return attention_calls(arrays, is_causal=case.causal), None
    layout = [array.swapaxes(1, 2) for array in arrays] if name.startswith("jax.nn") else arrays
    cotangent, *inputs = (jnp.asarray(array, case.dtype) for array in layout)
    inputs.append(jnp.tile(case.segments(), (case.B, 1)))
    attention = jax_attention(name, case)

    def output_and_gradients(cotangent: Array, *inputs: Array) -> tuple[Array, ...]:
        *differentiable, segments = inputs
        output, pull_back = jax.vjp(lambda *arrays: attention(*arrays, segments), *differentiable)
        return output, *pull_back(cotangent)

    forward = jax.jit(attention).lower(*inputs).compile()
    gradients = jax.jit(output_and_gradients).lower(cotangent, *inputs).compile()
    calls = {"forward": partial(forward, *inputs), "gradients": partial(gradients, cotangent, *inputs)}
    return calls, gradients.memory_analysis()


def jax_attention(name: str, case: Case) -> Callable[..., Array]:
    """Return (query, key, value, segments) → output. Segments are an input, lest XLA assume that all are 1."""

    def jax_nn(query: Array, key: Array, value: Array, segments: Array) -> Array:
        mask = (segments[:, :, None] == segments[:, None, :])[:, None] if case.sentences > 1 else None
        options: dict[str, Any] = {"is_causal": case.causal, "implementation": name.partition(" ")[2] or "xla"}
        return jax.nn.dot_product_attention(query, key, value, mask=mask, **options)

    def puente(query: Array, key: Array, value: Array, segments: Array) -> Array:
        return attend(query, key, value, mask=Mask(segments, segments, case.causal), kernel=name)

    return jax_nn if name.startswith("jax.nn") else puente


def measure_attention(cases: Sequence[Case], kernels: Sequence[str], rounds: int, deadline: float) -> Report:
    """Measure every contestant on every case, in turns with plain products; UserError if none could take part."""
    groups = [list_contestants(case, kernels) for case in cases]
    results = measure(groups, prepare, enter_products, rounds, apart=False, deadline=deadline)
    if all(each.obstacle for each in results.measurements):
        raise UserError("; ".join(results.notes()))
    return report_attention(results)


def report_attention(results: Results[Case]) -> Report:
    """Return the figures of every contestant on every case; each case of the table ends with ``auto``'s choice."""
    rows = [
        Row(each.contestant, call, milliseconds, count_flops(each.contestant, call), facts=each.facts)
        for each in results.measurements
        for call, milliseconds in each.milliseconds.items()
    ]
    compared = with_ratios(rows, ("torch", "jax.nn", "jax.nn cudnn"))
    rows = [replace(row, ratio=1 / row.ratio) for row in compared]  # of times, not of speeds
    cells = []
    for case, group in groupby(rows, key=lambda row: row.contestant.workload):
        for pair in zip(group, group, strict=True):  # forward alone, and with gradients
            speeds = [[three_digits(row.milliseconds), *row.speed_cells(results.rates)] for row in pair]
            memory = mebibytes(pair[0].facts["temp_bytes"], 1)
            cells.append([str(case), pair[0].contestant.name, *chain(*speeds), memory])
        cells.append([str(case), f"auto: {case.automatic_kernel()}", *[""] * 9])
    more = ["ratio", flops_unit(results.rates)[0], "of rate"]
    header = ["B,N,T,H", "contestant", "forward ms", *more, "with gradients ms", *more, "temp MiB"]
    return create_report(results, "Attention", rows[0].contestant.workload.dtype, header, cells, rows)
