"""What an attention asks of a kernel, as far as it is known before any number is."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass

import jax
from jaxtyping import Array, Float, Key

from attention.scores import Score

_platform: ContextVar[str | None] = ContextVar("platform", default=None)


@dataclass(frozen=True)
class Request:
    """Shapes, dtype and wishes; ``platform`` is JAX's name of the device's kind: cpu, gpu or tpu."""

    platform: str
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
        platform=current_platform(),
        dtype=str(query.dtype),
        score=score.func.__name__,
        queries=query.shape[2],
        keys=key.shape[2],
        width=query.shape[3],
        value_width=value.shape[3],
        bias=bias is not None,
        dropout=dropout_key is not None,
    )


def current_platform() -> str:
    """The platform that code is traced for: that of the default device, or the one of ``tracing_for``."""
    return _platform.get() or jax.default_backend()


@contextlib.contextmanager
def tracing_for(platform: str) -> Iterator[None]:
    """Trace for another platform than this machine's, as ``jax.export`` may lower for it.

    What was traced before is not traced again: trace inside with functions that are new.
    """
    token = _platform.set(platform)
    try:
        yield
    finally:
        _platform.reset(token)
