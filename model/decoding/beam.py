"""Beam search: from encoded sources to the best target tokens, one position at a time.

B sentence · K beam · N hypothesis returned · C candidate · T target position · S source position · V vocabulary
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from common.special_tokens import EOS, PAD
from model.decoding.ensemble import Caches, Models, branch_all, start, step
from model.decoding.hypotheses import Hypotheses, choose, forced_at, last_tokens, limits_of_sources, no_hypotheses, pick
from model.decoding.next_token import Candidates, likeliest
from model.decoding.ranking import Ranking


class Beams(NamedTuple):
    """Where a beam search stands: K live hypotheses per sentence, likeliest first, and the N best that have ended."""

    position: Int[Array, ""]  # tokens in each live hypothesis
    tokens: Int[Array, "B K T"]
    log_probs: Float[Array, "B K"]  # -inf: no hypothesis
    covered: Float[Array, "B K S"]  # how much of each source token has been seen, if the ranking asks
    best: Hypotheses
    done: Bool[Array, " B"]
    caches: Caches


def beam_search(
    models: Models,
    source_tokens: Int[Array, "B S"],
    source_segments: Int[Array, "B S"],
    limits: Int[Array, " B"],
    prefixes: Int[Array, "B T"] | None = None,
    *,
    beam_size: int,
    nbest: int,
    ranking: Ranking,
    max_length: int,
) -> Hypotheses:
    """The ``nbest`` best-scored translations that a beam of ``beam_size`` finds for each sentence, best first.

    At each step a hypothesis that takes EOS ends if it is among the K likeliest of all continuations; the K likeliest
    without EOS live on. ``prefixes`` are tokens with which translations begin, then PAD. No limit of tokens (EOS
    counted) exceeds ``max_length``, the static room for them, and ``nbest`` does not exceed ``beam_size``.

    The search for a sentence is over when no live hypothesis can come among its N best: log-probabilities are negative
    and only fall, no divisor exceeds that of the limit, and coverage never adds, so the likeliest live log-probability
    over that divisor bounds everything still to come. Stopping there cannot change what is returned. A sentence that
    meets its limit with fewer than N ended gets its likeliest live hypotheses after them.
    """
    limits = limits_of_sources(limits, source_segments)

    def extend(beams: Beams) -> Beams:
        length, (tokens, found, covered, caches) = beams.position + 1, _extend(models, beams, prefixes, ranking)
        ends = found.tokens == EOS
        scores = ranking.scores(found.log_probs, jnp.full_like(found.tokens, length), covered, source_segments)
        every = Hypotheses(tokens, jnp.full_like(found.tokens, length), found.log_probs, scores, ends)

        newly = _keep(every, ends & (jnp.arange(ends.shape[1]) < beam_size))
        best = _best_of(beams.best, newly)
        likely, order = jax.lax.top_k(jnp.where(ends, -jnp.inf, found.log_probs), beam_size)
        live = pick(every, order)._replace(log_probs=likely)
        at_limit = length >= limits
        best = choose(at_limit, _fill(best, _keep(live, likely > -jnp.inf)), best)
        best = choose(beams.done, beams.best, best)

        done = beams.done | at_limit | (likely[:, 0] / ranking.divisor(limits) <= best.scores[:, -1])
        caches = branch_all(caches, pick(found.parents, order), beams.position)
        return Beams(length, live.tokens, likely, pick(covered, order), best, done, caches)

    batch = len(limits)
    first = Beams(
        position=jnp.int32(0),
        tokens=jnp.full((batch, beam_size, max_length), PAD, jnp.int32),
        log_probs=jnp.full((batch, beam_size), -jnp.inf).at[:, 0].set(0),  # one hypothesis: the rest would repeat it
        covered=jnp.zeros((batch, beam_size, source_tokens.shape[1])),
        best=no_hypotheses(batch, nbest, max_length),
        done=limits == 0,
        caches=start(models, source_tokens, source_segments, beam_size, max_length),
    )
    return jax.lax.while_loop(lambda beams: ~beams.done.all(), extend, first).best


def _extend(
    models: Models, beams: Beams, prefixes: Array | None, ranking: Ranking
) -> tuple[Int[Array, "B C T"], Candidates, Float[Array, "B C S"], Caches]:
    """The 2K likeliest continuations of a sentence's beams: at most K of them take EOS, so K can live on.

    Returns their tokens, what they extend, what they have seen of the source, and the caches.
    """
    position = beams.position
    logits, seen, caches = step(models, last_tokens(beams.tokens, position), position, beams.caches)
    found = likeliest(beams.log_probs, logits, forced_at(prefixes, position), 2 * beams.tokens.shape[1])
    covered = beams.covered + seen if ranking.coverage_penalty else beams.covered
    tokens = pick(beams.tokens, found.parents).at[:, :, position].set(found.tokens)
    return tokens, found, pick(covered, found.parents), caches


def _keep(hypotheses: Hypotheses, which: Bool[Array, "B C"]) -> Hypotheses:
    """No hypothesis where it is not one of these."""
    nothing = no_hypotheses(*hypotheses.tokens.shape)
    return choose(which, hypotheses, nothing)


def _best_of(old: Hypotheses, new: Hypotheses) -> Hypotheses:
    """As many as the old ones, the best of both; of equals, those that ended first."""
    both = Hypotheses(*(jnp.concatenate(pair, axis=1) for pair in zip(old, new, strict=True)))
    _, places = jax.lax.top_k(both.scores, old.scores.shape[1])
    return pick(both, places)


def _fill(best: Hypotheses, live: Hypotheses) -> Hypotheses:
    """The first live hypotheses in the places that none has that ended."""
    places = jnp.arange(best.scores.shape[1]) - best.ended.sum(axis=1, keepdims=True)
    return choose(places < 0, best, pick(live, jnp.maximum(places, 0)))
