"""The run's own programs in StableHLO, the portable form of XLA's programs, for CPUs, NVIDIA's GPUs and TPUs.

``jax.export`` lowers each once for all three, and for any number of sentences. Weights are arguments, by names such as
encoder.0.self_attention.query.kernel, and lie in a file of their own.

B sentence · S source position · T place of the cache · G key/value head · H width of a key · U width of a value
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import export
from jaxtyping import Array, Float, Int

from evaluation.translate import Translator, bucket_of, search_settings
from model.cache import Cache, LayerCache, own_places
from model.decoding.beam import beam_search
from model.decoding.hypotheses import Sources
from model.decoding.sampling import greedy
from model.decoding.settings import SearchSettings
from model.transformer import Params, Tokens, Transformer

PLATFORMS = ("cpu", "cuda", "tpu")
CACHED = ("self_keys", "self_values", "cross_keys", "cross_values")

Arrays = dict[str, Array]


def save_model(folder: Path, translator: Translator, params: Params) -> None:
    """Write ``weights.npz`` and the programs, ``NAME.stablehlo``, to a folder that exists."""
    paths, tree = jax.tree.flatten_with_path(params)
    weights = {".".join(str(key.key) for key in path): np.asarray(leaf) for path, leaf in paths}
    np.savez(folder / "weights.npz", allow_pickle=False, **weights)
    programs = Programs(translator.graphdefs[0], tree, tuple(weights))
    shapes = {name: jax.ShapeDtypeStruct(array.shape, array.dtype) for name, array in weights.items()}
    for name, function, arguments in list_programs(programs, translator, shapes):
        exported = export.export(jax.jit(function), platforms=PLATFORMS)(shapes, *arguments)
        (folder / f"{name}.stablehlo").write_bytes(exported.serialize())


def buckets(translator: Translator) -> list[int]:
    """The padded lengths of the sources that the run translates in one piece."""
    return list(dict.fromkeys(map(bucket_of, range(1, translator.longest + 1))))


@dataclass(frozen=True)
class Programs:
    """Functions of the weights by name, and of arrays."""

    graphdef: nnx.GraphDef[Transformer]
    tree: Any  # how the weights of ``names`` make the parameters
    names: tuple[str, ...]

    def model(self, weights: Arrays) -> Transformer:
        return nnx.merge(self.graphdef, jax.tree.unflatten(self.tree, [weights[name] for name in self.names]))

    def encode(self, weights: Arrays, source: Int[Array, "B S"], places: Int[Array, " T"]) -> Arrays:
        """The cache of encoded sources, with room for as many tokens of a translation as ``places`` has entries."""
        model, tokens = self.model(weights), Tokens.one_per_row(source)
        cache = model.start_cache(model.encode(tokens), tokens.segments, beams=1, max_length=places.shape[0])
        return spread(cache)

    def step(
        self, weights: Arrays, tokens: Int[Array, " B"], position: Int[Array, ""], cache: Arrays
    ) -> tuple[Float[Array, "B V"], Arrays]:
        """The log-probability of every token after those given, which are at ``position``, and the cache with them."""
        logits, _, written = self.model(weights).decode_step(tokens[:, None], position, gather(cache))
        return jax.nn.log_softmax(logits[:, 0]), spread(written)

    def search(
        self, settings: SearchSettings, weights: Arrays, source: Int[Array, "B S"], limits: Int[Array, " B"]
    ) -> Arrays:
        """The best translation of each source, of at most ``limits`` tokens; greedy with a beam of one."""
        sources = Sources(Tokens.one_per_row(source), limits)
        found = (greedy if settings.beam_size == 1 else beam_search)((self.model(weights),), sources, settings)
        return {name: values[:, 0] for name, values in found._asdict().items()}


def spread(cache: Cache) -> Arrays:
    """The arrays of a cache of one hypothesis a sentence, by names such as 0.self_keys."""
    layers = {
        f"{index}.{name}": array for index, layer in enumerate(cache.layers) for name, array in layer._asdict().items()
    }
    return layers | {"source_segments": cache.source_segments}


def gather(arrays: Arrays) -> Cache:
    """The cache that ``spread`` spread."""
    count = (len(arrays) - 1) // len(CACHED)
    layers = tuple(LayerCache(**{name: arrays[f"{index}.{name}"] for name in CACHED}) for index in range(count))
    batch, _, _, places = layers[0].self_keys.shape
    return Cache(layers, arrays["source_segments"], own_places(batch, 1, places))


def list_programs(
    programs: Programs, translator: Translator, weights: dict[str, jax.ShapeDtypeStruct]
) -> Iterator[tuple[str, Any, list[Any]]]:
    """The name of each program, its function, and the shapes of its arguments after the weights."""
    batch, source, target = export.symbolic_shape("batch, source, target")
    number = partial(jax.ShapeDtypeStruct, dtype=jnp.int32)
    encoding = [number((batch, source)), number((target,))]
    yield "encode", programs.encode, encoding
    yield "step", programs.step, [number((batch,)), number(()), jax.eval_shape(programs.encode, weights, *encoding)]
    for size in dict.fromkeys((1, translator.decoding.beam_size)):
        for length in buckets(translator):
            settings = search_settings(translator.decoding, translator.limit(length), 1)
            function = partial(programs.search, replace(settings, beam_size=size))
            name = f"{'greedy' if size == 1 else 'beam'}-{length}"
            yield name, function, [number((batch, length)), number((batch,))]
