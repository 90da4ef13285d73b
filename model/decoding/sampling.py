"""Greedy decoding and sampling: hypotheses that are extended independently of each other, one token at a time."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, UInt32

from common.special_tokens import EOS, PAD
from model.decoding.ensemble import Caches, Models, decode_step, start_caches
from model.decoding.hypotheses import Hypotheses, Sources, no_hypotheses, select
from model.decoding.next_token import Spelling, allowed, likeliest, log_normalizers
from model.decoding.settings import Sampling, SearchSettings

Next = tuple[Float[Array, "B K"], Int[Array, "B K"]]  # log-probabilities and tokens
ChooseNext = Callable[[Array, Spelling | None, Array], Next]  # of logits "B K V", the spelling, the position


def greedy(models: Models, sources: Sources, settings: SearchSettings) -> Hypotheses:
    """Take the likeliest next token until EOS or the sentence's limit: a beam of one at less cost.

    See ``beam_search`` for the arguments; beam size and count are ignored.
    """

    def choose_next(logits: Array, spelling: Spelling | None, position: Array) -> Next:
        found = likeliest(jnp.zeros(logits.shape[:2]), logits, spelling, 1)
        return found.log_probs, found.tokens

    return _extend_independently(choose_next, models, sources, settings, beams=1)


def sample(
    models: Models, sources: Sources, settings: SearchSettings, key: Key[Array, ""], numbers: UInt32[Array, " B"]
) -> Hypotheses:
    """``settings.count`` independent draws for each sentence, in no order.

    They depend on the key, the sentence's own number and the sentence alone. Log-probabilities are the model's,
    whatever the temperature and the truncation.
    """
    keys, sampling = jax.vmap(partial(jax.random.fold_in, key))(numbers), settings.sampling

    def choose_next(logits: Array, spelling: Spelling | None, position: Array) -> Next:
        return draw(logits, spelling, jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, position), sampling)

    return _extend_independently(choose_next, models, sources, settings, beams=settings.count)


def draw(logits: Float[Array, "B K V"], spelling: Spelling | None, keys: Key[Array, " B"], sampling: Sampling) -> Next:
    """A token for every hypothesis, and its log-probability under the model."""
    scaled = jnp.where(allowed(jnp.arange(logits.shape[2]), spelling), logits / sampling.temperature, -jnp.inf)
    if sampling.top_k:
        least = jax.lax.top_k(scaled, min(sampling.top_k, scaled.shape[-1]))[0][..., -1:]
        scaled = jnp.where(scaled >= least, scaled, -jnp.inf)
    if sampling.top_p < 1:
        scaled = jnp.where(in_nucleus(scaled, sampling.top_p), scaled, -jnp.inf)
    drawn = jax.vmap(jax.random.categorical)(keys, scaled)
    return jnp.take_along_axis(logits, drawn[..., None], axis=-1)[..., 0] - log_normalizers(logits), drawn


def in_nucleus(logits: Float[Array, "*rows V"], top_p: float) -> Bool[Array, "*rows V"]:
    """The fewest tokens, likeliest first, whose probabilities add up to ``top_p``; ties all belong to it."""
    probabilities = jax.nn.softmax(logits)
    descending = jnp.sort(probabilities, axis=-1, descending=True)
    before = jnp.cumsum(descending, axis=-1) - descending
    least = jnp.min(descending, axis=-1, keepdims=True, where=before < top_p, initial=1.0)
    return probabilities >= least


class Drawing(NamedTuple):
    """The state of hypotheses that are extended independently."""

    position: Int[Array, ""]
    found: Hypotheses
    covered: Float[Array, "B K S"]
    done: Bool[Array, "B K"]
    spelling: Spelling | None
    caches: Caches


def _extend_independently(
    choose_next: ChooseNext, models: Models, sources: Sources, settings: SearchSettings, beams: int
) -> Hypotheses:
    """``beams`` hypotheses of each sentence, none of which depends on another."""
    ranking, segments, limits = settings.ranking, sources.tokens.segments, sources.row_limits()[:, None]
    shape = limits.shape[0], beams

    def extend(state: Drawing) -> Drawing:
        position, found, done = state.position, state.found, state.done
        logits, seen, caches = decode_step(models, found.tokens, position, state.caches)
        log_probs, tokens = choose_next(logits, state.spelling, position)
        spelling = state.spelling and state.spelling.after(tokens)
        tokens = jnp.where(done, PAD, tokens)
        found = found._replace(
            tokens=found.tokens.at[:, :, position].set(tokens),
            lengths=found.lengths + ~done,
            log_probs=found.log_probs + jnp.where(done, 0, log_probs),
            ended=found.ended | (tokens == EOS),
        )
        covered = state.covered + jnp.where(done[..., None], 0, seen) if ranking.coverage_penalty else state.covered
        return Drawing(position + 1, found, covered, found.ended | (position + 1 >= limits), spelling, caches)

    nothing = no_hypotheses(*shape, settings.max_length)
    first = Drawing(
        position=jnp.int32(0),
        found=nothing._replace(log_probs=jnp.zeros(shape)),
        covered=jnp.zeros((*shape, segments.shape[1])),
        done=jnp.broadcast_to(limits == 0, shape),
        spelling=sources.start_spelling(beams),
        caches=start_caches(models, sources.tokens, beams, settings.max_length),
    )
    last = jax.lax.while_loop(lambda state: ~state.done.all(), extend, first)
    lengths = jnp.maximum(last.found.lengths, 1)
    scores = ranking.scores(last.found.log_probs, lengths, last.covered, segments)
    return select(last.found.lengths > 0, last.found._replace(scores=scores), nothing)
