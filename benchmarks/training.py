"""Measure the speed of training steps on full batches: this project's and PyTorch's."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

import jax

from benchmarks.cost.operations import StepCost
from benchmarks.machine import peak_memory
from benchmarks.peers import check_installed
from benchmarks.report import Report, Row, create_report, describe_model, flops_unit, mebibytes, with_ratios
from benchmarks.turns import Contestant, Entrant, Measurement, Results, enter, enter_products, measure
from common.errors import UserError
from common.text_table import three_digits
from configs.schema import RunConfig
from model.transformer import build
from training.config import TrainingConfig
from training.devices.any_mesh import check_any_mesh, make_programs, one_device
from training.devices.preflight import choose_kernels
from training.state import init_state
from training.step import StepReport

OURS = "puente"
PEERS = ("marian", "torch", "torch-bfloat16")
GPU_PEERS = ("marian-bfloat16", "torch-bfloat16")
REFERENCES = ("marian", "marian-bfloat16")  # ratios are relative to their speed
STEPS_A_TURN = 4  # a single step would suffer from what the others' turns did to memory and caches


@dataclass(frozen=True)
class Task:
    """Training steps on the fixed batch of ``cost``."""

    cost: StepCost
    training: TrainingConfig

    def __str__(self) -> str:
        return str(self.cost)


@dataclass(frozen=True)
class Usage:
    """What a contestant's process reports after its steps, by the keys of the JSON report."""

    parameters: int
    peak_bytes: int | None
    compile_seconds: float | None = None
    kernels: list[str] | None = None


def list_contestants(
    recipes: Mapping[str, RunConfig], costs: Sequence[StepCost], kernels: Sequence[str], peers: Sequence[str]
) -> list[Contestant[Task]]:
    """Return, for every cost, our recipes by name, then peers with the dimensions and training of the first recipe.

    Each recipe is measured with each of the ``kernels``, or with its own if there are none.
    """
    contestants, first = [], next(iter(recipes.values()))
    for cost in costs:
        for name, recipe in recipes.items():
            for kernel in kernels or [recipe.model.kernel]:
                task = Task(replace(cost, model=replace(recipe.model, kernel=kernel)), recipe.training)
                contestants.append(Contestant(f"{name} {kernel}" if len(kernels) > 1 else name, task))
        contestants += [Contestant(peer, Task(replace(cost, model=first.model), first.training)) for peer in peers]
    return contestants


class PuenteSteps:
    """This project's training steps as train.py takes them."""

    def __init__(self, task: Task):
        cost, training = task.cost, task.training
        self.batch, self.parameters = cost.batch(), cost.parameters()
        self.kernels = sorted(set(choose_kernels(cost.model, (cost.sources, cost.targets)).values()))
        self.state = init_state(cost.model, training, cost.vocab_size)
        check_any_mesh(training, one_device(), cost.rows)
        self.train_step = make_programs(build(cost.model, cost.vocab_size), training).train_step
        self.compile_seconds = self._seconds() - self._seconds()  # the first step minus the second

    def __call__(self) -> StepReport:
        self.state, report = self.train_step(self.state, self.batch)
        return report

    def _seconds(self) -> float:
        start = time.perf_counter()
        jax.block_until_ready(self())
        return time.perf_counter() - start

    def usage(self) -> Usage:
        return Usage(self.parameters, peak_memory(), self.compile_seconds, self.kernels)


def prepare_peer(name: str, task: Task) -> Entrant:
    """Prepare a PyTorch model, which is not compiled; UserError if it cannot compute the same as our model."""
    check_installed("torch", "transformers")
    check_plain(task)
    from benchmarks.peers.pytorch import TrainingStep, TransformerLoss

    cost, training, loss = task.cost, task.training, TransformerLoss
    if name.startswith("marian"):
        from benchmarks.peers.marian import MarianLoss as loss  # transformers takes memory
    step = TrainingStep(loss(cost, training), cost, training, autocast=name.endswith("bfloat16"))
    return enter({"step": step}, lambda: Usage(step.count_parameters(), step.peak_memory()), STEPS_A_TURN)


def check_plain(task: Task) -> None:
    """UserError unless rows have one sentence, and model and optimizer are those of Vaswani et al. (2017)."""
    model, training = task.cost.model, task.training
    kinds = (model.score, model.positions, model.activation)
    widths = (model.head_dim * model.num_heads, model.value_width, model.groups)
    plain = ("scaled_dot_product", "sinusoidal", "relu", model.d_model, model.head_dim, model.num_heads)
    dropouts = model.attention_dropout, model.activation_dropout, model.decoder_layer_drop
    if task.cost.sentences > 1:
        raise UserError("takes rows of one sentence only")
    additions = model.query_key_norm, model.head_gates, model.value_residual, model.gated, model.encoder_width
    if kinds + widths != plain or any(additions):
        raise UserError("is compared with plain multi-head attention and sinusoidal positions only")
    if any((*dropouts, model.source_word_dropout, model.target_word_dropout)):
        raise UserError("is compared with model.dropout only")
    if (training.optimizer, training.embedding_rate, training.consistency) != ("adam", 1.0, "none"):
        raise UserError("is compared with Adam's steps on one view of a batch only")


def prepare(contestant: Contestant[Task]) -> Entrant:
    """Prepare a contestant in its own process."""
    jax.config.update("jax_enable_compilation_cache", False)  # compile time is one of the figures
    if not contestant.name.startswith(OURS):
        return prepare_peer(contestant.name, contestant.workload)
    steps = PuenteSteps(contestant.workload)
    return enter({"step": steps}, steps.usage, STEPS_A_TURN)


def measure_training(contestants: Sequence[Contestant[Task]], rounds: int, deadline: float = math.inf) -> Report:
    """Measure contestants that start before the deadline. On a CPU, all contestants on the same batch take turns.

    A GPU holds one at a time, in turns with plain matrix products only, so that each has all of the memory.
    """
    by_batch = [list(group) for _, group in groupby(contestants, key=lambda contestant: str(contestant.workload))]
    groups = by_batch if jax.default_backend() == "cpu" else [[contestant] for contestant in contestants]
    products = partial(enter_products, with_bfloat16=any(map(uses_bfloat16, contestants)))
    return report_training(measure(groups, prepare, products, rounds, apart=True, deadline=deadline))


def uses_bfloat16(contestant: Contestant[Task]) -> bool:
    """Whether the operands of the contestant's matrix products are bfloat16."""
    ours = contestant.workload.cost.model.matmul_dtype == "bfloat16"
    return ours if contestant.name.startswith(OURS) else contestant.name.endswith("bfloat16")


def row_of(measurement: Measurement[Task]) -> Row[Task]:
    """Return the speed in tokens; none of them are padding."""
    task, milliseconds = measurement.contestant.workload, measurement.milliseconds["step"]
    flops = task.cost.of_views(task.training).flops()
    return Row(measurement.contestant, "step", milliseconds, flops, task.cost.places(), measurement.facts)


def report_training(results: Results[Task]) -> Report:
    """Return the figures of every contestant; one that could not take part has a row that says so."""
    rows = with_ratios([row_of(each) for each in results.measurements if not each.obstacle], REFERENCES)
    cells, remaining = [], iter(rows)
    for each in results.measurements:
        figures = [shorten(each.obstacle), *[""] * 6] if each.obstacle else figure_cells(next(remaining), results.rates)
        cells.append([str(each.contestant.workload), each.contestant.name, *figures])
    header = ["batch", "contestant", "ms a step", "tokens/s", "ratio", flops_unit(results.rates)[0], "of rate"]
    header += ["compile s", "peak MiB"]
    costs = [f"{three_digits(row.flops / row.amount / 1e6)} on {row.contestant.workload}" for row in rows]
    cost, counted = results.measurements[0].contestant.workload.cost, ", ".join(dict.fromkeys(costs))
    what = describe_model(cost.model, cost.vocab_size)
    return create_report(results, "Training", what, header, cells, rows, f"MFLOP a token: {counted}.")


def shorten(obstacle: str) -> str:
    """Return a description of an obstacle that fits into a cell."""
    return next((words for words in ("out of memory", "left out") if words in obstacle), "refused")


def figure_cells(row: Row[Task], rates: Mapping[str, float]) -> list[str]:
    """Return the cells after the contestant's name, empty where there is no figure."""
    usage = row.facts
    return [
        three_digits(row.milliseconds),
        f"{row.per_second:,.0f}",
        *row.speed_cells(rates, bfloat16=uses_bfloat16(row.contestant)),
        "" if usage.compile_seconds is None else f"{usage.compile_seconds:.1f}",
        mebibytes(usage.peak_bytes, 0),
    ]
