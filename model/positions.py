"""Positions of tokens in their sentence: added to embeddings, rotations of queries and keys, or a bias on scores."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int

from model.config import ModelConfig

BUCKETS, FARTHEST = 32, 128  # of relative positions, as in T5


class Order(NamedTuple):
    """What self-attention knows about token order besides causality: one of the first two fields, or neither."""

    rotation: Int[Array, "B T"] | None = None  # positions by which queries and keys are rotated
    bias: Float[Array, "B N T S"] | None = None  # added to scores
    first_values: Float[Array, "B G T U"] | None = None  # of the stack's first block, with model.value_residual


def sinusoidal_positions(positions: Int[Array, "B T"], d_model: int) -> Float[Array, "B T D"]:
    """Sines in the first half of the width, cosines in the second (Vaswani et al. 2017, section 3.5).

    Wavelengths range from 2π to 20000π. The paper interleaves sines and cosines; the halves are the same features in
    another order, which the next layer's weights absorb.
    """
    angles = rotation_angles(positions, d_model // 2)
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)


def rotation_angles(positions: Int[Array, "*rows"], count: int) -> Float[Array, "*rows angles"]:
    """Each position times ``count`` frequencies that fall from 1 towards 1/10000."""
    return positions[..., None] * jnp.exp(jnp.arange(count) * (-math.log(10_000.0) / count))


def rotate(x: Float[Array, "B N T H"], positions: Int[Array, "B T"] | None) -> Float[Array, "B N T H"]:
    """Rotary positions: components i and i + H/2 of a head are rotated as a pair (Su et al. 2021, section 3.2).

    The dot product of a rotated query and a rotated key depends on position only through their distance. The paper
    pairs neighbouring components; these are the same pairs in another order. Without positions, return ``x``.
    """
    if positions is None:
        return x
    angles = rotation_angles(positions, x.shape[-1] // 2)[:, None]
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    sine, cosine = jnp.sin(angles), jnp.cos(angles)
    rotated = [first * cosine - second * sine, second * cosine + first * sine]
    return jnp.concatenate(rotated, axis=-1).astype(x.dtype)


def alibi_bias(
    query_positions: Int[Array, "B T"], key_positions: Int[Array, "B S"], heads: int
) -> Float[Array, "B N T S"]:
    """Minus the distance times the head's slope, 2^(-8n/N) for head n from 1 to N (Press et al. 2022, section 3).

    The paper's decoder only looks back; an encoder looks both ways, and the direction does not matter.
    """
    slopes = 2.0 ** (-8 * jnp.arange(1, heads + 1) / heads)
    distances = jnp.abs(query_positions[:, :, None] - key_positions[:, None, :])
    return -slopes[:, None, None] * distances[:, None]


def bucket_of(distances: Int[Array, "*shape"], *, causal: bool) -> Int[Array, "*shape"]:
    """The bucket of a key that is ``distances`` after its query, negative if before (Raffel et al. 2020, section 2.1).

    Unless causal, half of the buckets are for later keys. In each direction, half of the buckets hold one distance
    each; the others widen logarithmically up to ``FARTHEST``, and the last one also holds all greater distances.
    """
    count = BUCKETS if causal else BUCKETS // 2
    steps = jnp.maximum(-distances, 0) if causal else jnp.abs(distances)
    exact = count // 2
    growth = FARTHEST / exact
    # The starts of wide buckets are computed in Python, so that they do not depend on a device's logarithm.
    starts = jnp.array([math.ceil(exact * growth ** (wide / exact) - 1e-9) for wide in range(1, exact)])
    bucket = jnp.minimum(steps, exact) + (steps[..., None] >= starts).sum(axis=-1)
    return bucket if causal else bucket + jnp.where(distances > 0, count, 0)


class RelativeBias(nnx.Module):
    """A learned bias per head and bucket of distances, shared by the layers of a stack, as in T5."""

    def __init__(self, config: ModelConfig, *, causal: bool, rngs: nnx.Rngs):
        initial = jax.random.normal(rngs.params(), (BUCKETS, config.num_heads)) * config.d_model**-0.5
        self.table = nnx.Param(initial, axes=".N")
        self.causal = causal

    def __call__(self, query_positions: Int[Array, "B T"], key_positions: Int[Array, "B S"]) -> Float[Array, "B N T S"]:
        distances = key_positions[:, None, :] - query_positions[:, :, None]
        return jnp.moveaxis(self.table[...][bucket_of(distances, causal=self.causal)], -1, 1)
