"""The training objective of a batch: its cross-entropy or, in consistency training, two views and their loss."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from data.batches.packing import Batch
from model.consistency import consistency_loss
from model.embedding import hide
from model.layers import Draws
from model.loss import LossOfLogits, cross_entropy
from training.config import TrainingConfig


class Views(NamedTuple):
    """Rows for the model, the loss of their logits, and the key and factors of their dropout."""

    batch: Batch
    loss: LossOfLogits
    dropout_key: Draws


def views_of(batch: Batch, config: TrainingConfig, draws: Draws) -> Views:
    """The batch itself or, with ``training.consistency``, two views of every row, one after the other.

    The views of r_drop differ only in dropout; simcut and cutoff hide tokens of the second view. Views alternate, so
    that both views of a row are on one device of a mesh.
    """
    smoothing, method = config.label_smoothing, config.consistency
    if method == "none":
        return Views(batch, partial(cross_entropy, smoothing=smoothing), draws)
    loss = partial(consistency_loss, smoothing=smoothing, method=method, weight=config.consistency_weight)
    dropout_key, source_key, target_key = (draws._replace(key=key) for key in jax.random.split(draws.key, 3))
    doubled: Batch = jax.tree.map(lambda rows: jnp.repeat(rows, 2, axis=0), batch)
    match method:
        case "r_drop":
            return Views(doubled, loss, dropout_key)
        case "simcut" | "cutoff":
            source = _hide_in_second(doubled.source_tokens, config.cutoff, source_key)
            target = _hide_in_second(doubled.target_inputs, config.cutoff, target_key)
            return Views(doubled._replace(source_tokens=source, target_inputs=target), loss, dropout_key)
        case _:
            raise NotImplementedError(f"training.consistency={method}")


def _hide_in_second(ids: Int[Array, "rows T"], rate: float, draws: Draws) -> Int[Array, "rows T"]:
    is_second = jnp.arange(len(ids))[:, None] % 2 == 1
    return jnp.where(is_second, hide(ids, rate, Draws(draws.key)), ids)
