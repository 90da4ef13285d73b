"""Let contestants take turns in one run: other load slows all of them, and their best rounds are disturbed least."""

import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.machine import Call
from common.errors import UserError

Timer = Callable[[int], float]  # makes a number of calls, and returns the mean seconds of one
Name = TypeVar("Name", bound=Hashable)
Workload = TypeVar("Workload")
LEFT_OUT = "left out: the time was up"
SHORTEST = 0.02  # seconds of one timing: a fast contestant makes many calls, to make clock and launch costs negligible


@dataclass(frozen=True)
class Contestant(Generic[Workload]):
    """The name of an implementation, and what it computes. ``str(workload)`` names the workload in the table."""

    name: str
    workload: Workload


class Entrant(NamedTuple):
    """The compiled calls of a contestant, and the facts that it reports about itself."""

    timers: Mapping[Any, Timer]
    facts: Callable[[], Any] = lambda: None


@dataclass(frozen=True)
class Measurement(Generic[Workload]):
    """The best time of each call of a contestant, or the obstacle that keeps it from taking part."""

    contestant: Contestant[Workload]
    milliseconds: Mapping[Any, float]
    facts: Any  # after all turns
    obstacle: str | None


@dataclass(frozen=True)
class Results(Generic[Workload]):
    """All measurements of a run, and the FLOP/s of plain matrix products, each in its best group."""

    measurements: list[Measurement[Workload]]
    rates: dict[str, float]
    rounds: int

    def notes(self) -> list[str]:
        """Return a line for each contestant and obstacle, with the workloads if others could be measured."""
        workloads: dict[tuple[str, str | None], list[str]] = {}
        for each in self.measurements:
            workloads.setdefault((each.contestant.name, each.obstacle), []).append(str(each.contestant.workload))
        sometimes = {name for name, obstacle in workloads if obstacle is None}
        return [
            f"{name} on {', '.join(names)}: {obstacle}" if name in sometimes else f"{name}: {obstacle}"
            for (name, obstacle), names in workloads.items()
            if obstacle
        ]


def measure(
    groups: Iterable[Sequence[Contestant[Workload]]],
    prepare: Callable[[Contestant[Workload]], Entrant],
    products: Callable[[], Entrant],
    rounds: int,
    *,
    apart: bool,
    deadline: float = math.inf,
) -> Results[Workload]:
    """Let the contestants of a group take turns with each other and with plain matrix products.

    If ``prepare`` fails for a contestant, its measurement says why. With ``apart``, each has its own process. No group
    starts after the ``deadline``, by ``time.monotonic()``.
    """

    def start(prepare: Callable[[], Entrant]) -> AbstractContextManager[Entrant]:
        return own_process(prepare) if apart else nullcontext(prepare())

    measurements: list[Measurement[Workload]] = []
    rates: dict[Any, float] = {}
    with start(products) as plain:
        for group in groups:
            if time.monotonic() > deadline:
                measurements += [Measurement(who, {}, None, LEFT_OUT) for who in group]
                continue
            print(f"measuring {', '.join(who.name for who in group)} on {group[0].workload}", file=sys.stderr)
            entrants, obstacles = {"": plain}, {}
            with ExitStack() as stack:
                for who in group:
                    try:
                        entrants[who.name] = stack.enter_context(start(partial(prepare, who)))
                    except (RuntimeError, ValueError, UserError) as error:  # no memory left, or a library refuses
                        obstacles[who.name] = describe_failure(error)
                timers = {(name, call): timer for name, each in entrants.items() for call, timer in each.timers.items()}
                times = take_turns(timers, rounds)
                facts = {name: each.facts() for name, each in entrants.items()}
            for who in group:
                milliseconds = {call: best for (name, call), best in times.items() if name == who.name}
                measurements.append(Measurement(who, milliseconds, facts.get(who.name), obstacles.get(who.name)))
            for name in plain.timers:
                rates[name] = max(rates.get(name, 0.0), 2e3 * matrix_size()[0] ** 3 / times["", name])
    return Results(measurements, rates, rounds)


def take_turns(timers: Mapping[Name, Timer], rounds: int) -> dict[Name, float]:
    """Return the milliseconds of one call of each timer, in its best round."""
    repetitions = {name: math.ceil(SHORTEST / timer(1)) for name, timer in timers.items()}
    best = dict.fromkeys(timers, math.inf)
    for _ in range(rounds):
        for name, timer in timers.items():
            best[name] = min(best[name], 1e3 * timer(repetitions[name]))
    return best


def mean_seconds(call: Call, calls_a_turn: int, turns: int) -> float:
    """Return the mean time of a call. On a CPU, each call waits for the last one; a GPU's queue never runs empty."""
    waits = jax.default_backend() == "cpu"
    start = time.perf_counter()
    for _ in range(calls_a_turn * turns):
        result = call()
        if waits:
            jax.block_until_ready(result)
    jax.block_until_ready(result)
    return (time.perf_counter() - start) / (calls_a_turn * turns)


def enter(calls: Mapping[Any, Call], facts: Callable[[], Any] = lambda: None, calls_a_turn: int = 1) -> Entrant:
    """Make every call once, to compile it. A turn has at least ``calls_a_turn`` calls."""
    for call in calls.values():
        jax.block_until_ready(call())
    return Entrant({name: partial(mean_seconds, call, calls_a_turn) for name, call in calls.items()}, facts)


def enter_products(*, with_bfloat16: bool = False) -> Entrant:
    """Return plain matrix products as an entrant."""
    return enter(matrix_products(with_bfloat16=with_bfloat16))


def product_rates(rounds: int) -> dict[str, float]:
    """Return the FLOP/s of plain matrix products, each in its best round."""
    best = take_turns(enter_products(with_bfloat16=True).timers, rounds)
    return {str(name): 2e3 * matrix_size()[0] ** 3 / milliseconds for name, milliseconds in best.items()}


def matrix_size() -> tuple[int, str]:
    """Return the number of rows and the dtype of the square matrices that measure the machine's peak rate."""
    return (1024, "float32") if jax.default_backend() == "cpu" else (8192, "bfloat16")


def matrix_products(*, with_bfloat16: bool = False) -> dict[str, Call]:
    """Return the product of two such matrices by JAX, and by PyTorch on a CPU that has it.

    ``with_bfloat16`` adds bfloat16 operands if the usual ones are wider: JAX then returns float32, like a model with
    ``matmul_dtype=bfloat16``, and PyTorch returns bfloat16, like its autocast.
    """
    size, dtype = matrix_size()
    values = np.random.default_rng(0).standard_normal((size, size), np.float32)
    products: dict[str, Call] = {}
    for operands in {dtype: None, "bfloat16": None} if with_bfloat16 else [dtype]:
        matrix, suffix = jnp.asarray(values, operands), "" if operands == dtype else f" {operands}"
        product = jax.jit(partial(jnp.matmul, preferred_element_type=jnp.float32 if suffix else None))
        products[f"jax{suffix}"] = partial(product, matrix, matrix)
        if find_spec("torch") and dtype == "float32":
            from benchmarks.peers.pytorch import matrix_product  # PyTorch is optional

            products[f"torch{suffix}"] = matrix_product(values, operands)
    return products


@contextmanager
def own_process(prepare: Callable[[], Entrant]) -> Iterator[Entrant]:
    """Prepare an entrant in its own process: libraries with threads slow each other down in a shared process.

    libgomp's threads, for example, spin before they sleep, but barely do so if the process has more threads than cores,
    including idle ones: a fast contestant would suffer from the presence of others. ``prepare`` is pickled.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:

        def time_there(name: Hashable, repetitions: int) -> float:
            return pool.submit(_time, name, repetitions).result()

        names = pool.submit(_prepare, prepare).result()
        yield Entrant({name: partial(time_there, name) for name in names}, lambda: pool.submit(_facts).result())


_entrant: Entrant  # in its own process


def _prepare(prepare: Callable[[], Entrant]) -> list[Hashable]:
    global _entrant
    _entrant = prepare()
    return list(_entrant.timers)


def _time(name: Hashable, repetitions: int) -> float:
    return _entrant.timers[name](repetitions)


def _facts() -> Any:
    return _entrant.facts()


def describe_failure(error: Exception) -> str:
    """Return one line that explains why a contestant could not be prepared."""
    if isinstance(error, BrokenProcessPool):
        return "out of memory: its process was ended"
    line = str(error).partition("\n")[0]
    if "RESOURCE_EXHAUSTED" in line or "out of memory" in line.lower():
        return "out of memory"
    return line if isinstance(error, UserError) else f"fails: {line}"
