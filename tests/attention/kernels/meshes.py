"""Attention on eight simulated devices, each with its rows and heads; prints what came of it as JSON, for test_layout.

A program of its own, because JAX counts its devices once in a process.
"""

import json
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from attention.kernels.layout import on_each_device
from attention.masks import Mask
from attention.multihead import attend

SEGMENTS: Any = np.tile(np.array([1, 1, 1, 2, 2, 0], np.int32), (4, 1))
MASK = Mask(SEGMENTS, SEGMENTS, causal=True)


def arrays(groups: int) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [generator.normal(size=(4, heads, 6, 8)).astype(np.float32) for heads in (4, groups, groups)]


def attended(query: Any, key: Any, value: Any, mask: Mask) -> jax.Array:
    return attend(query, key, value, mask=mask)


def differentiated(mesh: jax.sharding.Mesh, groups: int) -> list[list[float]]:
    """The output of the definition and its gradients, computed on each device."""

    def weighted(query: jax.Array, key: jax.Array, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        with jax.sharding.use_abstract_mesh(mesh.abstract_mesh):
            output = on_each_device(attended, query, key, value, MASK)
        return (output * np.arange(output.size).reshape(output.shape)).sum(), output

    step = jax.jit(jax.grad(weighted, (0, 1, 2), has_aux=True))
    gradients, output = step(*jax.device_put(arrays(groups), NamedSharding(mesh, PartitionSpec("rows"))))
    return [np.ravel(array).tolist() for array in (output, *gradients)]


def main() -> None:
    jax.config.update("jax_platforms", "cpu")  # on a machine with a GPU, too
    jax.config.update("jax_num_cpu_devices", 8)
    make = partial(jax.make_mesh, axis_names=("rows", "heads"), axis_types=(AxisType.Auto,) * 2)
    one, eight = make((1, 1), devices=jax.devices()[:1]), make((2, 4))
    print(json.dumps({groups: [differentiated(mesh, groups) for mesh in (one, eight)] for groups in (4, 2)}))


if __name__ == "__main__":
    main()
