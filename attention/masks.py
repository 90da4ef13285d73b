"""Which keys a query sees: one rule for padding, packed sentences, causality and cached decoding."""

from dataclasses import dataclass, field
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Mask:
    """Which keys each query sees, without an array of T × S entries. ``visible_keys`` is the rule.

    A pytree with the two arrays of segments as leaves. ``causal`` is part of its structure, so it is static in ``jit``.
    """

    query_segments: Int[Array, "B T"]
    key_segments: Int[Array, "B S"]
    causal: bool = field(default=False, metadata={"static": True})

    def visible(self) -> Bool[Array, "B T S"]:
        """``visible_keys`` of every row."""
        return jax.vmap(partial(visible_keys, causal=self.causal))(self.query_segments, self.key_segments)


def visible_keys(
    query_segments: Int[Array, " T"],
    key_segments: Int[Array, " S"],
    *,
    causal: bool,
    query_places: Int[Array, " T"] | None = None,
) -> Bool[Array, "T S"]:
    """True where a query sees a key: in equal, non-zero segments and, if ``causal``, not after the query.

    Segment 0 is padding: it sees nothing and nothing sees it. Sentences packed into one row have different segments, so
    they do not see each other, and within a sentence the order in the row is the order of its tokens.
    ``query_places`` are the queries' places in the row; by default 0 to T - 1.
    """
    visible = (query_segments[:, None] == key_segments[None, :]) & (key_segments[None, :] != 0)
    if causal:
        places = jnp.arange(query_segments.size) if query_places is None else query_places
        visible &= places[:, None] >= jnp.arange(key_segments.size)[None, :]
    return visible
