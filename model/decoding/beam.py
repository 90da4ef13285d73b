"""Beam search: from sources to the best-scored translations, one position at a time."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from common.special_tokens import EOS, PAD
from model.cache import branch
from model.decoding.ensemble import Caches, Models, decode_step, start_caches
from model.decoding.hypotheses import Hypotheses, Sources, gather, no_hypotheses, select
from model.decoding.next_token import Candidates, Spelling, likeliest
from model.decoding.settings import Ranking, SearchSettings


class Beams(NamedTuple):
    """The state of a beam search: K live hypotheses per sentence, likeliest first, and the J best that have ended."""

    position: Int[Array, ""]  # tokens in each live hypothesis
    tokens: Int[Array, "B K T"]
    log_probs: Float[Array, "B K"]  # -inf: no hypothesis
    covered: Float[Array, "B K S"]  # attention to each source token so far, if the ranking needs it
    best: Hypotheses
    done: Bool[Array, " B"]
    spelling: Spelling | None
    caches: Caches


def beam_search(models: Models, sources: Sources, settings: SearchSettings) -> Hypotheses:
    """The ``settings.count`` best-scored translations in a beam of ``settings.beam_size``, best first.

    In each step, a hypothesis that takes EOS ends if it is among the K likeliest of all continuations; the K likeliest
    without EOS live on. No limit may exceed ``settings.max_length``.

    The search for a sentence stops when no live hypothesis can get among its J best. Log-probabilities only fall, no
    divisor exceeds that of the limit, and coverage adds nothing, so the likeliest live log-probability over that
    divisor bounds all scores to come, and stopping does not change the result. A sentence that reaches its limit with
    fewer than J ended hypotheses gets its likeliest live ones after them.
    """
    beam_size, max_length, ranking = settings.beam_size, settings.max_length, settings.ranking
    limits, segments = sources.row_limits(), sources.tokens.segments

    def extend(beams: Beams) -> Beams:
        length, (tokens, found, covered, caches) = beams.position + 1, _extend(models, beams, sources, ranking)
        ends = found.tokens == EOS
        scores = ranking.scores(found.log_probs, jnp.full_like(found.tokens, length), covered, segments)
        candidates = Hypotheses(tokens, jnp.full_like(found.tokens, length), found.log_probs, scores, ends)

        newly_ended = _only(candidates, ends & (jnp.arange(ends.shape[1]) < beam_size))
        best = _best_of(beams.best, newly_ended)
        likely, order = jax.lax.top_k(jnp.where(ends, -jnp.inf, found.log_probs), beam_size)
        live = gather(candidates, order)._replace(log_probs=likely)
        at_limit = length >= limits
        best = select(at_limit, _fill(best, _only(live, likely > -jnp.inf)), best)
        best = select(beams.done, beams.best, best)

        done = beams.done | at_limit | (likely[:, 0] / ranking.divisor(limits) <= best.scores[:, -1])
        parents = gather(found.parents, order)
        spelling = beams.spelling and beams.spelling.of(parents).after(gather(found.tokens, order))
        caches = tuple(branch(cache, parents, beams.position) for cache in caches)
        return Beams(length, live.tokens, likely, gather(covered, order), best, done, spelling, caches)

    batch = limits.shape[0]
    first = Beams(
        position=jnp.int32(0),
        tokens=jnp.full((batch, beam_size, max_length), PAD, jnp.int32),
        log_probs=jnp.full((batch, beam_size), -jnp.inf).at[:, 0].set(0),  # one hypothesis: the others would repeat it
        covered=jnp.zeros((batch, beam_size, segments.shape[1])),
        best=no_hypotheses(batch, settings.count, max_length),
        done=limits == 0,
        spelling=sources.start_spelling(beam_size),
        caches=start_caches(models, sources.tokens, beam_size, max_length),
    )
    return jax.lax.while_loop(lambda beams: ~beams.done.all(), extend, first).best


def _extend(
    models: Models, beams: Beams, sources: Sources, ranking: Ranking
) -> tuple[Int[Array, "B C T"], Candidates, Float[Array, "B C S"], Caches]:
    """The 2K likeliest continuations: at most K of them take EOS, so K can live on.

    Returns their tokens, the candidates, their attention to the source so far, and the caches.
    """
    position = beams.position
    logits, seen, caches = decode_step(models, beams.tokens, position, beams.caches)
    found = likeliest(beams.log_probs, logits, beams.spelling, 2 * beams.tokens.shape[1])
    covered = beams.covered + seen if ranking.coverage_penalty else beams.covered
    tokens = gather(beams.tokens, found.parents).at[:, :, position].set(found.tokens)
    return tokens, found, gather(covered, found.parents), caches


def _only(hypotheses: Hypotheses, condition: Bool[Array, "B C"]) -> Hypotheses:
    """The hypotheses for which the condition holds, and empty ones in the other places."""
    return select(condition, hypotheses, no_hypotheses(*hypotheses.tokens.shape))


def _best_of(old: Hypotheses, new: Hypotheses) -> Hypotheses:
    """The J best of both; of equal scores, the earlier ones."""
    both = Hypotheses(*(jnp.concatenate(pair, axis=1) for pair in zip(old, new, strict=True)))
    _, places = jax.lax.top_k(both.scores, old.scores.shape[1])
    return gather(both, places)


def _fill(best: Hypotheses, live: Hypotheses) -> Hypotheses:
    """``best``, with the first live hypotheses in its empty places."""
    places, last = jnp.arange(best.scores.shape[1]) - best.ended.sum(axis=1, keepdims=True), live.scores.shape[1] - 1
    return select((places < 0) | (places > last), best, gather(live, jnp.clip(places, 0, last)))
