"""Search against enumeration, against a plain-Python beam, and against itself in other company."""

import itertools
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from data import tokenizer
from model.cache import Cache
from model.config import ModelConfig
from model.search import BOS, EOS, PAD, UNK, beam_search, greedy, likeliest_tokens
from model.transformer import Transformer

VOCABULARY = 12


class TableModel(Transformer):
    """Next-token logits looked up by a hash of the source's first token and of every token so far.

    They spread widely: a hypothesis may go on for long at next to no cost, and so overtake one that ended before.
    The cache keeps each beam's tokens where a Transformer keeps keys, so a wrong reordering shows at once.
    """

    def __init__(self, vocabulary: int, seed: int = 0, eos_logit: float | None = None):
        self.table = np.random.default_rng(seed).normal(size=(97, vocabulary)).astype(np.float32) * 5
        if eos_logit is not None:
            self.table[:, EOS] = eos_logit
        self.steps: list[int] = []

    def encode(self, source_tokens, source_segments, source_positions, *, dropout_key=None):
        return source_tokens[:, :, None].astype(jnp.float32)

    def start_cache(self, encoded, source_segments, *, beams, max_length):
        past = jnp.zeros((encoded.shape[0], beams, 1, max_length, 1))
        return Cache((past,), (past,), (encoded[:, None],), (), source_segments)

    def decode_step(self, tokens, position, cache):
        jax.debug.callback(lambda step: self.steps.append(int(step)), position)
        past = cache.self_keys[0].at[:, :, 0, position, 0].set(tokens.astype(jnp.float32))
        weights = jnp.arange(1, past.shape[3] + 1)
        state = (past[:, :, 0, :, 0] * weights).sum(axis=-1) + 31 * cache.cross_keys[0][:, 0, :1, 0]
        return jnp.asarray(self.table)[state.astype(jnp.int32) % 97], cache._replace(self_keys=(past,))

    def next_log_probs(self, source: int, history: tuple[int, ...]) -> np.ndarray:
        state = sum(token * (i + 1) for i, token in enumerate((BOS, *history))) + 31 * source
        return np.asarray(jax.nn.log_softmax(self.table[state % 97]))


def sources(batch: int, length: int = 3):
    tokens = np.random.default_rng(1).integers(EOS + 1, VOCABULARY, (batch, length)).astype(np.int32)
    tokens[:, 0] = np.arange(batch) % (VOCABULARY - EOS - 1) + EOS + 1
    return jnp.asarray(tokens), jnp.ones((batch, length), jnp.int32)


def penalty(length: int, alpha: float) -> float:
    return ((5 + length) / 6) ** alpha


def found(hypotheses, row: int) -> tuple[int, ...]:
    length = int(hypotheses.lengths[row])
    assert (hypotheses.tokens[row, length:] == PAD).all()
    return tuple(hypotheses.tokens[row, :length].tolist())


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_a_wide_beam_finds_the_best_of_all_translations(alpha):
    model, vocabulary = TableModel(7), 7
    source_tokens, segments = sources(16)
    limits = jnp.arange(16) % 4 + 1
    search = partial(beam_search, beam_size=120, length_penalty=alpha, max_length=4)
    hypotheses = jax.jit(lambda: search(model, source_tokens, segments, limits))()
    for row, source in enumerate(source_tokens[:, 0].tolist()):
        best = max(every_translation(model, source, vocabulary, int(limits[row]), alpha))
        assert found(hypotheses, row) == best[1]
        np.testing.assert_allclose(hypotheses.scores[row], best[0], rtol=1e-5)
        assert hypotheses.ended[row]


def every_translation(model, source, vocabulary, limit, alpha):
    for length in range(limit):
        for words in itertools.product(range(EOS + 1, vocabulary), repeat=length):
            tokens = (*words, EOS)
            steps = [model.next_log_probs(source, tokens[:i])[token] for i, token in enumerate(tokens)]
            yield sum(steps) / penalty(length + 1, alpha), tokens


def plain_beam(next_log_probs, limit: int, beam_size: int, alpha: float):
    """The same search without batches, caches, or any stopping before the limit."""
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    ended = []
    for length in range(1, limit + 1):
        candidates = sorted(
            (
                (total + log_prob, (*history, token))
                for total, history in live
                for token, log_prob in enumerate(next_log_probs(history).tolist())
                if token not in (PAD, UNK, BOS)
            ),
            reverse=True,
        )
        ended += [(total / penalty(length, alpha), h) for total, h in candidates[:beam_size] if h[-1] == EOS]
        live = [(total, h) for total, h in candidates if h[-1] != EOS][:beam_size]
    return max(ended) if ended else (live[0][0] / penalty(limit, alpha), live[0][1])


@pytest.mark.parametrize(("beam_size", "alpha"), [(2, 0.0), (2, 1.0), (3, 0.6), (4, 2.0), (5, 1.0)])
def test_beam_search_agrees_with_a_plain_beam(beam_size, alpha):
    model = TableModel(VOCABULARY, seed=beam_size, eos_logit=5.0)
    source_tokens, segments = sources(32)
    limits = jnp.repeat(jnp.array([9, 7, 2, 1]), 8)
    search = partial(beam_search, beam_size=beam_size, length_penalty=alpha, max_length=9)
    hypotheses = jax.jit(lambda: search(model, source_tokens, segments, limits))()
    for row, source in enumerate(source_tokens[:, 0].tolist()):
        score, tokens = plain_beam(partial(model.next_log_probs, source), int(limits[row]), beam_size, alpha)
        assert found(hypotheses, row) == tokens
        np.testing.assert_allclose(hypotheses.scores[row], score, rtol=1e-5)
        assert hypotheses.ended[row] == (tokens[-1] == EOS)


@cache
def transformer() -> Transformer:
    """A small Transformer whose scores are spread enough for searches to differ."""
    config = ModelConfig(d_model=32, num_heads=2, head_dim=16, encoder_layers=1, decoder_layers=2, d_ff=64)
    model = Transformer(config, VOCABULARY, rngs=nnx.Rngs(0))
    model.embedding.table[...] = model.embedding.table[...] * 3
    return model


@jax.jit
def teacher_forced(source_tokens, segments, target_inputs):
    positions = [jnp.broadcast_to(jnp.arange(x.shape[1]), x.shape) for x in (source_tokens, target_inputs)]
    ones = jnp.ones_like(target_inputs)
    model = transformer()
    decoded = model(source_tokens, segments, positions[0], target_inputs, ones, positions[1])
    return jax.nn.log_softmax(model.logits(decoded))


@pytest.mark.parametrize("beam_size", [2, 5])
def test_a_transformers_cached_beam_agrees_with_teacher_forcing(beam_size):
    source_tokens, segments = sources(6, length=5)
    segments = segments.at[::2, 3:].set(0)  # padding at the end of every other source
    limit, alpha = 8, 0.6
    search = partial(beam_search, transformer(), beam_size=beam_size, length_penalty=alpha, max_length=limit)
    hypotheses = jax.jit(search)(source_tokens, segments, jnp.full(6, limit))
    for row in range(6):

        def next_log_probs(history, row=row):
            inputs = jnp.array([[BOS, *history] + [PAD] * (limit - 1 - len(history))])
            return np.asarray(teacher_forced(source_tokens[row : row + 1], segments[row : row + 1], inputs))[
                0, len(history)
            ]

        score, tokens = plain_beam(next_log_probs, limit, beam_size, alpha)
        assert found(hypotheses, row) == tokens
        np.testing.assert_allclose(hypotheses.scores[row], score, rtol=1e-4)


def test_a_beam_of_one_is_greedy():
    source_tokens, segments = sources(16, length=5)
    limits = jnp.full(16, 10)
    one = jax.jit(partial(beam_search, transformer(), beam_size=1, length_penalty=0.0, max_length=10))
    alone = jax.jit(partial(greedy, transformer(), max_length=10))
    for beam, likeliest in zip(
        one(source_tokens, segments, limits), alone(source_tokens, segments, limits), strict=True
    ):
        np.testing.assert_allclose(beam, likeliest, rtol=1e-5)


def test_greedy_takes_the_likeliest_token_until_eos():
    model = TableModel(VOCABULARY, eos_logit=5.0)
    source_tokens, segments = sources(8)
    hypotheses = jax.jit(lambda: greedy(model, source_tokens, segments, jnp.full(8, 6), max_length=6))()
    for row, source in enumerate(source_tokens[:, 0].tolist()):
        tokens: tuple[int, ...] = ()
        total = 0.0
        while len(tokens) < 6 and EOS not in tokens:
            log_probs = model.next_log_probs(source, tokens)
            token = EOS + int(log_probs[EOS:].argmax())
            tokens, total = (*tokens, token), total + float(log_probs[token])
        assert found(hypotheses, row) == tokens
        assert hypotheses.ended[row] == (EOS in tokens)
        np.testing.assert_allclose(hypotheses.scores[row], total, rtol=1e-5)


SEARCHES = {
    "greedy": partial(greedy, max_length=10),
    "beam": partial(beam_search, beam_size=3, length_penalty=1.0, max_length=10),
}


@pytest.mark.parametrize("kind", SEARCHES)
def test_company_changes_nothing(kind):
    """A sentence gets the same tokens and the same score, bit for bit, in every row and beside anything."""
    search = jax.jit(partial(SEARCHES[kind], transformer()))
    source_tokens, segments = sources(8, length=5)
    limits = jnp.arange(8) + 3
    together = search(source_tokens, segments, limits)
    order = jnp.array([5, 2, 7, 0, 1, 6, 3, 4])
    shuffled = search(source_tokens[order], segments[order], limits[order])
    real = (jnp.arange(8) == 2)[:, None]
    alone = search(jnp.where(real, source_tokens, PAD), jnp.where(real, segments, 0), limits)
    for one, other, single in zip(together, shuffled, alone, strict=True):
        np.testing.assert_array_equal(one[order], other)
        np.testing.assert_array_equal(one[2], single[2])


@pytest.mark.parametrize("kind", SEARCHES)
def test_rows_without_a_source_hold_nobody_up(kind):
    model = TableModel(VOCABULARY)
    source_tokens, segments = sources(3)
    segments = segments.at[1:].set(0)
    hypotheses = jax.jit(lambda: SEARCHES[kind](model, source_tokens, segments, jnp.array([2, 10, 10])))()
    jax.effects_barrier()
    assert max(model.steps) <= 1
    assert hypotheses.lengths[1:].tolist() == [0, 0]
    assert not hypotheses.ended[1:].any()
    assert (hypotheses.tokens[1:] == PAD).all()


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_translation_without_eos_is_returned_whole(kind):
    model = TableModel(VOCABULARY, eos_logit=-1e9)
    source_tokens, segments = sources(4)
    hypotheses = jax.jit(lambda: SEARCHES[kind](model, source_tokens, segments, jnp.array([1, 4, 7, 10])))()
    assert hypotheses.lengths.tolist() == [1, 4, 7, 10]
    assert not hypotheses.ended.any()
    for row in range(4):
        assert all(token > EOS for token in found(hypotheses, row))


def test_the_search_stops_when_nothing_can_win():
    """EOS at once has nearly all the probability: the beam must not go on to its limit of ten."""
    model = TableModel(VOCABULARY, eos_logit=50.0)
    source_tokens, segments = sources(4)
    jax.jit(lambda: SEARCHES["beam"](model, source_tokens, segments, jnp.full(4, 10)))()
    jax.effects_barrier()
    assert model.steps == [0]


@pytest.mark.parametrize(("vocabulary", "count"), [(7, 4), (100, 20), (320, 1), (320, 20), (127, 5)])
def test_likeliest_tokens_are_those_of_a_full_sort(vocabulary, count):
    logits = jax.random.normal(jax.random.key(0), (2, 3, vocabulary)) * 4
    log_probs, tokens = likeliest_tokens(logits.at[..., :EOS].add(100), count)
    expected = np.argsort(-np.asarray(logits)[..., EOS:], axis=-1)[..., :count] + EOS
    np.testing.assert_array_equal(tokens, expected)
    log_softmax = jax.nn.log_softmax(logits.at[..., :EOS].add(100))
    np.testing.assert_allclose(log_probs, jnp.take_along_axis(log_softmax, tokens, axis=-1), rtol=1e-5)


def test_equal_logits_go_to_the_smaller_id():
    logits = jnp.zeros((1, 1, 640)).at[0, 0, 70].set(1)
    assert likeliest_tokens(logits, 5)[1].tolist() == [[[70, 3, 4, 5, 6]]]


def test_special_ids_are_the_tokenizers():
    assert (PAD, UNK, BOS, EOS) == (tokenizer.PAD, tokenizer.UNK, tokenizer.BOS, tokenizer.EOS)
