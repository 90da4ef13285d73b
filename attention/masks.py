"""Who may see whom: one rule for padding, packing, causality and cached decoding."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int


def visible_keys(
    query_segments: Int[Array, " T"],
    key_segments: Int[Array, " S"],
    *,
    causal: bool,
    query_places: Int[Array, " T"] | None = None,
) -> Bool[Array, "T S"]:
    """True where a query sees a key: equal, non-zero segments and, if ``causal``, a key that is not later.

    Segment 0 is padding: it sees nothing and nothing sees it. Sentences packed into one row have different
    segments, so they are invisible to each other, and the place in the row orders the tokens of each. Places are
    0 to T - 1 unless the queries are only a part of the row's.
    """
    visible = (query_segments[:, None] == key_segments[None, :]) & (key_segments[None, :] != 0)
    if causal:
        places = jnp.arange(query_segments.size) if query_places is None else query_places
        visible &= places[:, None] >= jnp.arange(key_segments.size)[None, :]
    return visible
