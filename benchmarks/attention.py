"""How fast attention is, and in how much memory: this project's kernels, ``jax.nn`` and PyTorch, taking turns."""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attention import KERNELS, SCALED_DOT_PRODUCT, Mask, Request, attend, current_device, kernel_for
from attention.kernels import unsupported
from benchmarks.turns import Call, memory_limit, milliseconds_in_turns, rise_of_peak_memory, torch_if_installed

RECOMPUTING = {"torch", "jax.nn cudnn", "chunked", "cudnn", "tpu"}  # scores are made again for the gradients, not kept
Row = dict[str, Any]  # of the report: a case, a contestant and its figures


@dataclass(frozen=True)
class Case:
    """Self-attention of one size, in the letters of ``attention/__init__.py``; S is T. Each row packs ``sentences``."""

    B: int
    N: int
    T: int
    H: int
    dtype: str = "float32"
    causal: bool = False
    sentences: int = 1

    def __str__(self) -> str:
        hidden = ["causal"] * self.causal + ["packed"] * (self.sentences > 1)
        return " ".join([f"{self.B},{self.N},{self.T},{self.H}", *hidden])

    def scores(self) -> int:
        """How many there are, visible or not."""
        return self.B * self.N * self.T**2

    def segments(self) -> np.ndarray:
        """The ids of a row's tokens: 1, 2, 3 …, each for as long as the others. A short row has fewer sentences."""
        return (np.arange(self.T) * min(self.sentences, self.T) // self.T + 1).astype(np.int32)

    def flops(self, products: int) -> int:
        """Operations of so many matrix products over the visible keys: a multiplication and an addition each."""
        lengths = np.bincount(self.segments()).tolist()
        visible = sum(length * (length + 1) // 2 if self.causal else length**2 for length in lengths)
        return 2 * products * self.B * self.N * visible * self.H


def products_of(contestant: str) -> tuple[int, int]:
    """Matrix products forward (scores, output), and with the gradients: four more, or five if scores are not kept."""
    return 2, 7 if contestant in RECOMPUTING else 6


@dataclass(frozen=True)
class Contestant:
    """Two calls, ready to be timed: that of the gradients has the output too, as training needs it."""

    forward: Call
    gradients: Call
    temp: int | None = None  # bytes that the gradients take beside inputs and results, if known
    total: int = 0  # with them

    def calls(self) -> dict[str, Call]:
        return {"forward": self.forward, "gradients": self.gradients}


def measure(
    case: Case, kernels: list[str], rounds: int, products: dict[str, Call]
) -> tuple[list[Row], dict[str, float], list[str]]:
    """A row for each contestant; the milliseconds of ``products``, which take turns with them; who cannot take part."""
    contestants, missing = contestants_of(case, kernels)
    calls = {(name, kind): call for name, who in contestants.items() for kind, call in who.calls().items()}
    times = milliseconds_in_turns(calls | {(name, "product"): call for name, call in products.items()}, rounds)
    rows = [row_of(case, name, who, times) for name, who in contestants.items()]
    return rows, {name: times[name, "product"] for name in products}, missing


def row_of(case: Case, name: str, contestant: Contestant, times: dict[tuple[str, str], float]) -> Row:
    """A contestant's figures; ratios are to PyTorch or, where it is missing, to jax.nn."""
    against = "torch" if ("torch", "forward") in times else "jax.nn"
    row: Row = {"case": str(case), **asdict(case), "auto": kernel_for("auto", request_of(case)), "contestant": name}
    row |= {"ratio_to": against, "temp_bytes": contestant.temp, "peak_bytes": None}
    for kind, count in zip(contestant.calls(), products_of(name), strict=True):
        milliseconds, reference = times[name, kind], times.get((against, kind))
        row[f"{kind}_ms"] = milliseconds
        row[f"{kind}_ratio"] = milliseconds / reference if reference else None
        row[f"{kind}_flops_per_second"] = 1e3 * case.flops(count) / milliseconds
    return row


def add_peaks(rows: list[Row], case: Case) -> None:
    """Measure the memory of everyone's gradients at one case, each in a process of its own."""
    for row in rows:
        if row["case"] == str(case):
            print(f"measuring the memory of {row['contestant']} at {case}", file=sys.stderr)
            row["peak_bytes"] = rise_of_peak_memory(partial(prepare_gradients, row["contestant"], case))


def prepare_gradients(name: str, case: Case) -> Call:
    """For a fresh process: a small call first, so that what is loaded at a first call is not counted."""
    jax.block_until_ready(prepare(name, replace(case, B=1, N=1, T=min(case.T, 16))).gradients())
    return prepare(name, case).gradients


def contestants_of(case: Case, kernels: list[str]) -> tuple[dict[str, Contestant], list[str]]:
    """Those that can take part, compiled, and a line for each that cannot."""
    contestants, notes = {}, []
    for name in [*others(case), *kernels]:
        prepared = prepared_or_reason(name, case)
        if isinstance(prepared, str):
            notes.append(f"{name} {prepared}")
        else:
            contestants[name] = prepared
    return contestants, notes


def others(case: Case) -> list[str]:
    """Whom this project is compared with."""
    if jax.default_backend() == "gpu":
        return ["jax.nn", "jax.nn cudnn"]
    as_it_is_made = case.dtype == "float32" and case.sentences == 1  # prepare_torch knows nothing else
    return ["torch", "jax.nn"] if as_it_is_made and torch_if_installed() else ["jax.nn"]


def prepared_or_reason(name: str, case: Case) -> Contestant | str:
    """A contestant that has run, or why it cannot, as the end of a sentence."""
    if name in KERNELS and (reason := unsupported(name, request_of(case))):
        return reason
    try:
        prepared = prepare(name, case)
        if prepared.total > memory_limit():
            return f"needs {prepared.total / 2**30:.1f} GiB at {case}, more than there is"
        jax.block_until_ready(prepared.gradients())
    except (RuntimeError, ValueError) as error:  # no room on the device after all, or its library refuses
        return f"fails at {case}: {str(error).partition(chr(10))[0]}"
    return prepared


def request_of(case: Case) -> Request:
    """What ``attend`` is asked, for the rules by which kernels are chosen and refused."""
    return Request(
        device=current_device(),
        dtype=case.dtype,
        score=SCALED_DOT_PRODUCT.func.__name__,
        queries=case.T,
        keys=case.T,
        width=case.H,
        value_width=case.H,
    )


def prepare(name: str, case: Case) -> Contestant:
    """A contestant with inputs of its own, in the layout that it wants."""
    numbers = np.random.default_rng(0)
    arrays = [numbers.standard_normal((case.B, case.N, case.T, case.H), np.float32) for _ in range(4)]
    if name == "torch":
        return prepare_torch(arrays, case.causal)
    layout = [array.swapaxes(1, 2) for array in arrays] if name.startswith("jax.nn") else arrays
    cotangent, *inputs = (jnp.asarray(array, case.dtype) for array in layout)
    inputs.append(jnp.tile(case.segments(), (case.B, 1)))
    attention = jax_attention(name, case)
    forward = jax.jit(attention).lower(*inputs).compile()
    gradients = jax.jit(with_gradients(attention)).lower(cotangent, *inputs).compile()
    sizes: Any = gradients.memory_analysis()
    total = sizes.temp_size_in_bytes + sizes.argument_size_in_bytes + sizes.output_size_in_bytes
    calls = partial(forward, *inputs), partial(gradients, cotangent, *inputs)
    return Contestant(*calls, sizes.temp_size_in_bytes, total)


def jax_attention(name: str, case: Case) -> Callable[..., jax.Array]:
    """(query, key, value, segments) → output. Segments are an input, so that XLA cannot know them to be all ones."""

    def of_jax(query: jax.Array, key: jax.Array, value: jax.Array, segments: jax.Array) -> jax.Array:
        mask = (segments[:, :, None] == segments[:, None, :])[:, None] if case.sentences > 1 else None
        options: dict[str, Any] = {"is_causal": case.causal, "implementation": name.partition(" ")[2] or "xla"}
        return jax.nn.dot_product_attention(query, key, value, mask=mask, **options)

    def ours(query: jax.Array, key: jax.Array, value: jax.Array, segments: jax.Array) -> jax.Array:
        return attend(query, key, value, mask=Mask(segments, segments, case.causal), kernel=name)

    return of_jax if name.startswith("jax.nn") else ours


def with_gradients(attention: Callable[..., jax.Array]) -> Callable[..., tuple[jax.Array, ...]]:
    """(cotangent, query, key, value, segments) → the output, and the gradients of query, key and value."""

    def both(cotangent: jax.Array, *inputs: jax.Array) -> tuple[jax.Array, ...]:
        *differentiable, segments = inputs
        output, pull_back = jax.vjp(lambda *arrays: attention(*arrays, segments), *differentiable)
        return output, *pull_back(cotangent)

    return both


def prepare_torch(arrays: list[np.ndarray], causal: bool) -> Contestant:
    torch = torch_if_installed()
    attention = partial(torch.nn.functional.scaled_dot_product_attention, is_causal=causal)
    cotangent, *inputs = (torch.from_numpy(array) for array in arrays)
    leaves = [array.detach().requires_grad_() for array in inputs]

    def gradients() -> tuple[Any, ...]:
        output = attention(*leaves)
        return output.detach(), *torch.autograd.grad(output, leaves, cotangent)

    return Contestant(partial(attention, *inputs), gradients)
