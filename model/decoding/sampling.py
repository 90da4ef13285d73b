"""One token after another, each hypothesis on its own: the likeliest one, or one drawn at random.

B sentence · K hypothesis · T target position · S source position · V vocabulary
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, UInt32

from common.special_tokens import EOS, PAD
from model.decoding.ensemble import Caches, Models, start, step
from model.decoding.hypotheses import Hypotheses, choose, forced_at, last_tokens, limits_of_sources, no_hypotheses
from model.decoding.next_token import allowed, likeliest, log_normalizers
from model.decoding.ranking import Ranking

Next = tuple[Float[Array, "B K"], Int[Array, "B K"]]  # log-probabilities and tokens
ChooseNext = Callable[[Array, Array | None, Array], Next]  # of logits "B K V", forced tokens " B", the position


@dataclass(frozen=True)
class Sampling:
    """The distribution that tokens are drawn from: probabilities to the power 1 / temperature, then cut."""

    temperature: float = 1.0
    top_k: int = 0  # only the k likeliest tokens (Fan et al. 2018); 0: all
    top_p: float = 1.0  # only the likeliest that together have this probability (Holtzman et al. 2020)


def greedy(
    models: Models,
    source_tokens: Int[Array, "B S"],
    source_segments: Int[Array, "B S"],
    limits: Int[Array, " B"],
    prefixes: Int[Array, "B T"] | None = None,
    *,
    ranking: Ranking,
    max_length: int,
) -> Hypotheses:
    """The likeliest next token, again and again, until EOS or the sentence's limit: a beam of one, at less cost.

    Arguments are those of ``beam_search``.
    """

    def choose_next(logits: Array, forced: Array | None, position: Array) -> Next:
        found = likeliest(jnp.zeros(logits.shape[:2]), logits, forced, 1)
        return found.log_probs, found.tokens

    sources = source_tokens, source_segments, limits, prefixes
    return _one_by_one(choose_next, models, *sources, beams=1, ranking=ranking, max_length=max_length)


def sample(
    models: Models,
    source_tokens: Int[Array, "B S"],
    source_segments: Int[Array, "B S"],
    limits: Int[Array, " B"],
    prefixes: Int[Array, "B T"] | None = None,
    *,
    key: Key[Array, ""],
    numbers: UInt32[Array, " B"],
    count: int,
    sampling: Sampling,
    ranking: Ranking,
    max_length: int,
) -> Hypotheses:
    """``count`` translations of each sentence, drawn independently of each other, in no order.

    What is drawn depends on the key, the sentence's own number and the sentence. Log-probabilities are the model's,
    whatever the temperature and the cuts. Other arguments are those of ``beam_search``.
    """
    keys = jax.vmap(partial(jax.random.fold_in, key))(numbers)

    def choose_next(logits: Array, forced: Array | None, position: Array) -> Next:
        return draw(logits, forced, jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, position), sampling)

    sources = source_tokens, source_segments, limits, prefixes
    return _one_by_one(choose_next, models, *sources, beams=count, ranking=ranking, max_length=max_length)


def draw(
    logits: Float[Array, "B K V"], forced: Int[Array, " B"] | None, keys: Key[Array, " B"], sampling: Sampling
) -> Next:
    """A token for every hypothesis, and its log-probability under the model."""
    tokens = jnp.arange(logits.shape[2]).reshape(1, 1, -1)
    weights = jnp.where(allowed(tokens, forced), logits / sampling.temperature, -jnp.inf)
    if sampling.top_k:
        least = jax.lax.top_k(weights, min(sampling.top_k, weights.shape[-1]))[0][..., -1:]
        weights = jnp.where(weights >= least, weights, -jnp.inf)
    if sampling.top_p < 1:
        weights = jnp.where(in_nucleus(weights, sampling.top_p), weights, -jnp.inf)
    drawn = jax.vmap(jax.random.categorical)(keys, weights)
    return jnp.take_along_axis(logits, drawn[..., None], axis=-1)[..., 0] - log_normalizers(logits), drawn


def in_nucleus(weights: Float[Array, "*rows V"], top_p: float) -> Bool[Array, "*rows V"]:
    """The fewest tokens, likeliest first, whose probabilities reach ``top_p`` together; ties all belong to it."""
    probabilities = jax.nn.softmax(weights)
    descending = jnp.sort(probabilities, axis=-1, descending=True)
    before = jnp.cumsum(descending, axis=-1) - descending
    least = jnp.min(descending, axis=-1, keepdims=True, where=before < top_p, initial=1.0)
    return probabilities >= least


class Walk(NamedTuple):
    """Where hypotheses stand that go on by themselves."""

    position: Int[Array, ""]
    found: Hypotheses
    covered: Float[Array, "B K S"]
    done: Bool[Array, "B K"]
    caches: Caches


def _one_by_one(
    choose_next: ChooseNext,
    models: Models,
    source_tokens: Int[Array, "B S"],
    source_segments: Int[Array, "B S"],
    limits: Int[Array, " B"],
    prefixes: Int[Array, "B T"] | None,
    *,
    beams: int,
    ranking: Ranking,
    max_length: int,
) -> Hypotheses:
    """``beams`` hypotheses of each sentence, none of which depends on another."""
    batch, shape = len(limits), (len(limits), beams)
    limits = limits_of_sources(limits, source_segments)[:, None]

    def extend(walk: Walk) -> Walk:
        position, found, done = walk.position, walk.found, walk.done
        logits, seen, caches = step(models, last_tokens(found.tokens, position), position, walk.caches)
        log_probs, tokens = choose_next(logits, forced_at(prefixes, position), position)
        tokens = jnp.where(done, PAD, tokens)
        found = found._replace(
            tokens=found.tokens.at[:, :, position].set(tokens),
            lengths=found.lengths + ~done,
            log_probs=found.log_probs + jnp.where(done, 0, log_probs),
            ended=found.ended | (tokens == EOS),
        )
        covered = walk.covered + jnp.where(done[..., None], 0, seen) if ranking.coverage_penalty else walk.covered
        return Walk(position + 1, found, covered, found.ended | (position + 1 >= limits), caches)

    begun = no_hypotheses(batch, beams, max_length)._replace(log_probs=jnp.zeros(shape))
    covered = jnp.zeros((*shape, source_tokens.shape[1]))
    caches = start(models, source_tokens, source_segments, beams, max_length)
    walk = Walk(jnp.int32(0), begun, covered, jnp.broadcast_to(limits == 0, shape), caches)
    walk = jax.lax.while_loop(lambda walk: ~walk.done.all(), extend, walk)
    found = walk.found
    scores = ranking.scores(found.log_probs, jnp.maximum(found.lengths, 1), walk.covered, source_segments)
    nothing = no_hypotheses(batch, beams, max_length)
    return choose(found.lengths > 0, found._replace(scores=scores), nothing)
