"""A search over many sentences as one compiled program, on one device or several."""

from functools import partial
from typing import Any

import jax
from flax import nnx
from jax.sharding import Mesh
from jaxtyping import Array, Int, UInt32

from attention.kernels.request import current_device
from evaluation.over_devices import call_on_rows
from model.config import DecodingConfig
from model.decoding.beam import BeamSearch
from model.decoding.hypotheses import Hypotheses, Sources
from model.decoding.next_token import SpellingTable
from model.decoding.sampling import Independent
from model.decoding.search import Method, search
from model.decoding.settings import Ranking, Sampling, SearchSettings
from model.transformer import Params, Tokens, Transformer


def search_settings(config: DecodingConfig, room: int, count: int, rows: int = 0) -> SearchSettings:
    """The settings of a search for ``count`` translations of at most ``room`` tokens, with ``rows`` rows at once."""
    ranking = Ranking(config.normalization, config.length_penalty, config.coverage_penalty)
    sampling = Sampling(config.temperature, config.top_k, config.top_p)
    return SearchSettings(room, config.beam_size, count, ranking, config.search, sampling, rows)


@partial(jax.jit, static_argnames=("graphdefs", "settings", "mesh"))
def search_batch(
    graphdefs: tuple[nnx.GraphDef[Transformer], ...],
    params: tuple[Params, ...],
    source_tokens: Int[Array, "B S"],
    limits: Int[Array, " B"],
    starts: Int[Array, " B"] | None,
    numbers: UInt32[Array, " B"],
    seed: UInt32[Array, ""],
    settings: SearchSettings,
    mesh: Mesh | None = None,
    spelling: SpellingTable | None = None,
) -> Hypotheses:
    """Search a batch, split over ``mesh`` if given; compiled per shape and settings. Sources end with EOS, then PAD."""

    def search_rows(shared: Any, source: Array, limits: Array, starts: Array | None, numbers: Array) -> Hypotheses:
        models = tuple(merge_for_search(graphdef, each) for graphdef, each in zip(graphdefs, shared[0], strict=True))
        sources = Sources(Tokens.one_per_row(source), limits, numbers, starts, shared[2])
        return search(method_of(settings, shared[1]), models, sources, settings.rows)

    rows = source_tokens, limits, starts, numbers
    found: Hypotheses = call_on_rows(search_rows, mesh, (params, seed, spelling), *rows)
    return found


def method_of(settings: SearchSettings, seed: UInt32[Array, ""]) -> Method:
    match settings.search:
        case "sample":
            return Independent(settings, jax.random.key(seed))
        case "beam":
            return Independent(settings) if settings.beam_size == 1 else BeamSearch(settings)
        case _:
            raise NotImplementedError(f"decoding.search={settings.search}")


def merge_for_search(graphdef: nnx.GraphDef[Transformer], params: Params) -> Transformer:
    """The model with its matrices converted to the dtype of their products, so that no step of a search converts them.

    XLA for GPUs would leave the conversion in the loop and read twice the bytes at every step. A CPU computes bfloat16
    products in float32, so it would have to convert the matrices back.
    """
    model = nnx.merge(graphdef, params)
    dtype = model.config.matmul_dtype
    if dtype == "float32" or current_device().platform == "cpu":
        return model

    def convert(path: tuple[Any, ...], leaf: Array) -> Array:
        return leaf.astype(dtype) if path[-1].key == "kernel" else leaf

    converted = jax.tree.map_with_path(convert, params)
    return nnx.merge(graphdef, jax.lax.optimization_barrier(converted))  # else XLA moves them back into the loop
