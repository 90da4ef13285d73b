"""What an attention asks of a kernel, as far as it is known before any number is."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

import jax
from jaxtyping import Array, Float, Key

from attention.scores import Score

_traced_for: ContextVar["Device | None"] = ContextVar("traced_for", default=None)


class Device(NamedTuple):
    """JAX's name of a device's kind, cpu, gpu or tpu, and the compute capability of an NVIDIA GPU."""

    platform: str
    capability: float = 0.0


@dataclass(frozen=True)
class Request:
    """Where, in which dtype, by which score, at which lengths and widths, and with what besides."""

    device: Device
    dtype: str
    score: str
    queries: int
    keys: int
    width: int
    value_width: int
    bias: bool = False
    dropout: bool = False


def request_of(
    query: Float[Array, "B N T H"],
    key: Float[Array, "B G S H"],
    value: Float[Array, "B G S U"],
    bias: Float[Array, "B N T S"] | None,
    score: Score,
    dropout_key: Key[Array, ""] | None,
) -> Request:
    """What a call of ``attend`` with these arguments asks."""
    return Request(
        device=current_device(),
        dtype=str(query.dtype),
        score=score.func.__name__,
        queries=query.shape[2],
        keys=key.shape[2],
        width=query.shape[3],
        value_width=value.shape[3],
        bias=bias is not None,
        dropout=dropout_key is not None,
    )


def current_device() -> Device:
    """What code is traced for: the default device, or the one of ``tracing_for``."""
    traced_for = _traced_for.get()
    if traced_for is not None:
        return traced_for
    capability = str(getattr(jax.devices()[0], "compute_capability", ""))  # of other makers' GPUs it is no number
    return Device(jax.default_backend(), float(capability) if capability.replace(".", "").isdigit() else 0.0)


@contextlib.contextmanager
def tracing_for(platform: str, capability: float = 0.0) -> Iterator[None]:
    """Trace for another device than this machine's, as ``jax.export`` may lower for it.

    What was traced before is not traced again: trace inside with functions that are new.
    """
    token = _traced_for.set(Device(platform, capability))
    try:
        yield
    finally:
        _traced_for.reset(token)
