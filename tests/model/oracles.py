"""Models whose next tokens are looked up in a table, and searches written again without batches, caches or stopping."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from common.special_tokens import BOS, EOS, PAD, UNK
from model.cache import EncodedSource, LayerCache
from model.config import ModelConfig
from model.decoding.forced import decoder_inputs
from model.decoding.hypotheses import Hypotheses
from model.layers import KeysValues
from model.transformer import Tokens, Transformer, build
from tests.drawn import drawn_params

VOCABULARY = 12


class TableModel(Transformer):
    """Next-token logits looked up by a hash of the source's first token and of every token so far.

    They spread widely: a hypothesis may go on for long at next to no cost, and so overtake one that ended before.
    The cache keeps each beam's tokens where a Transformer keeps keys, so a wrong branching shows at once. A step sees
    the source token whose place is the token's id, modulo the source's length.
    """

    def __init__(self, vocabulary: int = VOCABULARY, seed: int = 0, eos_logit: float | None = None):
        self.table: Any = np.random.default_rng(seed).normal(size=(97, vocabulary)).astype(np.float32) * 5
        if eos_logit is not None:
            self.table[:, EOS] = eos_logit
        self.steps: list[int] = []

    def encode_for_search(self, source):
        keys = source.ids[:, None, None, :].astype(jnp.float32)
        return EncodedSource((LayerCache(keys, keys.swapaxes(2, 3)),), source.segments)

    def decode_step(self, tokens, positions, cache):
        jax.debug.callback(lambda steps: self.steps.append(int(steps.max())), positions)
        past = cache.past[0].write(KeysValues(*[tokens[:, None, :, None].astype(jnp.float32)] * 2), positions)
        beams, room = cache.ancestors.shape[1:]
        by_position = past.values.reshape(len(tokens), room, beams)
        own = jnp.take_along_axis(by_position, cache.ancestors.swapaxes(1, 2), axis=2)
        weights = jnp.where(jnp.arange(room) <= positions[:, None], jnp.arange(1, room + 1), 0)
        state = jnp.einsum("BTK,BT->BK", own, weights) + 31 * cache.source.layers[0].keys[:, 0, :, 0]
        width = cache.source.segments.shape[1]
        seen = jax.nn.one_hot(tokens % width, width)
        return jnp.asarray(self.table)[state.astype(jnp.int32) % 97], seen, cache._replace(past=(past,))

    def next_log_probs(self, source: int, history: tuple[int, ...]) -> np.ndarray:
        state = sum(token * (i + 1) for i, token in enumerate((BOS, *history))) + 31 * source
        return np.asarray(jax.nn.log_softmax(self.table[state % 97]))


@dataclass(frozen=True)
class PlainRanking:
    """Scores in plain Python; ``seen(history)`` is how much of each source token the steps of a history have seen."""

    normalization: str = "gnmt"
    alpha: float = 1.0
    beta: float = 0.0
    seen: Callable[[tuple[int, ...]], list[float]] = field(default=lambda history: [])

    def score(self, total: float, history: tuple[int, ...]) -> float:
        divisor = (5 + len(history)) / 6 if self.normalization == "gnmt" else len(history)
        coverage = self.beta * sum(np.log(min(seen, 1.0)) for seen in self.seen(history)) if self.beta else 0.0
        return total / divisor**self.alpha + coverage


Found = tuple[float, tuple[int, ...]]


def plain_beam(
    next_log_probs: Callable[[tuple[int, ...]], np.ndarray],
    limit: int,
    beam_size: int,
    ranking: PlainRanking,
    nbest: int = 1,
    prefix: tuple[int, ...] = (),
) -> list[Found]:
    """The search without batches, caches, or any stopping before the limit: scores and tokens, best first."""
    live: list[Found] = [(0.0, ())]
    ended = []
    for length in range(1, limit + 1):
        allowed = {prefix[length - 1]} if length <= len(prefix) else None
        candidates = sorted(
            (
                (total + log_prob, (*history, token))
                for total, history in live
                for token, log_prob in enumerate(next_log_probs(history).tolist())
                if (token in allowed if allowed else token not in (PAD, UNK, BOS))
            ),
            reverse=True,
        )
        ended += [(ranking.score(total, h), h) for total, h in candidates[:beam_size] if h[-1] == EOS]
        live = [(total, h) for total, h in candidates if h[-1] != EOS][:beam_size]
    cut = [(ranking.score(total, history), history) for total, history in live]
    return [*sorted(ended, reverse=True), *cut][:nbest]


def forced(*tokens: int) -> np.ndarray:
    """The table of a spelling that these tokens alone begin: the state after each state and token."""
    table = np.full((len(tokens) + 1, VOCABULARY), -1)
    table[np.arange(len(tokens)), list(tokens)] = np.arange(len(tokens)) + 1
    table[-1, EOS:] = len(tokens)
    return table


@cache
def drawn_transformer(**changes: Any) -> Transformer:
    """A Transformer of one layer with random parameters."""
    shape: dict[str, Any] = {"d_model": 32, "num_heads": 2, "head_dim": 16, "d_ff": 64, "dropout": 0.0}
    config = ModelConfig(**(shape | {"encoder_layers": 1, "decoder_layers": 1} | changes))
    return nnx.merge(build(config, VOCABULARY), drawn_params(config, VOCABULARY))


@cache
def trained_transformer(seed: int = 0, **changes: Any) -> Transformer:
    """One that has learnt to turn sentences around, or not to, and to leave words out.

    There are several good translations of everything, of different lengths, so that searches find different ones.
    """
    graphdef, params = nnx.split(drawn_transformer(**changes))
    optimizer = optax.adam(1e-2)

    @jax.jit
    def train(params, key):
        def loss(params, key):
            source, target = examples(key)
            model = nnx.merge(graphdef, params)
            log_probs = jax.nn.log_softmax(model.logits(model(Tokens.one_per_row(source), decoder_inputs(target))))
            picked = jnp.take_along_axis(log_probs, target[..., None], axis=-1)[..., 0]
            return -jnp.where(target == PAD, 0, picked).sum() / (target != PAD).sum()

        def update(carry, key):
            params, state = carry
            updates, state = optimizer.update(jax.grad(loss)(params, key), state)
            return (optax.apply_updates(params, updates), state), None

        return jax.lax.scan(update, (params, optimizer.init(params)), jax.random.split(key, 300))[0][0]

    return nnx.merge(graphdef, train(params, jax.random.key(seed)))


@partial(jax.jit, static_argnums=1)
def examples(key: jax.Array, batch: int = 64) -> tuple[jax.Array, jax.Array]:
    """Sources of two to five tokens with EOS, and translations of up to as many."""
    keys = jax.random.split(key, 4)
    words = jax.random.randint(keys[0], (batch, 4), EOS + 1, VOCABULARY)
    words = jnp.where(jnp.arange(4) < jax.random.randint(keys[1], (batch, 1), 1, 5), words, PAD)
    turned = jnp.where(jax.random.bernoulli(keys[2], 0.6, (batch, 1)), words[:, ::-1], words)
    return ended(words), ended(jnp.where(jax.random.bernoulli(keys[3], 0.85, words.shape), turned, PAD))


def ended(words: jax.Array) -> jax.Array:
    """The words that are not PAD, in their order, then EOS, then PAD."""
    order = jnp.argsort(words == PAD, axis=1, stable=True)
    words = jnp.pad(jnp.take_along_axis(words, order, axis=1), ((0, 0), (0, 1)))
    return jnp.where(jnp.arange(words.shape[1]) == (words != PAD).sum(axis=1, keepdims=True), EOS, words)


def sources(batch: int, length: int = 3) -> Tokens:
    """A batch of sentences whose first tokens differ as far as the vocabulary goes."""
    tokens = np.random.default_rng(1).integers(EOS + 1, VOCABULARY, (batch, length)).astype(np.int32)
    tokens[:, 0] = np.arange(batch) % (VOCABULARY - EOS - 1) + EOS + 1
    return Tokens.one_per_row(jnp.asarray(tokens))


def found(hypotheses: Hypotheses, row: int, place: int = 0) -> tuple[int, ...]:
    """The tokens of a hypothesis, after which there must be nothing."""
    length = int(hypotheses.lengths[row, place])
    assert (hypotheses.tokens[row, place, length:] == PAD).all()
    return tuple(hypotheses.tokens[row, place, :length].tolist())
