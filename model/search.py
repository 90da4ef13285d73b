"""Greedy and beam search: from encoded sources to the best target tokens, one position at a time.

B sentence · K beam · C candidate · T target position · S source position · V vocabulary
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from model.cache import Cache, reorder
from model.transformer import Transformer

# The tokenizer's special ids. model/ does not import data/; a test holds the two together.
PAD, UNK, BOS, EOS = 0, 1, 2, 3


class Hypotheses(NamedTuple):
    """The translation found for each sentence: its tokens, then PAD.

    A translation that ended has EOS as its last token, counted in ``lengths``. One that met its length limit
    first has no EOS and stands whole. A row without a source has length 0.
    """

    tokens: Int[Array, "B T"]
    lengths: Int[Array, " B"]
    scores: Float[Array, " B"]
    ended: Bool[Array, " B"]


def greedy(
    model: Transformer,
    source_tokens: Int[Array, "B S"],
    source_segments: Int[Array, "B S"],
    limits: Int[Array, " B"],
    *,
    max_length: int,
) -> Hypotheses:
    """The likeliest next token, again and again, until EOS or the sentence's limit of tokens (EOS counted).

    Scores are log-probabilities. No limit may exceed ``max_length``, the static room for tokens.
    """
    limits = _limits_of_sources(limits, source_segments)

    def step(state: tuple[Array, Hypotheses, Array, Cache]) -> tuple[Array, Hypotheses, Array, Cache]:
        position, found, done, cache = state
        previous = jnp.where(position == 0, BOS, found.tokens[:, position - 1])
        logits, cache = model.decode_step(previous[:, None], position, cache)
        log_probs, tokens = likeliest_tokens(logits, 1)
        token = jnp.where(done, PAD, tokens[:, 0, 0])
        found = Hypotheses(
            found.tokens.at[:, position].set(token),
            found.lengths + ~done,
            found.scores + jnp.where(done, 0, log_probs[:, 0, 0]),
            found.ended | (token == EOS),
        )
        return position + 1, found, found.ended | (position + 1 >= limits), cache

    cache = _start(model, source_tokens, source_segments, 1, max_length)
    state = jnp.int32(0), _nothing(len(limits), max_length, score=0.0), limits == 0, cache
    return jax.lax.while_loop(lambda state: ~state[2].all(), step, state)[1]


class Beams(NamedTuple):
    """Where a beam search stands: K live hypotheses per sentence, likeliest first, and the best that has ended."""

    position: Int[Array, ""]  # tokens in each live hypothesis
    tokens: Int[Array, "B K T"]
    log_probs: Float[Array, "B K"]  # -inf: no hypothesis
    best: Hypotheses
    done: Bool[Array, " B"]
    cache: Cache


def beam_search(
    model: Transformer,
    source_tokens: Int[Array, "B S"],
    source_segments: Int[Array, "B S"],
    limits: Int[Array, " B"],
    *,
    beam_size: int,
    length_penalty: float,
    max_length: int,
) -> Hypotheses:
    """The best-scored translation that a beam of ``beam_size`` finds for each sentence.

    A score is log P(Y) / ((5 + |Y|) / 6)^length_penalty, EOS counted in |Y| (Wu et al. 2016, equation 14 without
    coverage). At each step a hypothesis that takes EOS ends if it is among the K likeliest of all continuations;
    the K likeliest without EOS live on.

    The search for a sentence is over when no live hypothesis can beat the best ended one: log-probabilities are
    negative and only fall, and no penalty exceeds that of the limit, so the likeliest live log-probability over
    that penalty bounds everything still to come. Stopping there cannot change what is returned. A sentence that
    meets its limit (see ``greedy``) with nothing ended gets its likeliest live hypothesis.
    """
    limits = _limits_of_sources(limits, source_segments)

    def penalty(lengths: Array) -> Array:
        return ((5 + lengths) / 6) ** length_penalty

    def step(beams: Beams) -> Beams:
        length = beams.position + 1
        candidates, log_probs, parents, cache = _extend(model, beams)
        ends = candidates[:, :, beams.position] == EOS

        ended = jnp.where(ends & (jnp.arange(2 * beam_size) < beam_size), log_probs / penalty(length), -jnp.inf)
        winner = jnp.argmax(ended, axis=1)
        newly = Hypotheses(_pick(candidates, winner), jnp.full_like(limits, length), _pick(ended, winner), ends.any(1))
        best = _where(~beams.done & (newly.scores > beams.best.scores), newly, beams.best)

        live, order = jax.lax.top_k(jnp.where(ends, -jnp.inf, log_probs), beam_size)
        tokens = _pick(candidates, order)
        at_limit = length >= limits
        whole = Hypotheses(tokens[:, 0], newly.lengths, live[:, 0] / penalty(length), best.ended)
        best = _where(~beams.done & at_limit & ~best.ended, whole, best)

        done = beams.done | at_limit | (live[:, 0] / penalty(limits) <= best.scores)
        return Beams(length, tokens, live, best, done, reorder(cache, _pick(parents, order)))

    start = Beams(
        position=jnp.int32(0),
        tokens=jnp.full((len(limits), beam_size, max_length), PAD, jnp.int32),
        log_probs=jnp.full((len(limits), beam_size), -jnp.inf).at[:, 0].set(0),  # one beam: the rest would repeat it
        best=_nothing(len(limits), max_length, score=-jnp.inf),
        done=limits == 0,
        cache=_start(model, source_tokens, source_segments, beam_size, max_length),
    )
    return jax.lax.while_loop(lambda beams: ~beams.done.all(), step, start).best


def _extend(model: Transformer, beams: Beams) -> tuple[Array, Array, Array, Cache]:
    """The 2K likeliest continuations of a sentence's beams, best first: at most K take EOS, so K can live on.

    Returns their tokens "B 2K T", their log-probabilities and the beams that they extend "B 2K", and the cache.
    """
    batch, beam_size, _ = beams.tokens.shape
    previous = jnp.where(beams.position == 0, BOS, beams.tokens[:, :, beams.position - 1])
    logits, cache = model.decode_step(previous, beams.position, beams.cache)
    log_probs, tokens = likeliest_tokens(logits, min(2 * beam_size, logits.shape[-1]))
    totals = (beams.log_probs[:, :, None] + log_probs).reshape(batch, -1)
    totals, picks = jax.lax.top_k(totals, 2 * beam_size)
    parents = picks // tokens.shape[-1]
    last = _pick(tokens.reshape(batch, -1), picks)
    return _pick(beams.tokens, parents).at[:, :, beams.position].set(last), totals, parents, cache


def likeliest_tokens(logits: Float[Array, "B K V"], count: int) -> tuple[Float[Array, "B K C"], Int[Array, "B K C"]]:
    """Log-probabilities and ids of the ``count`` likeliest next tokens, best first. PAD, UNK and BOS get -inf.

    The best of V tokens lie in the stretches of the vocabulary with the highest maxima, so only those are sorted:
    on a CPU, sorting or even arg-maximizing the whole costs several times as much as the softmax.
    """
    allowed = jnp.where(jnp.arange(logits.shape[-1]) < EOS, -jnp.inf, logits)
    stretches = allowed.reshape(*logits.shape[:2], -1, math.gcd(64, logits.shape[-1]))
    _, highest = jax.lax.top_k(stretches.max(axis=-1), min(count, stretches.shape[2]))
    highest = jnp.sort(highest, axis=-1)  # ids ascend again, so that equal logits keep the order of their ids
    chosen = jnp.take_along_axis(stretches, highest[..., None], axis=2)
    best, picks = jax.lax.top_k(chosen.reshape(*logits.shape[:2], -1), count)
    width = stretches.shape[-1]
    tokens = jnp.take_along_axis(highest, picks // width, axis=-1) * width + picks % width
    return best - jax.nn.logsumexp(logits, axis=-1, keepdims=True), tokens


def _pick(rows: Array, indices: Int[Array, "B *chosen"]) -> Array:
    """Each sentence's own choice among its rows."""
    return jax.vmap(jnp.take, in_axes=(0, 0, None))(rows, indices, 0)


def _where(which: Bool[Array, " B"], new: Hypotheses, old: Hypotheses) -> Hypotheses:
    chosen: Hypotheses = jax.tree.map(jax.vmap(jnp.where, in_axes=(0, 0, 0)), Hypotheses(*[which] * 4), new, old)
    return chosen


def _limits_of_sources(limits: Int[Array, " B"], source_segments: Int[Array, "B S"]) -> Int[Array, " B"]:
    """No tokens for rows without a source: they are done before the first step and hold nobody up."""
    return jnp.where((source_segments != 0).any(axis=1), limits, 0)


def _nothing(batch: int, max_length: int, score: float) -> Hypotheses:
    tokens = jnp.full((batch, max_length), PAD, jnp.int32)
    return Hypotheses(tokens, jnp.zeros(batch, jnp.int32), jnp.full(batch, score), jnp.zeros(batch, bool))


def _start(model: Transformer, source_tokens: Array, source_segments: Array, beams: int, max_length: int) -> Cache:
    positions = jnp.broadcast_to(jnp.arange(source_tokens.shape[1]), source_tokens.shape)
    encoded = model.encode(source_tokens, source_segments, positions)
    return model.start_cache(encoded, source_segments, beams=beams, max_length=max_length)
