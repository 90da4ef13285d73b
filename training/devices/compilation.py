"""Compile before the first call, or in a background thread, and report any later compilation: equal steps need none."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

import jax
from jax.sharding import NamedSharding

from data.batches.packing import Batch
from training.state import TrainState
from training.step import StepArguments, StepReport, TrainStep

SHOWN = 3  # changes in a line
COMPILED = "/jax/core/compile/backend_compile_duration"  # also recorded when a cached program is loaded
Result = TypeVar("Result")


def compile_ahead(function: Callable[..., object], *arguments: object) -> None:
    """Compile a jitted function for arguments or their shapes; the several of an any_mesh step compile when called."""
    if isinstance(function, jax.stages.Wrapped):
        function.lower(*arguments).compile()


@contextmanager
def report_compilations(
    train_step: TrainStep, compiled_for: StepArguments, say: Callable[[str], None]
) -> Iterator[TrainStep]:
    """``train_step``; whenever it is compiled inside, ``say`` gets a line on what differs from ``compiled_for``."""
    under_way: list[StepArguments] = []

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, StepReport]:
        under_way.append(StepArguments(state, batch))
        result = train_step(state, batch)
        under_way.clear()
        return result

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == COMPILED and kwargs.get("fun_name") == "jit(train_step)":
            [arguments] = under_way
            changes = list_changes(compiled_for, arguments) or ["no shape, dtype or sharding of an argument changed"]
            more = f"; and {len(changes) - SHOWN} more" if len(changes) > SHOWN else ""
            compiled = f"train_step was compiled again in {duration_secs:.1f} s"
            say(f"step {int(arguments.state.step) + 1}: {compiled}: {'; '.join(changes[:SHOWN])}{more}")

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield step
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def list_changes(old: object, new: object) -> list[str]:
    """For each array of two trees, by name, what changed: "batch.source: int32[2, 64] → int32[2, 128]"."""
    before, after = (dict(jax.tree.leaves_with_path(tree)) for tree in (old, new))
    changes = []
    for path in before | after:
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        for describe in (_type, _sharding):
            one, other = (describe(tree[path]) if path in tree else "nothing" for tree in (before, after))
            if one != other:
                changes.append(f"{name}: {one} → {other}")
    return changes


def _type(leaf: object) -> str:
    kind = jax.typeof(leaf)
    return f"{kind.dtype}{list(kind.shape)}{' (weak type)' * kind.weak_type}"


def _sharding(leaf: object) -> str:
    if not isinstance(leaf, jax.Array | jax.ShapeDtypeStruct):
        return "not on a device"
    if isinstance(leaf.sharding, NamedSharding):
        return f"{leaf.sharding.spec} on mesh {dict(leaf.sharding.mesh.shape)}"
    return str(leaf.sharding)


def in_background(function: Callable[..., Result], *arguments: object) -> Future[Result]:
    """Call the function in a thread; with several processes, end it first: joint work must come in the same order."""
    executor = ThreadPoolExecutor(1)
    result = executor.submit(function, *arguments)
    executor.shutdown(wait=False)
    if jax.process_count() > 1:
        wait([result])
    return result
