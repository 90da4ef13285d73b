"""Consistency training: the predictions for two views of a sentence must agree.

The views differ in their dropout (R-Drop); in SimCut and token cutoff, the second view also does not see some tokens.

B batch row · T target position · V vocabulary.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from model.loss import Loss, cross_entropy

LogProbs = Float[Array, "*rows V"]
Divergences = Float[Array, "*rows"]


def consistency_loss(
    logits: Float[Array, "rows *T V"],
    labels: Int[Array, "rows *T"],
    real: Bool[Array, "rows *T"],
    *,
    smoothing: float,
    method: str,
    weight: float,
) -> Loss:
    """The loss of two views with alternating rows: the first view of a row, then its second view.

    CE₁ and CE₂ are the label-smoothed cross-entropies of the two views, and p₁ and p₂ their predictions. Gradients
    flow through both. With α for ``weight``, the objective per target token is

    - r_drop: ½ (CE₁ + CE₂ + α · ½ (KL(p₁ ‖ p₂) + KL(p₂ ‖ p₁))) (Liang et al. 2021, equations 2 to 4),
    - simcut: CE₁ + α · KL(p₁ ‖ p₂) (Gao et al. 2022, section 3.2),
    - cutoff: ½ (CE₁ + CE₂ + α · JS(p₁, p₂)) (Shen et al. 2020, section 3.3).

    The first and the last are half of the papers' losses, so that losses of one and two views have the same scale and
    α keeps its meaning. Tokens are counted once.
    """
    first, second = ((logits[view::2], labels[view::2], real[view::2]) for view in (0, 1))
    losses = cross_entropy(*first, smoothing), cross_entropy(*second, smoothing)
    log_probs = jax.nn.log_softmax(first[0]), jax.nn.log_softmax(second[0])
    mean = jax.tree.map(lambda one, other: (one + other) / 2, *losses)
    match method:
        case "r_drop":
            divergence = (kullback_leibler(*log_probs) + kullback_leibler(*log_probs[::-1])) / 2
            loss, share = mean, weight / 2
        case "simcut":
            divergence = kullback_leibler(*log_probs)
            loss, share = losses[0], weight
        case "cutoff":
            divergence = jensen_shannon(*log_probs)
            loss, share = mean, weight / 2
        case _:
            raise NotImplementedError(f"training.consistency={method}")
    total = jnp.sum(jnp.where(first[2], divergence, 0))
    return loss._replace(objective=loss.objective + share * total, divergence=total)


def kullback_leibler(one: LogProbs, other: LogProbs) -> Divergences:
    """KL(p ‖ q) = Σ p log(p / q), in nats, from log p and log q."""
    return jnp.sum(jnp.exp(one) * (one - other), axis=-1)


def jensen_shannon(one: LogProbs, other: LogProbs) -> Divergences:
    """½ KL(p ‖ m) + ½ KL(q ‖ m) with m = ½ (p + q): at most log 2."""
    mixture = jnp.logaddexp(one, other) - jnp.log(2)
    return (kullback_leibler(one, mixture) + kullback_leibler(other, mixture)) / 2
