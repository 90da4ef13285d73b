"""Measure the speed of this project next to others: python scripts/benchmark.py attention|decode|train [options].

All contestants take turns in one run. Compare their ratios: milliseconds hold for one machine on one day only.
docs/benchmarks.md has figures, and explains what limits them.
"""

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH

from attention.kernels import KERNELS
from benchmarks.attention import Case, measure_attention
from benchmarks.cost.operations import DecodingCost, StepCost
from benchmarks.decoding import CONTESTANTS, GPU_CONTESTANTS, measure_decoding
from benchmarks.machine import use_cores, use_gpu
from benchmarks.report import Report
from benchmarks.training import GPU_PEERS, OURS, PEERS, Task, list_contestants, measure_training
from benchmarks.turns import Contestant
from cli.command_line import Parser, names_among, output_file, positive_integer, positive_integers, write_and_print
from common.errors import UserError, exit_on_user_error
from common.processor import count_cores
from common.text_table import as_markdown, as_text
from configs.load import load_config
from configs.schema import RunConfig

ROOT = Path(__file__).parents[1]
SIZES = "64,4,16,64;16,8,128,64;2,8,1024,64;1,8,4096,64"
GPU_SIZES = ";".join(f"{16384 // length},8,{length},128" for length in (128, 512, 2048, 8192))
GPU_CONFIG, GPU_BATCH = ROOT / "configs/tatoeba-base.yaml", 512
# The peers were measured with this: a corpus, our usual dimensions and no averaging of parameters.
RECIPE = ROOT / "configs/tatoeba-small.yaml"
RECIPE_CHANGES = (
    "model.positions=sinusoidal model.query_key_norm=false model.matmul_dtype=float32 training.optimizer=adam "
    "training.embedding_rate=1 training.dropout_factor=[] training.ema_decay=0 data.batch_rows=64"
).split()
ROWS, LENGTH, SENTENCE = 256, 16, 16  # rows in a batch; tokens in a row; tokens in a sentence that shares its row
GPU_RECIPE, GPU_ROWS, GPU_KERNELS = ROOT / "configs/transformer-base.yaml", "64,128,256", "definition,xla,cudnn"


@exit_on_user_error()
def main() -> None:
    arguments = command_line()
    report = arguments.measure(arguments)
    table = as_markdown(report.table) if arguments.markdown else as_text(report.table)
    text = "\n\n".join(filter(None, [table, "\n".join(report.json["notes"])]))
    write_and_print(arguments.json, json.dumps(report.json, indent=1) + "\n", text)


def benchmark_attention(arguments: argparse.Namespace) -> Report:
    cases = list_cases(arguments.sizes, arguments.gpu, arguments.causal)
    use_gpu() if arguments.gpu else use_cores(1)
    return measure_attention(cases, arguments.kernels, arguments.rounds, time.monotonic() + 60 * arguments.minutes)


def list_cases(shapes: Sequence[Sequence[int]] | None, gpu: bool, causal: bool) -> list[Case]:
    """Return every size; on a GPU, with and without causality, and with one sentence per row and with eight."""
    dtype, plain = "bfloat16" if gpu else "float32", shapes or sizes(GPU_SIZES if gpu else SIZES)
    masks = list(product((False, True) if gpu or causal else (False,), (1, 8) if gpu else (1,)))
    return [Case(B, N, T, H, dtype, hides, sentences) for B, N, T, H in plain for hides, sentences in masks]


def benchmark_decoding(arguments: argparse.Namespace) -> Report:
    known = GPU_CONTESTANTS if arguments.gpu else CONTESTANTS
    contestants = arguments.contestants or list(known)
    if unknown := [name for name in contestants if name not in known]:
        raise UserError(f"--contestants: there is no {unknown[0]} on a GPU; choose from {','.join(known)}")
    cost = decoding_cost(arguments.gpu)
    use_processes(arguments.gpu, cost.threads)
    return measure_decoding(cost, arguments.beams, contestants, arguments.rounds)


def use_processes(gpu: bool, cores: int) -> None:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else the first process takes all GPU memory
    use_gpu() if gpu else use_cores(cores)


def decoding_cost(gpu: bool) -> DecodingCost:
    """Return the default workload; on a GPU, it has the model of ``GPU_CONFIG``."""
    if not gpu:
        return DecodingCost()
    config = load_config(GPU_CONFIG)
    return DecodingCost(config.model, config.tokenizer.vocab_size, batch=GPU_BATCH)


def benchmark_training(arguments: argparse.Namespace) -> Report:
    config = load_config(*choose_experiment(arguments))
    contestants = training_contestants(arguments, config)
    use_processes(arguments.gpu, count_cores())
    report = measure_training(contestants, arguments.rounds, time.monotonic() + 60 * arguments.minutes)
    settings = {"model": asdict(config.model), "vocab_size": config.tokenizer.vocab_size}
    return replace(report, json=report.json | settings | {"training": asdict(config.training)})


def choose_experiment(arguments: argparse.Namespace) -> tuple[Path, list[str]]:
    """Return a config file and the overrides."""
    overrides = [text for text in arguments.experiment if "=" in text]
    paths = [Path(text) for text in arguments.experiment if "=" not in text]
    if len(paths) > 1:
        raise UserError(f"one CONFIG at a time, not {' and '.join(map(str, paths))}")
    if paths:
        return paths[0], overrides
    return (GPU_RECIPE, overrides) if arguments.gpu else (RECIPE, [*RECIPE_CHANGES, *overrides])


def is_usual(arguments: argparse.Namespace) -> bool:
    """Whether to measure only the peers' recipe, on a CPU."""
    return not arguments.gpu and all("=" in text for text in arguments.experiment)


def training_contestants(arguments: argparse.Namespace, config: RunConfig) -> list[Contestant[Task]]:
    """Return all contestants, with a batch for each number of rows and each row length."""
    gpu = arguments.gpu
    rows, length = (ROWS, LENGTH) if is_usual(arguments) else (config.data.batch_rows, config.data.row_length)
    numbers_of_rows = arguments.rows or (positive_integers(GPU_ROWS) if gpu else [rows])
    costs = []
    for batch_rows, row_length in product(numbers_of_rows, arguments.lengths or [length]):
        sentences = arguments.sentences or (max(1, row_length // SENTENCE) if gpu else 1)
        if sentences > row_length:
            raise UserError(f"--sentences={sentences} must be at most the {row_length} tokens of a row")
        costs.append(StepCost(config.model, config.tokenizer.vocab_size, batch_rows, row_length, row_length, sentences))
    kernels = arguments.kernels or (GPU_KERNELS.split(",") if gpu else [])
    peers = () if not arguments.peer else GPU_PEERS if gpu else PEERS
    return list_contestants(choose_recipes(arguments, config), costs, kernels, peers)


def choose_recipes(arguments: argparse.Namespace, config: RunConfig) -> dict[str, RunConfig]:
    """Return the config (on a CPU, the default in both dtypes) and those of --against; UserError for other batches."""
    recipes = {OURS: config}
    if is_usual(arguments):
        recipes[f"{OURS}-bfloat16"] = replace(config, model=replace(config.model, matmul_dtype="bfloat16"))
    path, overrides = choose_experiment(arguments)
    for changes in arguments.against:
        if others := [change for change in changes.split() if not change.startswith(("model.", "training."))]:
            raise UserError(f"--against: {others[0]} must be a model.key=value or a training.key=value")
        recipes[f"{OURS} {changes}"] = load_config(path, [*overrides, *changes.split()])
    return recipes


def command_line() -> argparse.Namespace:
    parser = Parser(__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    summary = "attention alone, next to jax.nn and PyTorch"
    attention = commands.add_parser("attention", help=summary, **text_of("attention"))
    attention.set_defaults(measure=benchmark_attention)
    add = attention.add_argument
    add("--sizes", type=sizes, metavar="B,N,T,H;…", help=f"batch rows, heads, positions, width ({SIZES})")
    kernels = partial(names_among, KERNELS)
    add("--kernels", type=kernels, default=KERNELS, metavar="NAME,…", help=f"from {','.join(KERNELS)} (all)")
    add("--causal", action="store_true", help="also measure each size with causality")
    add("--gpu", action="store_true", help="on a GPU, with causality and packing")

    decode = commands.add_parser("decode", help="greedy and beam search, next to CTranslate2", **text_of("decode"))
    decode.set_defaults(measure=benchmark_decoding)
    add, contestants = decode.add_argument, partial(names_among, CONTESTANTS)
    add("--beams", type=positive_integers, metavar="K,…", default="1,5", help="beam sizes; 1 is greedy (1,5)")
    add("--contestants", type=contestants, metavar="NAME,…", help=f"from {','.join(CONTESTANTS)} (all)")
    add("--gpu", action="store_true", help="on a GPU")

    summary = "the training step, next to MarianMT and nn.Transformer"
    train = commands.add_parser("train", help=summary, **text_of("train"))
    train.set_defaults(measure=benchmark_training)
    add, kernels = train.add_argument, partial(names_among, ("auto", *KERNELS))
    add("experiment", nargs="*", metavar="[CONFIG] [key=value …]", help="an experiment and overrides")
    add("--rows", type=positive_integers, metavar="B,…", help=f"in a batch ({ROWS}; data.batch_rows; {GPU_ROWS})")
    add("--lengths", type=positive_integers, metavar="T,…", help=f"tokens in a row ({LENGTH}; data.row_length)")
    add("--sentences", type=positive_integer, help=f"sentences per row (1; on a GPU, {SENTENCE} tokens each)")
    add("--kernels", type=kernels, metavar="NAME,…", help=f"(model.kernel; on a GPU {GPU_KERNELS})")
    add("--peer", choices=["torch"], help="add PyTorch models of the same dimensions")
    add("--against", action="append", default=[], metavar='"key=value …"', help="add the experiment with other values")
    add("--gpu", action="store_true", help="on a GPU, one contestant at a time")

    for command in (attention, train):
        explanation = "start no contestant after this many minutes (no limit)"
        command.add_argument("--minutes", type=positive_integer, default=math.inf, help=explanation)
    for command in (attention, decode, train):
        add = command.add_argument
        add("--rounds", type=positive_integer, default=5, help="turns per contestant; the best one counts (5)")
        add("--markdown", action="store_true", help="print Markdown, as in docs/benchmarks.md")
        add("--json", metavar="FILE", type=output_file, help="write all figures, and what they were measured with")
    return parser.parse_args()


def text_of(command: str) -> dict[str, Any]:
    """Return the text that ``--help`` prints before and after a command's options."""
    text = Path(__file__).with_suffix(f".{command}.txt").read_text(encoding="utf-8")
    description, mark, examples = text.partition("examples:")
    return {"description": description, "epilog": mark + examples}


def sizes(text: str) -> list[list[int]]:
    """Parse attention sizes."""
    shapes = [positive_integers(size) for size in text.split(";")]
    if any(len(shape) != 4 for shape in shapes):
        raise argparse.ArgumentTypeError(f"{text} is not of the form B,N,T,H;B,N,T,H;…, such as {SIZES}")
    return shapes


if __name__ == "__main__":
    main()
