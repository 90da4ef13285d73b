"""What a kernel must support in one call of ``attend``: everything known at trace time, before the values are."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

import jax
from jaxtyping import Array

from attention.scores import DOT_PRODUCTS, Score

_traced_for: ContextVar["Device | None"] = ContextVar("traced_for", default=None)


class Device(NamedTuple):
    """JAX's name for the kind of a device (cpu, gpu, tpu), and the compute capability of an NVIDIA GPU."""

    platform: str
    capability: float = 0.0


@dataclass(frozen=True)
class Request:
    """Device, dtype, score, numbers of queries and keys, widths, and whether there is a bias or dropout."""

    device: Device
    dtype: str
    score: str
    queries: int
    keys: int
    width: int
    value_width: int
    bias: bool = False
    dropout: bool = False


def request_of(query: Array, value: Array, bias: Array | None, score: Score, dropout: bool) -> Request:
    """The request that a call of ``attend`` makes."""
    (_, _, queries, width), (_, _, keys, value_width) = query.shape, value.shape
    device, dtype, name = current_device(), str(query.dtype), score.func.__name__
    return Request(device, dtype, name, queries, keys, width, value_width, bias is not None, dropout)


def dot_product_only(request: Request) -> str | None:
    """Why a kernel that sums values over dot products, without dropout, does not support a request."""
    if request.score not in DOT_PRODUCTS:
        return f"has dot-product scores only, not {request.score} ones"
    if request.dropout:
        return "has no attention dropout"
    return None


def current_device() -> Device:
    """The device that code is traced for: the default device, or the one set by an enclosing ``tracing_for``."""
    traced_for = _traced_for.get()
    if traced_for is not None:
        return traced_for
    capability = str(getattr(jax.devices()[0], "compute_capability", ""))  # not a number on other vendors' GPUs
    return Device(jax.default_backend(), float(capability) if capability.replace(".", "").isdigit() else 0.0)


@contextlib.contextmanager
def tracing_for(platform: str, capability: float = 0.0) -> Iterator[None]:
    """Trace for a device other than this machine's. JAX caches traces, so use new functions inside."""
    token = _traced_for.set(Device(platform, capability))
    try:
        yield
    finally:
        _traced_for.reset(token)
