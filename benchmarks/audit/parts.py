"""The parts of a config that a compiler could get wrong, at their real shapes, with arguments drawn by NumPy."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import PyTree

from attention.kernels import KERNELS, unsupported
from attention.kernels.request import Request, current_device
from attention.masks import Mask
from attention.multihead import attend
from benchmarks.audit import references
from benchmarks.cost.operations import StepCost, list_parameters
from common.special_tokens import EOS
from configs.schema import RunConfig
from evaluation.buckets import batch_size
from evaluation.search import search_batch, search_settings
from model.config import ModelConfig
from model.embedding import project
from model.layers import Draws, dropout
from model.loss import cross_entropy, loss_in_chunks
from model.matmul import matmul
from model.transformer import Params, build, init_params
from training.config import TrainingConfig
from training.devices.any_mesh import make_programs
from training.devices.compiler import ROWS, square_rows
from training.muon import orthogonalize
from training.optimizer import optimizer
from training.state import initial_state_from

# The norm of a difference, as a share of the reference's norm: with the same rounding of operands; through many layers,
# where a unit with an input near zero may be on with one rounding and off with another; with attention in bfloat16,
# where some kernels also round the weights; through many layers with rounded operands; through many layers with rounded
# activations, and in a search, where rounding may let another hypothesis win.
EXACT, ROUNDED, HALF, NARROW, WIDE = 1e-5, 5e-3, 2e-2, 5e-2, 0.2
SOURCES, TARGETS = 16, 12  # tokens of a sentence to translate, and of its translation


@dataclass(frozen=True)
class Part:
    """A computation, and how to get the right result: ``reference`` in float64 or, if it is None, without ``jit``."""

    name: str
    compute: Callable[..., PyTree]
    arguments: tuple[Any, ...]
    reference: Callable[..., PyTree] | None = None
    tolerance: float = EXACT


def parts_of(config: RunConfig) -> Iterator[Part]:
    """Every part of a training step with this config, the whole step, and the search."""
    model, data = config.model, config.data
    cost = StepCost(model, config.tokenizer.vocab_size, data.batch_rows, data.row_length, data.row_length, sentences=4)
    yield Part("the rows of jax#39103", square_rows, (ROWS,), references.square_rows)
    yield from attentions(cost)
    yield from products(cost)
    yield loss_part(cost, config.training.label_smoothing)
    for rate in sorted({model.dropout, model.attention_dropout, model.activation_dropout} - {0.0}):
        shape = data.batch_rows, data.row_length, model.d_model
        deviation = (rate / (1 - rate) / math.prod(shape)) ** 0.5  # of the share that is kept, relative to it
        tolerance = 5 * deviation + 2**-16
        yield Part(f"dropout of {rate}", share_kept, (rate, shape), lambda rate, shape: 1 - rate, tolerance)
    yield from updates(cost, config.training)
    yield from steps(cost, config.training)
    wide = replace(model, dtype="float32", matmul_dtype="float32")
    if wide != model:
        yield search_part("search in float32", wide, config, EXACT)
    yield search_part("search", model, config, EXACT if wide == model else WIDE)


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def attentions(cost: StepCost) -> Iterator[Part]:
    """Output and gradients of each kernel in each use of attention, with random arrays."""
    model, batch = cost.model, cost.batch()
    heads, groups, tolerance = model.num_heads, model.groups, EXACT if model.dtype == "float32" else HALF
    source, target = jnp.asarray(batch.source_segments), jnp.asarray(batch.target_segments)
    for use, mask in {
        "encoder self-attention": Mask(source, source),
        "decoder self-attention": Mask(target, target, causal=True),
        "encoder-decoder attention": Mask(target, source),
    }.items():
        (rows, queries), keys = mask.query_segments.shape, mask.key_segments.shape[1]
        shapes = (heads, queries, model.head_dim), (groups, keys, model.head_dim), (groups, keys, model.value_width)
        arrays = tuple(normal(seed, rows, *shape) for seed, shape in enumerate(shapes))
        cotangent = normal(3, rows, heads, queries, model.value_width)
        for kernel in kernels_for(model, queries, keys):
            compute = partial(attention_and_gradients, mask=mask, kernel=kernel, dtype=model.dtype)
            reference = partial(references.attention_and_gradients, visible=np.asarray(mask.visible()))
            yield Part(f"{use}, {kernel}", jax.jit(compute), (*arrays, cotangent), reference, tolerance)


def kernels_for(model: ModelConfig, queries: int, keys: int) -> list[str]:
    """The kernels that support the scaled dot product with the model's shapes on this device."""
    widths = model.head_dim, model.value_width
    request = Request(current_device(), model.dtype, "scaled_dot_product", queries, keys, *widths)
    return [kernel for kernel in KERNELS if unsupported(kernel, request) is None]


def attention_and_gradients(
    query: Any, key: Any, value: Any, cotangent: Any, mask: Mask, kernel: str, dtype: str
) -> PyTree:
    arrays = (array.astype(dtype) for array in (query, key, value))
    output, pull = jax.vjp(lambda *arrays: attend(*arrays, mask=mask, kernel=kernel), *arrays)
    return {"output": output, **dict(zip("qkv", pull(cotangent.astype(output.dtype)), strict=True))}


def products(cost: StepCost) -> Iterator[Part]:
    """The product of each dense layer's matrix with the source tokens of a batch, and its gradients."""
    dtype = cost.model.matmul_dtype

    def product_and_gradients(x: Any, matrix: Any, cotangent: Any) -> PyTree:
        output, pull = jax.vjp(partial(matmul, dtype=dtype), x, matrix)
        return output, *pull(cotangent)

    for rows, columns in dense_shapes(cost):
        tokens = cost.rows, cost.sources
        arguments = normal(0, *tokens, rows), normal(1, rows, columns), normal(2, *tokens, columns)
        reference = partial(references.product_and_gradients, dtype=dtype)
        name = f"product with {rows} × {columns}"
        yield Part(name, jax.jit(product_and_gradients), arguments, reference)


def dense_shapes(cost: StepCost) -> list[tuple[int, ...]]:
    parameters = list_parameters(cost.model, cost.vocab_size)
    return sorted({leaf.shape for path, leaf in parameters.items() if path.endswith("/kernel")})


def loss_part(cost: StepCost, smoothing: float) -> Part:
    """The loss in chunks and its gradients, for random outputs of the decoder."""
    model, batch = cost.model, cost.batch()
    to_logits, loss = partial(project, dtype=model.matmul_dtype), partial(cross_entropy, smoothing=smoothing)
    x = normal(0, cost.rows, cost.targets, model.d_model)
    table = normal(1, cost.vocab_size, model.d_model) / np.float32(model.d_model**0.5)

    def objective(x: Any, table: Any) -> Any:
        labels, real = jnp.asarray(batch.target_labels), jnp.asarray(batch.target_segments) > 0
        return loss_in_chunks(to_logits, loss, x, table, labels, real).objective

    compute = jax.jit(jax.value_and_grad(objective, argnums=(0, 1)))
    dtype = model.matmul_dtype
    reference = partial(references.loss_and_gradients, labels=batch.target_labels, smoothing=smoothing, dtype=dtype)
    return Part("loss in chunks", compute, (x, table), reference)


@partial(jax.jit, static_argnums=(0, 1))
def share_kept(rate: float, shape: tuple[int, ...]) -> Any:
    return jnp.mean(dropout(jnp.ones(shape), rate, Draws(jax.random.key(0))) > 0)


def updates(cost: StepCost, training: TrainingConfig) -> Iterator[Part]:
    """Muon's iterations for every matrix shape, and two updates of the optimizer with random gradients."""
    if training.optimizer == "muon":
        for shape in dense_shapes(cost):
            name = f"Muon's iterations, {shape[0]} × {shape[1]}"
            yield Part(name, jax.jit(orthogonalize), (normal(0, *shape),), references.orthogonalized, NARROW)
    transform, params = optimizer(training), parameters(cost)
    gradients = [jax.tree.map(lambda leaf, seed=seed: normal(seed, *leaf.shape), params) for seed in (0, 1)]

    def two_updates(params: Any, first: Any, second: Any) -> PyTree:
        _, state = transform.update(first, transform.init(params), params)
        return by_module(transform.update(second, state, params)[0])

    tolerance = NARROW if training.optimizer == "muon" else EXACT
    yield Part("the optimizer", jax.jit(two_updates), (params, *gradients), None, tolerance)


def steps(cost: StepCost, training: TrainingConfig) -> Iterator[Part]:
    """The gradients of a batch by module, also with every operand in float32, and the reports of two steps."""
    tolerance = EXACT if cost.model.matmul_dtype == "float32" else NARROW
    params, batch = parameters(cost), cost.batch()
    step = make_programs(build(cost.model, cost.vocab_size), training).train_step

    def two_steps() -> PyTree:
        state, _ = step(initial_state_from(jax.tree.map(jnp.copy, params), training), batch)
        state, report = step(state, batch)
        return report._asdict() | {"params": optax.tree.norm(state.params)}

    if tolerance == NARROW:
        wide = replace(cost, model=replace(cost.model, dtype="float32", matmul_dtype="float32"))
        yield Part("gradients in float32", gradients(wide, training), (params, batch), None, ROUNDED)
    of_gradients = max(tolerance, ROUNDED) if cost.model.dtype == "float32" else WIDE
    yield Part("gradients", gradients(cost, training), (params, batch), None, of_gradients)
    yield Part("two steps", two_steps, (), None, tolerance)


def gradients(cost: StepCost, training: TrainingConfig) -> Callable[..., PyTree]:
    gradients_of = make_programs(build(cost.model, cost.vocab_size), training).gradients

    def by_name(params: Any, batch: Any) -> PyTree:
        found, loss = gradients_of(params, batch, jnp.zeros((), jnp.int32))
        return by_module(found) | {"loss": loss.objective}

    return by_name


def parameters(cost: StepCost) -> Params:
    return init_params(cost.model, cost.vocab_size, jax.random.key(0))


def by_module(params: Params) -> dict[str, Any]:
    """All parameters of each module as one vector."""
    modules = {f"{part}.{name}": tree for part, modules in params.items() for name, tree in modules.items()}
    return {name: jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(tree)]) for name, tree in modules.items()}


def search_part(name: str, model: ModelConfig, config: RunConfig, tolerance: float) -> Part:
    """The scores of a search for a batch of sentences."""
    model, decoding = replace(model, kernel="definition"), config.decoding
    vocab_size, rows = config.tokenizer.vocab_size, batch_size(SOURCES, decoding.batch_sentences)
    params, room = init_params(model, vocab_size, jax.random.key(0)), min(TARGETS, decoding.limit(SOURCES))
    sources = np.random.default_rng(0).integers(EOS + 1, vocab_size, (rows, SOURCES), np.int32)
    limits, numbers = np.full(rows, room, np.int32), np.arange(rows, dtype=np.uint32)
    settings = search_settings(decoding, room, 1)

    def scores() -> Any:
        graphdefs = (build(model, vocab_size),)
        return search_batch(graphdefs, (params,), sources, limits, None, numbers, np.uint32(0), settings).scores

    return Part(name, scores, (), None, tolerance)
