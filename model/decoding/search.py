"""The loop of every search: all rows take a step together, and finished sentences make room for waiting ones.

A sentence's translation depends neither on its row nor on the contents of the other rows.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from common.special_tokens import BOS
from model.cache import Cache, EncodedSource, branch
from model.decoding.beam import BeamSearch
from model.decoding.ensemble import Caches, Models, decode_step
from model.decoding.hypotheses import Hypotheses, Sources, no_hypotheses, rows_of, select
from model.decoding.sampling import Independent
from model.transformer import Tokens

Method = BeamSearch | Independent
State = Any  # a method's state: the hypotheses of the sentences in the rows


class Rows(NamedTuple):
    """The sentences in B rows, and the results of the N sentences."""

    begun: Int[Array, ""]  # how many sentences have been given a row
    sentences: Int[Array, " B"]  # the number of each row's sentence; N if the row is empty
    state: State
    caches: Caches
    results: Hypotheses


def search(method: Method, models: Models, sources: Sources, rows: int = 0) -> Hypotheses:
    """Search N sentences, ``rows`` of them at once (0: all). No limit may exceed ``settings.max_length``.

    When an eighth of the rows is done, the next sentences take their places; when none are left, rows stay empty.
    """
    total = len(sources.limits)
    rows = rows or total
    numbers = jnp.arange(1, total + 1)
    count = jnp.where(sources.row_limits() > 0, numbers, 0).max()  # the rest are empty
    encoded = encode(models, sources.tokens, count, rows)

    def take_turn(now: Rows) -> Rows:
        now = refill(now)
        own, refilled_at = sources.of(now.sentences), jnp.where(now.begun < count, -(-rows // 8), rows)
        state, caches = jax.lax.while_loop(
            lambda running: running[0].done.sum() < refilled_at,
            partial(take_step, method, models, own),
            (now.state, now.caches),
        )
        done = jnp.where(state.done, now.sentences, total)
        put = partial(jax.tree.map, lambda results, found: results.at[done].set(found, mode="drop"))
        return now._replace(state=state, caches=caches, results=put(now.results, method.finish(state, own)))

    def refill(now: Rows) -> Rows:
        """Give the next sentences to the rows that are done; the other rows continue."""
        is_free = now.state.done
        following = now.begun + jnp.cumsum(is_free) - 1
        sentences = jnp.where(is_free, jnp.where(following < count, following, total), now.sentences)
        state = select(is_free, method.start(sources.of(sentences)), now.state)
        kept = zip(now.caches, encoded, strict=True)
        caches = tuple(cache._replace(source=rows_of(source, sentences)) for cache, source in kept)
        return now._replace(begun=now.begun + is_free.sum(), sentences=sentences, state=state, caches=caches)

    nobody, room = jnp.full(rows, total), method.settings.max_length
    first = Rows(
        begun=jnp.int32(0),
        sentences=nobody,
        state=method.start(sources.of(nobody)),  # done
        caches=tuple(Cache.empty(rows_of(source, nobody), method.beams, room) for source in encoded),
        results=no_hypotheses(total, method.settings.count, room),
    )
    return jax.lax.while_loop(lambda now: (now.begun < count) | ~now.state.done.all(), take_turn, first).results


def take_step(method: Method, models: Models, sources: Sources, running: tuple[State, Caches]) -> tuple[State, Caches]:
    """Every hypothesis reads its newest token, or BOS, and gets its next token."""
    state, caches = running
    places = jnp.maximum(state.positions - 1, 0)[:, None, None]
    newest = jnp.take_along_axis(state.tokens, places, axis=2)[:, :, 0]
    ids = jnp.where(state.positions[:, None] == 0, BOS, newest)
    logits, seen, caches = decode_step(models, ids, state.positions, caches)
    new, parents = method.extend(state, logits, seen, sources)
    if parents is not None:
        caches = tuple(branch(cache, parents, state.positions) for cache in caches)
    return new, caches


def encode(models: Models, sources: Tokens, count: Int[Array, ""], rows: int) -> tuple[EncodedSource, ...]:
    """Encode the first ``count`` sources with every model, ``rows`` at a time; the others are zeros."""

    def encode_from(start: Int[Array, ""] | int) -> tuple[EncodedSource, ...]:
        some = jax.tree.map(lambda array: jax.lax.dynamic_slice_in_dim(array, start, rows), sources)
        return tuple(model.encode_for_search(some) for model in models)

    def put(number: Int[Array, ""], encoded: tuple[EncodedSource, ...]) -> tuple[EncodedSource, ...]:
        start = number * rows
        update = partial(jax.lax.dynamic_update_slice_in_dim, start_index=start, axis=0)
        return jax.tree.map(update, encoded, encode_from(start))

    shapes = jax.eval_shape(encode_from, 0)
    empty = jax.tree.map(lambda each: jnp.zeros((len(sources.ids), *each.shape[1:]), each.dtype), shapes)
    return jax.lax.fori_loop(0, -(-count // rows), put, empty)
