"""Who may see whom: one rule for padding, packing, causality and cached decoding."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int


def visible_keys(
    query_segments: Int[Array, " T"], key_segments: Int[Array, " S"], *, causal: bool
) -> Bool[Array, "T S"]:
    """True where a query sees a key: equal, non-zero segments and, if ``causal``, a key that is not later.

    Segment 0 is padding: it sees nothing and nothing sees it. Sentences packed into one row have different
    segments, so they are invisible to each other, and position in the row orders the tokens of each.
    """
    visible = (query_segments[:, None] == key_segments[None, :]) & (key_segments[None, :] != 0)
    if causal:
        visible &= jnp.arange(query_segments.size)[:, None] >= jnp.arange(key_segments.size)[None, :]
    return visible
