"""How fast a training step is: this project's and PyTorch's, on the same full batches, and on the corpus itself."""

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby, product, repeat
from pathlib import Path
from typing import Any

import jax

from benchmarks.cost.step import StepWork, real_tokens
from benchmarks.peers.training import Peer, refusal_of_peer
from benchmarks.turns import Apart, Call, best_in_turns, matrix_products, matrix_size, peak_of_process
from common.errors import UserError
from common.text_table import Table, three_digits
from data.batches.packing import Batch
from data.batches.stream import prefetch
from data.config import DataConfig, TokenizerConfig
from data.prepare import prepare
from model.config import ModelConfig
from model.transformer import build
from training.config import TrainingConfig
from training.devices.preflight import choose_kernels
from training.state import TrainState, init_state
from training.step import Reading, make_train_step

OURS = "puente"
STEPS_A_TURN = 4
TrainStep = Callable[[TrainState, Batch], tuple[TrainState, Reading]]
Row = dict[str, Any]  # of the report: a contestant and its figures


@dataclass(frozen=True)
class Corpus:
    """A corpus that has been read once: its tokenizer lies in ``folder``."""

    data: DataConfig
    tokenizer: TokenizerConfig
    folder: Path
    input_milliseconds: float  # of making a batch, alone


@dataclass(frozen=True)
class Contestant:
    """Who steps, and on what: the fixed batch of ``work``, or a corpus."""

    name: str
    work: StepWork
    training: TrainingConfig
    corpus: Corpus | None = None

    def batch(self) -> str:
        """In words."""
        return "the corpus" if self.corpus else str(self.work)

    def is_narrow(self) -> bool:
        """Whether the operands of its matrix products are bfloat16."""
        ours = self.name.startswith(OURS)
        return self.work.model.matmul_dtype == "bfloat16" if ours else self.name.endswith("bfloat16")


def contestants_of(
    models: dict[str, ModelConfig],
    works: list[StepWork],
    kernels: list[str],
    peers: tuple[str, ...],
    training: TrainingConfig,
) -> list[Contestant]:
    """On each of ``works``: every model, by the name that it has here, with every kernel, and the peers.

    The model of the works themselves is what the peers have the dimensions of.
    """
    contestants = []
    for work in works:
        for (name, model), kernel in product(models.items(), kernels):
            full_name = f"{name} {kernel}" if len(kernels) > 1 else name
            contestants.append(Contestant(full_name, replace(work, model=replace(model, kernel=kernel)), training))
        contestants += [Contestant(peer, work, training) for peer in peers]
    return contestants


class Refused(Exception):
    """A contestant cannot step; the text ends a sentence that begins with its name."""


def read_corpus(data: DataConfig, tokenizer: TokenizerConfig, seed: int, folder: Path) -> tuple[Corpus, int]:
    """The corpus, made ready in ``folder``, and its vocabulary's size. UserError if it cannot be read.

    A batch takes no time where its window is packed already. So what it costs is measured by an epoch of which no
    window has been packed.
    """
    prepared = prepare(data, tokenizer, seed, folder)
    start = time.perf_counter()
    steps = prepared.stream.steps_in(1)
    milliseconds = 1e3 * (time.perf_counter() - start) / steps
    prepared.save(folder)
    return Corpus(data, tokenizer, folder, milliseconds), prepared.tokenizer.vocab_size


def contestant_ready(contestant: Contestant) -> dict[str, Call]:
    """For a process of its own: its step, taken twice, and its figures so far. Refused if it cannot."""
    jax.config.update("jax_enable_compilation_cache", False)  # what compiling takes is a figure
    try:
        taking = stepper(contestant)
        jax.block_until_ready(taking())
    except (RuntimeError, ValueError, UserError) as error:  # no room on the device, or a kernel that cannot serve
        raise Refused(reason(error)) from None
    return {"step": taking, "figures": taking.figures}


def stepper(contestant: Contestant) -> "Puente | Peer":
    if contestant.name.startswith(OURS):
        return Puente(contestant)
    return Peer(contestant.name, contestant.work, contestant.training)


def reason(error: Exception) -> str:
    """The end of a sentence, on one line."""
    if isinstance(error, BrokenProcessPool):
        return "out of memory: its process was ended"
    told = str(error).partition("\n")[0]
    if "RESOURCE_EXHAUSTED" in told or "out of memory" in told.lower():
        return "out of memory"
    return told if isinstance(error, UserError) else f"fails: {told}"


class Puente:
    """This project's training step as train.py takes it, and what it took."""

    def __init__(self, contestant: Contestant):
        self.batches, self.work = batches_of(contestant)
        self.kernels = choose_kernels(self.work.model, (self.work.sources, self.work.targets))
        self.state, self.train_step = start(self.work, contestant.training)
        self.steps = self.tokens = 0
        self.compile_seconds = self.seconds() - self.seconds()

    def __call__(self) -> Any:
        batch = next(self.batches)
        self.state, reading = self.train_step(self.state, batch)
        self.steps, self.tokens = self.steps + 1, self.tokens + real_tokens(batch)
        return reading

    def seconds(self) -> float:
        """Of one step: of the first, with compiling it."""
        start = time.perf_counter()
        jax.block_until_ready(self())
        return time.perf_counter() - start

    def figures(self) -> dict[str, Any]:
        """Of all steps so far; tokens are real ones, of a step on average."""
        tokens = self.tokens / self.steps
        figures: Row = {"compile_seconds": self.compile_seconds, "peak_bytes": peak_of_process(), "tokens": tokens}
        figures |= {"sources": self.work.sources, "targets": self.work.targets, "flops": self.work.flops()}
        figures |= {"kernels": sorted(set(self.kernels.values()))}
        return figures | {"padding": 1 - tokens / self.work.places(), "parameters": self.work.parameters()}


def start(work: StepWork, training: TrainingConfig) -> tuple[TrainState, TrainStep]:
    """The state before the first step, and the compiled step."""
    state = init_state(work.model, training, work.vocab_size)
    return state, make_train_step(build(work.model, work.vocab_size), training)


def batches_of(contestant: Contestant) -> tuple[Iterator[Batch], StepWork]:
    """The batches to step on, and their work: a corpus has row lengths of its own."""
    if contestant.corpus is None:
        return repeat(contestant.work.batch()), contestant.work
    corpus = contestant.corpus
    stream = prepare(corpus.data, corpus.tokenizer, contestant.training.seed, corpus.folder).stream
    source, target = stream.row_lengths
    return prefetch(stream, 0, corpus.data.prefetch), replace(contestant.work, sources=source, targets=target)


def measure_steps(contestants: list[Contestant], rounds: int) -> tuple[list[Row], dict[str, float], list[str]]:
    """A row for each contestant, the machine's rates in FLOP/s by their names, and who could not take part and why.

    On a CPU all that step on the same batch take turns with each other; a GPU holds one at a time, which takes turns
    with plain matrix products only, so that none is short of memory for another's sake.
    """
    rows: list[Row] = []
    notes: list[str] = []
    fastest: dict[str, float] = {}
    narrow = any(contestant.is_narrow() for contestant in contestants)
    with closing(Apart(partial(matrix_products, narrow))) as machine:
        for group in together(contestants):
            of_group, missing, milliseconds = measure_group(group, machine, rounds)
            rows, notes = rows + of_group, notes + missing
            fastest = {name: min(ms, fastest.get(name, ms)) for name, ms in milliseconds.items()}
    rates = {name: 2e3 * matrix_size()[0] ** 3 / ms for name, ms in fastest.items()}
    return with_ratios([with_share(row, rates) for row in rows]), rates, notes


def together(contestants: list[Contestant]) -> list[list[Contestant]]:
    """Those that take turns with each other."""
    if jax.default_backend() == "gpu":
        return [[contestant] for contestant in contestants]
    return [list(group) for _, group in groupby(contestants, key=Contestant.batch)]


def measure_group(
    group: list[Contestant], machine: Apart, rounds: int
) -> tuple[list[Row], list[str], dict[str, float]]:
    """Rows, notes, and the milliseconds of the matrix products."""
    print(f"preparing {', '.join(who.name for who in group)} on {group[0].batch()}", file=sys.stderr)
    with ExitStack() as stack:
        entered = [(contestant, enter(stack, contestant)) for contestant in group]
        able = {contestant.name: apart for contestant, apart in entered if isinstance(apart, Apart)}
        timers = {name: partial(seconds_of_step, apart) for name, apart in able.items()}
        products = {f"product {name}": partial(machine.seconds, name) for name in machine.names}
        print("measuring", file=sys.stderr)
        times = best_in_turns(timers | products, rounds)
        rows = [
            row_of(contestant, times[contestant.name], apart.result("figures"))
            if isinstance(apart, Apart)
            else {**kind_of(contestant), "refused": apart}
            for contestant, apart in entered
        ]
    notes = [f"{who.name} on {who.batch()}: {apart}" for who, apart in entered if isinstance(apart, str)]
    return rows, notes, {name: times[f"product {name}"] for name in machine.names}


def seconds_of_step(apart: Apart, turns: int) -> float:
    """Mean time of a step: one alone would pay for what the others' turns did to memory and caches."""
    return apart.seconds("step", STEPS_A_TURN * turns)


def enter(stack: ExitStack, contestant: Contestant) -> Apart | str:
    """Its process, or why it cannot take part."""
    if told := refusal(contestant):
        return told
    try:
        return stack.enter_context(closing(Apart(partial(contestant_ready, contestant))))
    except (Refused, BrokenProcessPool) as error:
        return str(error) if isinstance(error, Refused) else reason(error)


def refusal(contestant: Contestant) -> str:
    """Why a contestant cannot step, as far as one sees without trying; nothing if it can."""
    work = contestant.work
    if not contestant.name.startswith(OURS):
        return refusal_of_peer(contestant.name, work)
    try:
        choose_kernels(work.model, (work.sources, work.targets))
    except UserError as error:
        return str(error)
    return ""


def kind_of(contestant: Contestant) -> Row:
    """What tells a row from the others."""
    work = contestant.work
    return {
        "contestant": contestant.name,
        "batch": contestant.batch(),
        "rows": work.rows,
        "sources": work.sources,
        "targets": work.targets,
        "sentences": None if contestant.corpus else work.sentences,
        "operands": "bfloat16" if contestant.is_narrow() else "float32",
    }


def row_of(contestant: Contestant, milliseconds: float, figures: dict[str, Any]) -> Row:
    """A contestant's figures, where its own come before those of its work."""
    work, corpus = contestant.work, contestant.corpus
    if corpus:
        milliseconds = with_input(milliseconds, corpus.input_milliseconds)
    row = kind_of(contestant) | {"tokens": work.places(), "flops": work.flops(), "padding": 0.0, "refused": None}
    row |= figures | {"milliseconds": milliseconds, "bytes": work.bytes(contestant.training)}
    row["input_milliseconds"] = corpus.input_milliseconds if corpus else None
    row["tokens_per_second"] = 1e3 * row["tokens"] / milliseconds
    row["flops_per_second"] = 1e3 * row["flops"] / milliseconds
    return row


def with_input(milliseconds: float, input_milliseconds: float) -> float:
    """A step and its share of the packing, which in turns happens while another has the machine.

    A CPU does both on the same cores, which is at most their sum; beside an accelerator the longer one counts.
    """
    on_cpu = jax.default_backend() == "cpu"
    return milliseconds + input_milliseconds if on_cpu else max(milliseconds, input_milliseconds)


def with_share(row: Row, rates: dict[str, float]) -> Row:
    """The row with its share of the best rate that plain products of its operands reach."""
    if row["refused"]:
        return row
    narrow = {name: rate for name, rate in rates.items() if name.endswith("bfloat16")}
    wide = {name: rate for name, rate in rates.items() if name not in narrow}
    rate = max((narrow if narrow and row["operands"] == "bfloat16" else wide).values())
    return row | {"share_of_rate": row["flops_per_second"] / rate}


def with_ratios(rows: list[Row]) -> list[Row]:
    """Ratios of tokens a second to MarianMT on the same batch or, where it is missing, to who comes first there."""
    able = [row for row in rows if not row["refused"]]
    against = {row["batch"]: row for row in chain(reversed(able), filter(is_marian, able))}
    return [row if row["refused"] else row | ratio_to(against[row["batch"]], row) for row in rows]


def is_marian(row: Row) -> bool:
    return str(row["contestant"]).startswith("marian")


def ratio_to(other: Row, row: Row) -> Row:
    return {"ratio": row["tokens_per_second"] / other["tokens_per_second"], "ratio_to": other["contestant"]}


def training_table(report: dict[str, Any]) -> Table:
    """The report's rows."""
    prefix, unit = unit_of(report)
    header = ["batch", "contestant", "ms a step", "tokens/s", "ratio", f"{prefix}FLOP/s", "of rate", "compile s"]
    rows = [[row["batch"], row["contestant"], *cells_of(row, unit)] for row in report["rows"]]
    return Table("Training", note_of(report), [*header, "peak MiB", "padding"], rows)


def unit_of(report: dict[str, Any]) -> tuple[str, float]:
    """Its prefix and size, fit for a CPU or for a GPU."""
    return ("T", 1e12) if max(report["matrix_flops_per_second"].values()) >= 1e13 else ("G", 1e9)


def cells_of(row: Row, unit: float) -> list[str]:
    """Eight figures; an empty cell is one that there is not."""
    if row["refused"]:
        return ["out of memory" if "out of memory" in row["refused"] else "refused", *[""] * 7]
    compiled, peak = row["compile_seconds"], row["peak_bytes"]
    return [
        three_digits(row["milliseconds"]),
        f"{row['tokens_per_second']:,.0f}",
        f"{row['ratio']:.2f}",
        three_digits(row["flops_per_second"] / unit),
        f"{row['share_of_rate']:.0%}",
        "" if compiled is None else f"{compiled:.1f}",
        "" if peak is None else f"{peak / 2**20:,.0f}",
        f"{row['padding']:.1%}",
    ]


def note_of(report: dict[str, Any]) -> str:
    """What was measured, and where."""
    model, machine, (prefix, unit) = report["model"], report["environment"], unit_of(report)
    on_cpu = jax.default_backend() == "cpu"
    where = f"{machine['processors']} cores of {report['processor']}" if on_cpu else machine["devices"][0]
    layers = f"{model['encoder_layers']} + {model['decoder_layers']} layers of width {model['d_model']}"
    rates = [f"{name} {rate / unit:.0f}" for name, rate in report["matrix_flops_per_second"].items()]
    able = [row for row in report["rows"] if not row["refused"]]
    costs = {f"{three_digits(row['flops'] / row['tokens'] / 1e6)} on {row['batch']}": None for row in able}
    against = ", ".join(dict.fromkeys(row["ratio_to"] for row in able))
    return (
        f"{layers}, vocabulary {report['vocab_size']:,} on {where}; best of {report['rounds']}; ratio to {against}. "
        f"MFLOP a token: {', '.join(costs)}. Products of {matrix_size()[0]} rows, {prefix}FLOP/s: {', '.join(rates)}."
    )
