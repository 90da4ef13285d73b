"""Two views of a batch in a training step: what each sees, and what must not matter."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common.special_tokens import BOS, EOS, PAD
from data.batches.packing import Batch
from model.config import ModelConfig
from model.layers import Draws
from model.transformer import build
from tests.drawn import drawn_params, drawn_state
from training.config import TrainingConfig
from training.objective import views_of
from training.replay.inspect_step import compile_token_losses
from training.step import make_gradients, make_train_step

VOCAB, ROWS, LENGTH = 40, 6, 8
MODEL = ModelConfig(d_model=8, num_heads=2, head_dim=4, encoder_layers=1, decoder_layers=1, d_ff=16, dropout=0.0)
DROPPING = ModelConfig(**(vars(MODEL) | {"dropout": 0.2}))
METHODS: list[str] = [
    word for word in TrainingConfig.__dataclass_fields__["consistency"].metadata["choices"] if word != "none"
]

# Programs are compiled for each method: where a test adds little for the others, they are slow.
FIRST_METHOD = [METHODS[0], *(pytest.param(method, marks=pytest.mark.slow) for method in METHODS[1:])]


def settings(**changes):
    return TrainingConfig(**({"steps": 10, "warmup_steps": 1, "consistency_weight": 2.0} | changes))


def packed(rows=ROWS, length=LENGTH, seed=0):
    """Rows of two sentences, of 3 and 4 tokens, and padding."""
    tokens = np.random.default_rng(seed).integers(6, VOCAB, (2, rows, length))
    segments = np.tile(np.array([1] * 3 + [2] * 4 + [0] * (length - 7)), (rows, 1))
    positions = np.tile(np.array([0, 1, 2, 0, 1, 2, 3, *[0] * (length - 7)]), (rows, 1))
    source, labels = (np.where(segments > 0, side, PAD) for side in tokens)
    source[:, [2, 6]] = labels[:, [2, 6]] = EOS
    inputs = np.where(positions == 0, BOS, np.roll(labels, 1, axis=1)) * (segments > 0)
    arrays = source, segments, positions, inputs, labels, segments, positions
    return Batch(*(array.astype(np.int32) for array in arrays))


@cache
def compiled_gradients(model, config):
    return jax.jit(make_gradients(build(model, VOCAB), config))


def gradients(batch, config, model=MODEL, step=0):
    return compiled_gradients(model, config)(drawn_params(model, VOCAB), batch, jnp.int32(step))


def close(some, others, **tolerance):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **tolerance), some, others)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_where_nothing_differs_the_objective_is_that_of_one_view(method):
    """No dropout and nothing cut: the divergence is zero, and so is its gradient."""
    plain_gradient, plain = gradients(packed(), settings())
    gradient, loss = gradients(packed(), settings(consistency=method, cutoff=0.0))
    np.testing.assert_allclose(loss, plain, rtol=1e-5, atol=1e-4)
    close(gradient, plain_gradient, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_views_of_a_row_stand_side_by_side_and_differ(method):
    batch = packed()
    views = views_of(batch, settings(consistency=method, cutoff=0.5), Draws(jax.random.key(0)))
    for name in ("source_tokens", "target_inputs"):
        found, whole = getattr(views.batch, name), getattr(batch, name)
        np.testing.assert_array_equal(found[0::2], whole)
        assert bool((found[1::2] != whole).any()) == (method != "r_drop")
    for name in set(Batch._fields) - {"source_tokens", "target_inputs"}:
        np.testing.assert_array_equal(getattr(views.batch, name), np.repeat(getattr(batch, name), 2, axis=0))


def test_the_second_view_of_cutoff_hides_a_share_of_the_words_and_nothing_else():
    batch = packed(rows=400, length=64)
    views = views_of(batch, settings(consistency="simcut", cutoff=0.25), Draws(jax.random.key(0)))
    for name in ("source_tokens", "target_inputs"):
        found, whole = np.asarray(getattr(views.batch, name)[1::2]), getattr(batch, name)
        words = whole > EOS
        hidden = found[words] == PAD
        assert hidden.mean() == pytest.approx(0.25, abs=4 * np.sqrt(0.25 * 0.75 / words.sum()))
        np.testing.assert_array_equal(found[words][~hidden], whole[words][~hidden])
        np.testing.assert_array_equal(found[~words], whole[~words])  # BOS, EOS and padding


def losses_of_tokens(batch, method, model=DROPPING):
    config = settings(consistency=method, cutoff=0.3)
    compiled = compile_token_losses(model, VOCAB, config)
    return compiled(drawn_params(model, VOCAB), batch, jnp.int32(5))


@pytest.mark.parametrize("method", FIRST_METHOD)
def test_neighbours_and_padding_are_invisible(method):
    """Other words in the second sentence, and any tokens in the padding, leave the first sentence's losses alone."""
    batch, other = packed(), packed(seed=1)
    second = batch.source_segments == 2
    changed = batch._replace(
        source_tokens=np.where(second, other.source_tokens, batch.source_tokens),
        target_inputs=np.where(second, other.target_inputs, batch.target_inputs),
        target_labels=np.where(second, other.target_labels, batch.target_labels),
    )
    padding = np.where(batch.source_segments == 0, 9, 0).astype(np.int32)
    changed = changed._replace(
        source_tokens=changed.source_tokens + padding, target_inputs=changed.target_inputs + padding
    )
    before, after = losses_of_tokens(batch, method), losses_of_tokens(changed, method)
    first = batch.target_segments == 1
    for one, two in zip(before, after, strict=True):
        np.testing.assert_allclose(one[first], two[first], rtol=1e-5, atol=1e-6)
    assert (np.abs(before.objective - after.objective)[second] > 1e-3).any()
    assert not np.asarray(before.objective)[batch.target_segments == 0].any()


@pytest.mark.parametrize("method", FIRST_METHOD)
def test_losses_of_tokens_add_up_to_the_objective(method):
    """replay.py shows them; the sum is the training step's, under the same dropout and the same cuts."""
    config = settings(consistency=method, cutoff=0.3)
    _, total = gradients(packed(), config, DROPPING, step=3)
    compiled = compile_token_losses(DROPPING, VOCAB, config)
    each = compiled(drawn_params(DROPPING, VOCAB), packed(), jnp.int32(3))
    np.testing.assert_allclose([field.sum() for field in each], total, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [METHODS[0], *(pytest.param(each, marks=pytest.mark.nightly) for each in METHODS[1:])]
)
def test_accumulation_adds_up_its_slices(method):
    """Two slices, each with the key that the split gives it: the sum of their gradients, divided once."""
    config = settings(consistency=method, cutoff=0.3, accumulation=2)
    whole, loss = gradients(packed(), config, DROPPING)
    compiled = compile_token_losses(DROPPING, VOCAB, config)

    def objective(params):
        each = compiled(params, packed(), jnp.int32(0))
        return each.objective.sum() / each.tokens.sum()

    value, gradient = jax.value_and_grad(objective)(drawn_params(DROPPING, VOCAB))
    assert float(loss.objective / loss.tokens) == pytest.approx(float(value), rel=1e-5)
    close(whole, gradient, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("method", FIRST_METHOD)
def test_divergence_is_in_the_sums_of_the_window_and_falls_when_trained(method):
    config = settings(consistency=method, cutoff=0.3, consistency_weight=20.0, steps=100, learning_rate=1e-2)
    step, state, seen = make_train_step(build(DROPPING, VOCAB), config), drawn_state(DROPPING, config, VOCAB), []
    for _ in range(40):
        before = float(state.sums.divergence)
        state, _ = step(state, packed())
        seen.append(float(state.sums.divergence) - before)
    assert float(state.sums.divergence) == pytest.approx(sum(seen), rel=1e-5)
    assert np.mean(seen[-10:]) < 0.7 * np.mean(seen[:5])
