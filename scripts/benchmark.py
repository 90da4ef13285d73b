"""How fast this project is, beside others: python scripts/benchmark.py attention|decode|train [options].

All contestants take turns in one run. Compare their ratios: the milliseconds are those of one machine on one day.
docs/benchmarks.md has figures, and says what bounds them.
"""

import argparse
import itertools
import json
import os
import re
import shlex
import sys
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax

from attention import KERNELS
from benchmarks.attention import Case, Row, add_peaks, measure
from benchmarks.cost.decoding import Work
from benchmarks.cost.step import StepWork
from benchmarks.decoding import (
    CONTESTANTS,
    able,
    beams_of,
    checked,
    decoding_table,
    names_of,
    prepare,
    rows_of,
    text_row,
    text_table,
)
from benchmarks.peers.decoding import versions
from benchmarks.peers.training import GPU_PEERS, PEERS
from benchmarks.startup import seconds_to_first_step, start_table
from benchmarks.training import OURS, Contestant, contestants_of, measure_steps, read_corpus, training_table
from benchmarks.turns import (
    Apart,
    all_cores,
    best_in_turns,
    matrix_products,
    matrix_size,
    processor,
    torch_if_installed,
    use_cores,
)
from cli.load_run import load_run
from common.errors import UserError, exit_on_user_error
from common.files import write_atomically
from common.text_table import Table, as_markdown, as_text, three_digits
from configs.load import load_config, load_run_config
from configs.schema import RunConfig
from data.sources.corpus import load_held_out
from evaluation.evaluate import evaluate
from model.config import ModelConfig
from training.run.environment import describe_environment

ATTENTION = """Time attention, forward alone and with the gradients of query, key and value: every kernel of this
project that can serve, jax.nn.dot_product_attention called directly in its own layout, and PyTorch's
scaled_dot_product_attention where torch is installed (pip install -e '.[bench]').

On one thread of a CPU in float32; with --gpu on a GPU in bfloat16, with and without causality and packing.

  ratio     milliseconds by those of torch, or of jax.nn where there is no torch
  of rate   share of the machine's rate in matrix products, counting the products that the contestant makes
  temp MiB  what XLA plans for the gradients, beside inputs and results
  peak MiB  by how much they raise the memory of a fresh process, results included; at the largest size
"""
EXAMPLES = """examples:
  python scripts/benchmark.py attention --machine-rate --json attention.json
  python scripts/benchmark.py attention --kernels definition,chunked --sizes "16,8,128,64;2,8,1024,64" --causal
  python scripts/benchmark.py attention --gpu --markdown
"""
DECODE = """Time decoding, greedy and by beam search: random sentences of one length, exactly so many tokens for each,
from models of the same dimensions with random weights, source tokens in and target tokens out.

  puente            this project in float32; puente-bfloat16 has bfloat16 operands in matrix products
  marian            generate of transformers' MarianMT, on PyTorch
  ctranslate2       CTranslate2 in float32; ctranslate2-2x1 has two workers of one thread, each with half of the batch,
                    ctranslate2-int8 has weights and products in 8 bits

On two cores of a CPU: 3 + 3 layers, width 256, feed-forward 1024, 4 heads, vocabulary 8000. With --gpu on a GPU: the
dimensions of configs/tatoeba-base.yaml, everything in bfloat16. Each contestant has a process of its own. The others
take part where they are installed: pip install -e '.[bench]'.

  ratio    sentences a second by those of ctranslate2, or of puente where there is no CTranslate2
  of rate  share of the machine's rate in matrix products, on a CPU in float32: other operands may pass 100%
  ceiling  sentences a second if all matrix products ran at that rate, and nothing else took time

With --run RUN also real text: the run's test set with the run's own settings, translated once to compile, then timed.
"""
DECODE_EXAMPLES = """examples:
  python scripts/benchmark.py decode --machine-rate --json decode.json
  python scripts/benchmark.py decode --contestants puente,ctranslate2 --beams 5 --rounds 10
  python scripts/benchmark.py decode --run runs/tatoeba-small --markdown
"""
TRAIN = """Time training steps, from a batch to new parameters, on full batches: a real token at every place of every
row. And, if the config's corpus can be read, steps on its packed rows, as train.py takes them.

  puente, puente-bfloat16          this project in float32, and with bfloat16 operands in matrix products; with a CONFIG
                                   puente is what that says
  marian, torch, torch-bfloat16    with --peer torch: transformers' MarianMT and torch's nn.Transformer of the same
                                   dimensions, the last under autocast to bfloat16 (pip install -e '.[bench]')

Without CONFIG: 3 + 3 layers, width 256, feed-forward 1024, 4 heads, vocabulary 8000, and 256 rows of 16 + 16 tokens, on
all cores of a CPU. With --gpu on a GPU: configs/transformer-base.yaml, several sentences a row, a sweep over rows and
kernels. Each contestant has a process of its own. CONFIG and its key=value stand side by side.

  tokens/s   real ones, source and target
  ratio      tokens a second by those of marian, or of the first contestant on the same batch where there is none
  of rate    model FLOP/s by the machine's rate in matrix products of such operands, measured in the same turns
  compile s  the first step less the second
  peak MiB   of the process, compiling included; on a GPU of the device
"""
TRAIN_EXAMPLES = """examples:
  python scripts/benchmark.py train --peer torch --json train.json
  python scripts/benchmark.py train --peer torch --rows 64 --lengths 64 --no-corpus
  python scripts/benchmark.py train configs/tatoeba-small.yaml model.kernel=chunked --start
  python scripts/benchmark.py train configs/transformer-big.yaml --gpu --rows 64,128,256 --kernels cudnn,auto --markdown
"""
SIZES = "64,4,16,64;16,8,128,64;2,8,1024,64;1,8,4096,64"
GPU_TOKENS, GPU_LENGTHS = 16384, (64, 128, 256, 512, 1024, 2048, 4096, 8192)
ROOT = Path(__file__).parents[1]
GPU_CONFIG, GPU_BATCH = ROOT / "configs/tatoeba-base.yaml", 512
# What the peers were measured with: a corpus, our usual dimensions and no averaging of parameters.
RECIPE, RECIPE_CHANGES = ROOT / "configs/tatoeba-small.yaml", ["model.matmul_dtype=float32", "training.ema_decay=0"]
ROWS, LENGTH, SENTENCE = 256, 16, 16  # of a batch; tokens of a row; tokens of a sentence that shares its row
GPU_RECIPE, GPU_ROWS, GPU_KERNELS = ROOT / "configs/transformer-base.yaml", "64,128,256", "definition,xla,cudnn,auto"


def main() -> None:
    """Entry point."""
    arguments = command_line()
    with exit_on_user_error():
        match arguments.command:
            case "attention":
                benchmark_attention(arguments)
            case "decode":
                benchmark_decode(arguments)
            case "train":
                benchmark_training(arguments)


def command_line() -> argparse.Namespace:
    style: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    parser = argparse.ArgumentParser(description=__doc__, **style)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    summary = "attention alone, beside jax.nn and PyTorch"
    attention = commands.add_parser("attention", help=summary, description=ATTENTION, epilog=EXAMPLES, **style)
    attention.add_argument("--sizes", metavar="B,N,T,H;…", help=f"batch rows, heads, positions, width ({SIZES})")
    attention.add_argument("--kernels", metavar="A,B,…", help=f"only these of {','.join(KERNELS)}")
    attention.add_argument("--causal", action="store_true", help="each size also with causality")
    attention.add_argument("--gpu", action="store_true", help="on a GPU: causality, packing and machine rate included")
    add_options(attention)
    summary = "greedy and beam search, beside MarianMT and CTranslate2"
    decode = commands.add_parser("decode", help=summary, description=DECODE, epilog=DECODE_EXAMPLES, **style)
    decode.add_argument("--beams", metavar="K,…", default="1,5", help="beam sizes, 1 is greedy (1,5)")
    decode.add_argument("--batch", type=int, help=f"sentences decoded together ({Work.batch}; on a GPU {GPU_BATCH})")
    decode.add_argument("--sources", type=int, default=Work.sources, help=f"tokens a sentence ({Work.sources})")
    decode.add_argument("--length", type=int, default=Work.length, help=f"tokens generated for it ({Work.length})")
    decode.add_argument("--contestants", metavar="A,B,…", help=f"only these of {','.join(CONTESTANTS)}")
    decode.add_argument("--run", type=Path, metavar="RUN", help="also translate the test set of this run directory")
    decode.add_argument("--gpu", action="store_true", help="on a GPU, machine rate included")
    add_options(decode)
    summary = "the training step, beside MarianMT and nn.Transformer"
    train = commands.add_parser("train", help=summary, description=TRAIN, epilog=TRAIN_EXAMPLES, **style)
    train.add_argument(
        "what", nargs="*", metavar="[CONFIG] [key=value …]", help="an experiment, and values over its own"
    )
    train.add_argument("--rows", metavar="B,…", help=f"rows of a full batch ({ROWS}; data.batch_rows; {GPU_ROWS})")
    train.add_argument("--lengths", metavar="T,…", help=f"tokens of a row on each side ({LENGTH}; data.row_length)")
    train.add_argument(
        "--sentences", type=int, metavar="N", help=f"that share a row (1; on a GPU {SENTENCE} tokens each)"
    )
    train.add_argument("--kernels", metavar="A,B,…", help=f"of attention (model.kernel; on a GPU {GPU_KERNELS})")
    train.add_argument("--peer", choices=["torch"], help="PyTorch models of the same dimensions take turns")
    train.add_argument("--no-corpus", action="store_true", help="full batches only")
    train.add_argument("--start", action="store_true", help="time also train.py, from the command to its first step")
    train.add_argument("--gpu", action="store_true", help="on a GPU, one contestant at a time")
    add_options(train, with_rate=False)
    return parser.parse_args()


def add_options(command: argparse.ArgumentParser, with_rate: bool = True) -> None:
    """What every command has, and the one that training always has."""
    command.add_argument("--rounds", type=int, default=5, help="turns of everyone, of which the best counts (5)")
    if with_rate:
        command.add_argument("--machine-rate", action="store_true", help="time plain matrix products too")
    command.add_argument("--markdown", action="store_true", help="print the table as docs/benchmarks.md has it")
    command.add_argument("--json", metavar="FILE", type=Path, help="write every figure, and what it was made with")


def check_options(arguments: argparse.Namespace) -> None:
    if arguments.rounds < 1:
        raise UserError(f"--rounds={arguments.rounds} must be 1 or more")
    if arguments.json and arguments.json.is_dir():
        raise UserError(f"--json={arguments.json} is a folder; name a file")


def tell(report: dict[str, Any], tables: list[Table], arguments: argparse.Namespace) -> None:
    """Print the tables and what is to be noted, write the report."""
    texts = [as_markdown(table) if arguments.markdown else as_text(table) for table in tables]
    print("\n\n".join([*texts, *filter(None, ["\n".join(report["notes"])])]))
    if arguments.json:
        write_atomically(arguments.json, json.dumps(report, indent=1) + "\n")


def benchmark_attention(arguments: argparse.Namespace) -> None:
    """Measure, print, write."""
    cases = cases_of(arguments.sizes, arguments.gpu, arguments.causal)
    kernels = kernels_of(arguments.kernels)
    check_options(arguments)
    use_gpu() if arguments.gpu else use_cores(1)
    report = measure_all(cases, kernels, arguments.rounds, arguments.gpu or arguments.machine_rate)
    tell(report, [table_of(report)], arguments)


def cases_of(sizes: str | None, gpu: bool, causal: bool) -> list[Case]:
    """What is measured: on a GPU each size with and without causality, with and without eight sentences a row."""
    by_length = ";".join(f"{GPU_TOKENS // length},8,{length},128" for length in GPU_LENGTHS)
    text = sizes or (by_length if gpu else SIZES)
    try:
        shapes = [(int(B), int(N), int(T), int(H)) for B, N, T, H in (size.split(",") for size in text.split(";"))]
    except ValueError:
        raise UserError(f"--sizes={text} is not of the form B,N,T,H;B,N,T,H;…, such as {SIZES}") from None
    if min(map(min, shapes)) < 1:
        raise UserError(f"--sizes={text}: every number must be 1 or more")
    variants = list(itertools.product((False, True) if gpu or causal else (False,), (1, 8) if gpu else (1,)))
    plain = [Case(*shape, dtype="bfloat16" if gpu else "float32") for shape in shapes]
    return [replace(case, causal=hides, sentences=count) for case in plain for hides, count in variants]


def kernels_of(names: str | None) -> list[str]:
    chosen = names.split(",") if names else list(KERNELS)
    for name in chosen:
        if name not in KERNELS:
            raise UserError(f"--kernels: there is no kernel {name}; choose from {','.join(KERNELS)}")
    return chosen


def use_gpu() -> None:
    if jax.default_backend() != "gpu":
        raise UserError(f"--gpu: JAX sees no GPU here but a {jax.default_backend()}; pip install -e '.[cuda]' on one")


def measure_all(cases: list[Case], kernels: list[str], rounds: int, with_rate: bool) -> dict[str, Any]:
    """The report: what ``--json`` writes and ``table_of`` shows."""
    products = matrix_products() if with_rate else {}
    rows: list[Row] = []
    notes: dict[str, None] = {}  # each once, in order
    rates = dict.fromkeys(products, 0.0)
    for case in cases:
        print(f"measuring {case}", file=sys.stderr)
        of_case, milliseconds, missing = measure(case, kernels, rounds, products)
        rows, notes = rows + of_case, notes | dict.fromkeys(missing)
        rates = {name: max(rate, 2e3 * matrix_size()[0] ** 3 / milliseconds[name]) for name, rate in rates.items()}
    if jax.default_backend() == "cpu":
        add_peaks(rows, max(cases, key=Case.scores))
    return facts() | {"rounds": rounds, "matrix_flops_per_second": rates, "rows": rows, "notes": list(notes)}


def facts() -> dict[str, Any]:
    """What the figures were made with."""
    torch = torch_if_installed()
    return {
        "command": shlex.join(["python", "scripts/benchmark.py", *sys.argv[1:]]),
        "processor": processor(),
        "torch": str(torch.__version__) if torch else None,
        "GLIBC_TUNABLES": os.environ.get("GLIBC_TUNABLES", ""),
        "environment": describe_environment(),
    }


def table_of(report: dict[str, Any]) -> Table:
    """The report's rows, and for each case what ``auto`` chooses; a column without any figure is left out."""
    rate, (prefix, unit) = max(report["matrix_flops_per_second"].values(), default=None), unit_of(report)
    rows = []
    for case, group in itertools.groupby(report["rows"], key=lambda row: row["case"]):
        of_case = list(group)
        rows += [[case, row["contestant"], *cells_of(row, rate, unit)] for row in of_case]
        rows.append([case, f"auto: {of_case[0]['auto']}", *[""] * 10])
    more = ["ratio", f"{prefix}FLOP/s", "of rate"]
    header = ["B,N,T,H", "contestant", "forward ms", *more, "with gradients ms", *more, "temp MiB", "peak MiB"]
    used = [any(column) for column in zip(*rows, strict=True)]
    header, *rows = (list(itertools.compress(row, used)) for row in [header, *rows])
    return Table("Attention", note_of(report), header, rows)


def unit_of(report: dict[str, Any]) -> tuple[str, float]:
    """Its prefix and size, fit for a CPU or for a GPU."""
    return ("G", 1e9) if max(report["matrix_flops_per_second"].values(), default=0) < 1e13 else ("T", 1e12)


def cells_of(row: Row, rate: float | None, unit: float) -> list[str]:
    """Ten figures; an empty cell is one that there is not."""
    cells = []
    for kind in ("forward", "gradients"):
        milliseconds, ratio, flops = (row[f"{kind}_{figure}"] for figure in ("ms", "ratio", "flops_per_second"))
        cells += [three_digits(milliseconds), "" if ratio is None else f"{ratio:.2f}"]
        cells += [three_digits(flops / unit), f"{flops / rate:.0%}"] if rate else ["", ""]
    sizes = row["temp_bytes"], row["peak_bytes"]
    return [*cells, *("" if size is None else f"{size / 2**20:,.1f}" for size in sizes)]


def note_of(report: dict[str, Any]) -> str:
    """One line on what was measured, and where."""
    first, on_cpu = report["rows"][0], jax.default_backend() == "cpu"
    where = f"one thread of {report['processor']}" if on_cpu else jax.devices()[0].device_kind
    rows, dtype = matrix_size()
    prefix, unit = unit_of(report)
    rates = [f"{name} {rate / unit:.0f} {prefix}FLOP/s" for name, rate in report["matrix_flops_per_second"].items()]
    machine = f" Products of {dtype} matrices of {rows} rows: {', '.join(rates)}." if rates else ""
    return f"{first['dtype']} on {where}; best of {report['rounds']}; ratio to {first['ratio_to']}.{machine}"


def benchmark_decode(arguments: argparse.Namespace, model: ModelConfig | None = None) -> None:
    """Measure, print, write. ``model`` is for tests: theirs is small."""
    work = work_of(arguments, model)
    beams, names = beams_of(arguments.beams), names_of(arguments.contestants, arguments.gpu)
    check_options(arguments)
    if arguments.run:
        load_run_config(arguments.run)  # whoever mistypes it learns so now
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or on a GPU the first process takes its memory
    use_gpu() if arguments.gpu else use_cores(work.threads)
    report = measure_decoding(work, beams, names, arguments.rounds, arguments.gpu or arguments.machine_rate)
    report["text"] = translate_test_set(arguments.run) if arguments.run else None
    tell(report, [decoding_table(report), *([text_table(report["text"])] if arguments.run else [])], arguments)


def work_of(arguments: argparse.Namespace, model: ModelConfig | None) -> Work:
    """What is decoded; on a GPU by the model of ``GPU_CONFIG``."""
    work = Work(sources=arguments.sources, length=arguments.length)
    if arguments.gpu:
        config = load_config(GPU_CONFIG)
        work = replace(work, model=config.model, vocab_size=config.tokenizer.vocab_size, batch=GPU_BATCH)
    batch = work.batch if arguments.batch is None else arguments.batch
    return checked(replace(work, batch=batch, model=model or work.model))


def measure_decoding(work: Work, beams: list[int], names: list[str], rounds: int, with_rate: bool) -> dict[str, Any]:
    """The report: what ``--json`` writes and ``decoding_table`` shows."""
    present, notes = able(names, work)
    with ExitStack() as stack:
        print(f"preparing {', '.join(present)}", file=sys.stderr)
        prepared = {name: partial(prepare, name, work, beams) for name in present}
        contestants = {name: stack.enter_context(closing(Apart(calls))) for name, calls in prepared.items()}
        timers = {(beam, name): partial(who.seconds, beam) for beam in beams for name, who in contestants.items()}
        machine = stack.enter_context(closing(Apart(matrix_products))) if with_rate else None
        products = {(0, name): partial(machine.seconds, name) for name in machine.names} if machine else {}
        print("measuring", file=sys.stderr)
        times = best_in_turns(timers | products, rounds)
    rates = {name: 2e3 * matrix_size()[0] ** 3 / times[0, name] for _, name in products}
    figures = {"matrix_flops_per_second": rates, "rows": rows_of(work, {key: times[key] for key in timers})}
    return facts() | versions() | {"rounds": rounds, "work": asdict(work)} | figures | {"notes": notes}


def translate_test_set(run_dir: Path) -> dict[str, Any]:
    """How fast a run translates its test set by its own settings, once everything is compiled."""
    print(f"translating the test set of {run_dir}", file=sys.stderr)
    run = load_run(run_dir, [], "benchmarking")
    pairs, _ = load_held_out(run.config.data, "test", run_dir)
    evaluate(run.translator, run.params, pairs)
    evaluation = evaluate(run.translator, run.params, pairs)
    return text_row(str(run_dir), run.step, run.config.decoding, evaluation)


def benchmark_training(arguments: argparse.Namespace) -> None:
    """Measure, print, write."""
    path, overrides = experiment_of(arguments)
    config = load_config(path, overrides)
    contestants = contestants_on_full_batches(arguments, config)
    check_options(arguments)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or on a GPU the first process takes its memory
    use_gpu() if arguments.gpu else use_cores(all_cores())
    with TemporaryDirectory(prefix="puente-benchmark-") as folder:
        report = measure_training(arguments, config, contestants, Path(folder))
        report["start"] = None
        if arguments.start:
            command = [sys.executable, str(ROOT / "train.py"), str(path), *overrides]
            try:
                report["start"] = seconds_to_first_step(command, Path(folder))
            except UserError as error:  # what has been measured is told all the same
                report["notes"].append(str(error))
    tell(report, [training_table(report), *([start_table(report["start"])] if report["start"] else [])], arguments)


def experiment_of(arguments: argparse.Namespace) -> tuple[Path, list[str]]:
    """A config file and what is put over it."""
    overrides = [text for text in arguments.what if "=" in text]
    paths = [Path(text) for text in arguments.what if "=" not in text]
    if len(paths) > 1:
        raise UserError(f"one CONFIG at a time, not {' and '.join(map(str, paths))}")
    if paths:
        return paths[0], overrides
    return (GPU_RECIPE, overrides) if arguments.gpu else (RECIPE, [*RECIPE_CHANGES, "data.batch_rows=64", *overrides])


def contestants_on_full_batches(arguments: argparse.Namespace, config: RunConfig) -> list[Contestant]:
    """Everyone, on a batch for each number of rows and each length of them."""
    gpu, given = arguments.gpu, any("=" not in text for text in arguments.what)
    rows, length = (config.data.batch_rows, config.data.row_length) if given or gpu else (ROWS, LENGTH)
    all_rows = numbers_of("rows", arguments.rows or (GPU_ROWS if gpu else str(rows)))
    lengths = numbers_of("lengths", arguments.lengths or str(length))
    works = []
    for batch_rows, row_length in itertools.product(all_rows, lengths):
        usual = max(1, row_length // SENTENCE) if gpu else 1
        sentences = usual if arguments.sentences is None else arguments.sentences
        if not 1 <= sentences <= row_length:
            raise UserError(f"--sentences={sentences} must be 1 or more, and at most the {row_length} tokens of a row")
        works.append(StepWork(config.model, config.tokenizer.vocab_size, batch_rows, row_length, row_length, sentences))
    kernels = training_kernels_of(arguments.kernels or (GPU_KERNELS if gpu else config.model.kernel))
    peers = () if not arguments.peer else GPU_PEERS if gpu else PEERS
    return contestants_of(models_of(arguments, config), works, kernels, peers, config.training)


def models_of(arguments: argparse.Namespace, config: RunConfig) -> dict[str, ModelConfig]:
    """The config's model; where there is none, in both dtypes of operands."""
    if arguments.gpu or any("=" not in text for text in arguments.what):
        return {OURS: config.model}
    return {OURS: config.model, f"{OURS}-bfloat16": replace(config.model, matmul_dtype="bfloat16")}


def numbers_of(option: str, text: str) -> list[int]:
    """Positive whole numbers, as the command line has them."""
    if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", text):
        raise UserError(f"--{option}={text} is not of the form N,N,…, numbers of 1 or more")
    return [int(number) for number in text.split(",")]


def training_kernels_of(names: str) -> list[str]:
    return ["auto" if name == "auto" else kernels_of(name)[0] for name in names.split(",")]


def measure_training(
    arguments: argparse.Namespace, config: RunConfig, contestants: list[Contestant], folder: Path
) -> dict[str, Any]:
    """The report: what ``--json`` writes and ``training_table`` shows. ``folder`` is for the corpus's tokenizer."""
    on_corpus, absent = ([], []) if arguments.no_corpus else contestants_on_corpus(arguments, config, folder)
    rows, rates, missing = measure_steps([*contestants, *on_corpus], arguments.rounds)
    plan = {"model": asdict(config.model), "vocab_size": config.tokenizer.vocab_size, "rounds": arguments.rounds}
    plan["training"] = asdict(config.training)
    notes = [*missing, *absent]
    return facts() | versions() | plan | {"matrix_flops_per_second": rates, "rows": rows, "notes": notes}


def contestants_on_corpus(
    arguments: argparse.Namespace, config: RunConfig, folder: Path
) -> tuple[list[Contestant], list[str]]:
    """This project alone: the peers know no packed rows. Or a note why not."""
    print("reading the corpus", file=sys.stderr)
    try:
        corpus, vocab_size = read_corpus(config.data, config.tokenizer, config.training.seed, folder / "corpus")
    except UserError as error:
        return [], [f"no steps on a corpus: {error}"]
    length = config.data.row_length
    models = models_of(arguments, config).items()
    works = {name: StepWork(model, vocab_size, config.data.batch_rows, length, length) for name, model in models}
    return [Contestant(name, work, config.training, corpus) for name, work in works.items()], []


if __name__ == "__main__":
    main()
