"""python scripts/benchmark.py, as a user calls it, at sizes of a moment."""

import importlib.util
import itertools
import json
import re
from dataclasses import asdict, replace

import jax
import pytest

from benchmarks.attention import measure
from benchmarks.decoding import decoding_table, prepare, rows_of
from common.text_table import as_markdown, as_text, three_digits
from configs.load import load_config
from model.config import ModelConfig
from scripts import benchmark

PROGRAM = "scripts/benchmark.py"
SIZES = ["2,2,8,4", "1,2,16,4"]
CONTESTANTS = [*(["torch"] if importlib.util.find_spec("torch") else []), "jax.nn", "definition", "chunked"]
FACTOR = {"torch": 3.5, "jax.nn": 3, "definition": 3, "chunked": 3.5}  # of the operations forward, for the gradients
RUNS_ON_CPU = pytest.mark.skipif(jax.default_backend() != "cpu", reason="has the contestants of a CPU")


@pytest.fixture(scope="module")
def measured(call, tmp_path_factory):
    """What is printed, and the JSON file, of one run."""
    file = tmp_path_factory.mktemp("benchmark") / "figures" / "attention.json"
    options = "--kernels", "definition,chunked,tpu", "--machine-rate", "--rounds", 1
    done = call(PROGRAM, "attention", "--sizes", ";".join(SIZES), *options, "--json", file)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode(), json.loads(file.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_table_has_every_contestant_at_every_size(measured):
    printed, report = measured
    *table, empty, missing = printed.splitlines()
    assert (empty, missing) == ("", "tpu needs a TPU, and this is a cpu")
    title, note, header, *rows = table
    assert title == "ATTENTION" and note.startswith("float32 on one thread of ") and "GFLOP/s" in note
    columns = re.split(r"  +", header.strip())
    assert columns[:6] == ["B,N,T,H", "contestant", "forward ms", "ratio", "GFLOP/s", "of rate"]
    assert columns[6:10] == ["with gradients ms", "ratio", "GFLOP/s", "of rate"]
    shown = [tuple(re.split(r"  +", row.strip())[:2]) for row in rows]
    assert shown == list(itertools.product(SIZES, [*CONTESTANTS, "auto: definition"]))
    measured = [(row["case"], row["contestant"]) for row in report["rows"]]
    assert measured == list(itertools.product(SIZES, CONTESTANTS))


@pytest.mark.slow
def test_ratios_are_quotients_and_rates_are_operations_by_time(measured):
    _, report = measured
    milliseconds = {(row["case"], row["contestant"]): row for row in report["rows"]}
    for (case, name), row in milliseconds.items():
        assert row["ratio_to"] == CONTESTANTS[0]
        # Of 2 products of B·N·T·T·H multiplications and additions: 2,2,8,4 and 1,2,16,4 have 1024 and 2048 of them.
        forward = 2 * 2 * {"2,2,8,4": 1024, "1,2,16,4": 2048}[case]
        for kind, flops in (("forward", forward), ("gradients", forward * FACTOR[name])):
            ms = row[f"{kind}_ms"]
            assert row[f"{kind}_ratio"] == ms / milliseconds[case, CONTESTANTS[0]][f"{kind}_ms"]
            assert row[f"{kind}_flops_per_second"] == pytest.approx(1e3 * flops / ms)


@pytest.mark.slow
def test_the_json_file_says_what_the_figures_were_made_with(measured):
    _, report = measured
    assert report["command"].startswith("python scripts/benchmark.py attention --sizes '2,2,8,4;1,2,16,4' ")
    assert report["processor"] and report["environment"]["packages"]["jax"] == jax.__version__
    assert report["environment"]["XLA_FLAGS"] == "--xla_cpu_multi_thread_eigen=false"
    assert set(report["matrix_flops_per_second"]) == {"jax", *CONTESTANTS} & {"jax", "torch"}
    for row in report["rows"]:
        assert (row["temp_bytes"] is None) == (row["contestant"] == "torch")
        assert row["peak_bytes"] is None or row["case"] == "1,2,16,4"


@pytest.mark.slow
def test_markdown_has_the_same_rows(measured):
    _, report = measured
    title, _, note, _, header, rule, *rows = as_markdown(benchmark.table_of(report)).splitlines()
    assert title == "## Attention" and "best of 1; ratio to" in note
    assert header.startswith("| B,N,T,H | contestant | forward ms | ratio |")
    assert header.count("|") == rule.count("|") == 13
    assert len(rows) == len(SIZES) * (len(CONTESTANTS) + 1)


@pytest.fixture
def mistake(monkeypatch, capsys):
    """The program in this process; returns its exit code and what it prints to standard error."""

    def mistake(*arguments):
        monkeypatch.setattr("sys.argv", [PROGRAM, *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            benchmark.main()
        out, err = capsys.readouterr()
        assert out == ""
        return stopped.value.code, err

    return mistake


@RUNS_ON_CPU
def test_mistakes_end_in_one_line_and_code_2(mistake, tmp_path):
    mistakes: dict[str, list[object]] = {
        "there is no kernel flash; choose from definition,xla,chunked": ["--kernels", "definition,flash"],
        "--sizes=1,2,3 is not of the form B,N,T,H": ["--sizes", "1,2,3"],
        "--sizes=1,2,3,x is not of the form B,N,T,H": ["--sizes", "1,2,3,x"],
        "every number must be 1 or more": ["--sizes", "1,1,1,1;1,0,3,4"],
        "--rounds=0 must be 1 or more": ["--rounds", 0],
        "is a folder; name a file": ["--json", tmp_path],
        "JAX sees no GPU here but a cpu": ["--gpu"],
    }
    for message, arguments in mistakes.items():
        code, told = mistake("attention", *arguments)
        assert code == 2, message
        assert told.startswith("error: ") and message in told and told.count("\n") == 1, told
    code, told = mistake()
    assert code == 2 and "COMMAND" in told


@RUNS_ON_CPU
def test_mistakes_in_decoding_end_in_one_line_and_code_2(mistake, tmp_path):
    mistakes: dict[str, list[object]] = {
        "--beams=1,two is not of the form K,K": ["--beams", "1,two"],
        "--beams=0,5: every beam size must be 1 or more": ["--beams", "0,5"],
        "--batch=0 must be 1 or more": ["--batch", 0],
        "--sources=0 must be 1 or more": ["--sources", 0],
        "--length=-1 must be 1 or more": ["--length", -1],
        "there is no fairseq here; choose from puente,puente-bfloat16,marian": ["--contestants", "puente,fairseq"],
        "there is no puente-bfloat16 here; choose from puente,marian,ctranslate2": [
            "--gpu",
            "--contestants",
            "puente-bfloat16",
        ],
        "--rounds=0 must be 1 or more": ["--rounds", 0],
        "is a folder; name a file": ["--json", tmp_path],
        "is not a run directory: it has no config.yaml": ["--run", tmp_path],
        "JAX sees no GPU here but a cpu": ["--gpu"],
    }
    for message, arguments in mistakes.items():
        code, told = mistake("decode", *arguments)
        assert code == 2, message
        assert told.startswith("error: ") and message in told and told.count("\n") == 1, told


@RUNS_ON_CPU
def test_mistakes_in_training_end_in_one_line_and_code_2(mistake, small_experiment, tmp_path):
    mistakes: dict[str, list[object]] = {
        "--rows=2,0 is not of the form N,N": ["--rows", "2,0"],
        "--lengths=long is not of the form N,N": ["--lengths", "long"],
        "--sentences=17 must be 1 or more, and at most the 16 tokens of a row": ["--sentences", 17],
        "--sentences=0 must be 1 or more": ["--sentences", 0],
        "there is no kernel flash": ["--kernels", "auto,flash"],
        "one CONFIG at a time, not a.yaml and b.yaml": ["a.yaml", "b.yaml"],
        "there is no config file a.yaml": ["a.yaml"],
        "unknown key model.width": [small_experiment, "model.width=3"],
        "--rounds=0 must be 1 or more": ["--rounds", 0],
        "is a folder; name a file": ["--json", tmp_path],
        "JAX sees no GPU here but a cpu": ["--gpu"],
    }
    for message, arguments in mistakes.items():
        code, told = mistake("train", *arguments)
        assert code == 2, message
        assert told.startswith("error: ") and message in told and told.count("\n") == 1, told


def test_help_teaches(call):
    done = call(PROGRAM, "--help")
    assert done.returncode == 0 and b"attention alone, beside jax.nn and PyTorch" in done.stdout
    done = call(PROGRAM, "attention", "--help")
    assert done.returncode == 0 and b"temp MiB" in done.stdout and b"--machine-rate" in done.stdout
    done = call(PROGRAM, "decode", "--help")
    assert done.returncode == 0 and b"ctranslate2-2x1" in done.stdout and b"--machine-rate" in done.stdout


def test_help_of_training_teaches(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [PROGRAM, "train", "--help"])
    with pytest.raises(SystemExit, match="0"):
        benchmark.main()
    told = capsys.readouterr().out
    assert "puente-bfloat16" in told and "--peer" in told and "[CONFIG] [key=value …]" in told


def test_causality_is_beside_what_has_none():
    plain, causal = benchmark.cases_of("1,2,3,4", gpu=False, causal=True)
    assert (plain.causal, causal.causal, str(causal), causal.dtype) == (False, True, "1,2,3,4 causal", "float32")


def test_a_gpu_has_as_many_tokens_at_every_length():
    cases = benchmark.cases_of(None, gpu=True, causal=False)
    assert {case.B * case.T for case in cases} == {16384}
    assert {(case.N, case.H, case.dtype) for case in cases} == {(8, 128, "bfloat16")}
    assert sorted({case.T for case in cases}) == [64, 128, 256, 512, 1024, 2048, 4096, 8192]
    for length in (64, 8192):
        variants = {(case.causal, case.sentences) for case in cases if length == case.T}
        assert variants == {(False, 1), (True, 1), (False, 8), (True, 8)}


@RUNS_ON_CPU
def test_the_measurement_for_a_gpu_runs():
    """On a CPU, at a size of a moment: all but the speed is the same."""
    cases = benchmark.cases_of("1,2,16,8", gpu=True, causal=False)
    rows = [row for case in cases for row in measure(case, ["definition"], 1, {})[0]]
    report = {"rows": rows, "rounds": 1, "matrix_flops_per_second": {"jax": 6e14}, "processor": ""}
    _, note, header, *shown = as_text(benchmark.table_of(report)).splitlines()
    assert "jax 600 TFLOP/s" in note and header.count("TFLOP/s") == 2
    masks = [re.split(r"  +", line)[0].removeprefix("1,2,16,8") for line in shown]
    assert masks == [mask for mask in ("", " packed", " causal", " causal packed") for _ in range(3)]


def test_numbers_keep_three_digits():
    numbers = {0.0123456: "0.0123", 1.5: "1.50", 42.04: "42.0", 123.4: "123", 12345.6: "12,346"}
    assert {number: three_digits(number) for number in numbers} == numbers


SMALL_MODEL = ModelConfig(d_model=16, num_heads=2, head_dim=8, encoder_layers=1, decoder_layers=1, d_ff=32)


@pytest.fixture
def decode(monkeypatch, capsys):
    """The command in this process, which is not started again, with a small model; returns what it prints."""

    def decode(*arguments, model=SMALL_MODEL):
        monkeypatch.setattr("sys.argv", [PROGRAM, "decode", *map(str, arguments)])
        monkeypatch.setattr(benchmark, "use_cores", lambda count: None)
        monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or the program sets it, for good
        benchmark.benchmark_decode(benchmark.command_line(), model)
        return capsys.readouterr().out

    return decode


def test_decoding_is_told_and_written(decode, run_dir, tmp_path):
    sizes = "--batch", 3, "--sources", 4, "--length", 5, "--beams", 1
    options = "--rounds", 1, "--machine-rate", "--run", run_dir, "--json", tmp_path / "decode.json"
    printed = decode(*sizes, *options, "--contestants", "puente")
    first, second = printed.split("\n\n")
    title, note, header, *rows = first.splitlines()
    assert title == "DECODING" and "3 sentences of 4 tokens to 5; MFLOP a sentence: " in note
    assert note.endswith("best of 1; ratio to puente.")
    assert re.split(r"  +", header) == ["beam", "contestant", "sentences/s", "ratio", "GFLOP/s", "of rate"]
    assert [re.split(r"  +", row.strip())[:2] for row in rows] == [["1", "puente"], ["1", "ceiling"]]
    assert second.startswith("DECODING REAL TEXT\n") and str(run_dir) in second

    report = json.loads((tmp_path / "decode.json").read_text(encoding="utf-8"))
    assert (report["work"]["batch"], report["work"]["sources"], report["work"]["length"]) == (3, 4, 5)
    assert report["notes"] == [] and report["environment"]["packages"]["jax"] == jax.__version__
    assert {"torch", "transformers", "ctranslate2"} <= set(report)
    for row in report["rows"]:
        assert row["sentences_per_second"] == pytest.approx(3000 / row["milliseconds"])
        assert row["flops_per_second"] == pytest.approx(row["flops_per_sentence"] * row["sentences_per_second"])
    text = report["text"]
    assert text["sentences"] == 12 and text["step"] == 0 and text["decoding"]["beam_size"] == 2
    assert text["sentences_per_second"] == pytest.approx(12 / text["seconds"])


def test_the_measurement_of_decoding_for_a_gpu_runs(monkeypatch):
    """On a CPU, in small: the dimensions of tatoeba-base, then the same code in bfloat16."""
    monkeypatch.setattr("sys.argv", [PROGRAM, "decode", "--gpu"])
    work = benchmark.work_of(benchmark.command_line(), None)
    model = work.model
    assert (model.encoder_layers, model.decoder_layers, model.d_model, model.d_ff) == (6, 6, 512, 2048)
    assert (work.batch, work.vocab_size, model.dtype, model.matmul_dtype) == (512, 8000, "bfloat16", "bfloat16")
    small = replace(SMALL_MODEL, dtype="bfloat16", matmul_dtype="bfloat16")
    work = replace(work, model=small, vocab_size=50, batch=2, sources=3, length=2)
    assert list(prepare("puente", work, [3])) == [3]
    report = benchmark.facts() | {"work": asdict(work), "rows": rows_of(work, {(3, "puente"): 0.5}), "rounds": 1}
    report["matrix_flops_per_second"] = {"jax": 6e14}
    _, note, header, *rows = as_text(decoding_table(report)).splitlines()
    assert "bfloat16 on " in note and "TFLOP/s" in header
    assert [re.split(r"  +", row.strip())[1] for row in rows] == ["puente", "ceiling"]


@pytest.fixture
def plan(monkeypatch):
    """The contestants that a command line asks for."""

    def plan(*arguments):
        monkeypatch.setattr("sys.argv", [PROGRAM, "train", *map(str, arguments)])
        parsed = benchmark.command_line()
        path, overrides = benchmark.experiment_of(parsed)
        config = load_config(path, overrides)
        return config, benchmark.contestants_on_full_batches(parsed, config)

    return plan


def test_the_usual_training_is_that_of_the_peers(plan):
    config, contestants = plan("--peer", "torch")
    assert [who.name for who in contestants] == ["puente", "puente-bfloat16", "marian", "torch", "torch-bfloat16"]
    assert {str(who.work) for who in contestants} == {"256 × 16 + 16"} and contestants[0].work.vocab_size == 8000
    operands = [who.work.model.matmul_dtype for who in contestants]
    assert operands == ["float32", "bfloat16", "float32", "float32", "float32"]
    assert config.model == ModelConfig() and config.training.ema_decay == 0
    assert config.data.batch_rows * config.data.row_length == 4096
    _, contestants = plan("model.d_ff=2048", "--rows", "64", "--lengths", "64")
    assert [str(who.work) for who in contestants] == ["64 × 64 + 64"] * 2 and contestants[0].work.model.d_ff == 2048


def test_a_config_is_trained_as_it_says(plan, small_experiment):
    config, [only] = plan(small_experiment, "data.batch_rows=6")
    assert (only.name, only.work.model, str(only.work)) == ("puente", config.model, "6 × 64 + 64")


def test_a_gpu_sweeps_over_rows_and_kernels(plan):
    config, contestants = plan("--gpu", "--peer", "torch", "--sentences", 1)
    assert config.model.d_model == 512 and config.model.dtype == "bfloat16"
    works = list(dict.fromkeys(str(who.work) for who in contestants))
    assert works == ["64 × 128 + 128", "128 × 128 + 128", "256 × 128 + 128"]
    kernels = ["puente definition", "puente xla", "puente cudnn", "puente auto"]
    assert [who.name for who in contestants] == [*kernels, "marian-bfloat16", "torch-bfloat16"] * 3
    _, contestants = plan("--gpu", "--lengths", "8,64", "--rows", 3)
    assert {str(who.work) for who in contestants} == {"3 × 8 + 8", "3 × 64 + 64, 4 sentences a row"}


@pytest.fixture
def train(monkeypatch, capsys, small_experiment):
    """The command in this process, which is not started again, with a small model; returns what it prints.

    In the processes that it starts XLA spares itself the effort: nothing here depends on speed.
    """

    def train(*arguments):
        monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
        monkeypatch.setattr("sys.argv", [PROGRAM, "train", str(small_experiment), *map(str, arguments)])
        monkeypatch.setattr(benchmark, "use_cores", lambda count: None)
        monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or the program sets it, for good
        benchmark.benchmark_training(benchmark.command_line())
        return capsys.readouterr().out

    return train


@RUNS_ON_CPU
def test_training_is_told_and_written(train, tmp_path):
    options = "--lengths", 16, "--sentences", 2, "--kernels", "definition,cudnn", "--no-corpus"
    printed = train(
        "model.matmul_dtype=bfloat16", "model.dropout=0", *options, "--rounds", 1, "--json", tmp_path / "train.json"
    )
    title, note, header, first, second, empty, reason = printed.splitlines()
    assert title == "TRAINING" and "best of 1; ratio to puente definition. MFLOP a token: " in note
    assert re.split(r"  +", header)[2:5] == ["ms a step", "tokens/s", "ratio"]
    assert re.split(r"  +", first)[:2] == ["2 × 16 + 16, 2 sentences a row", "puente definition"]
    assert re.split(r"  +", second)[1:] == ["puente cudnn", "refused"]
    assert empty == "" and reason.startswith("puente cudnn on 2 × 16 + 16, 2 sentences a row: model.kernel=cudnn: ")

    report = json.loads((tmp_path / "train.json").read_text(encoding="utf-8"))
    row, refused = report["rows"]
    assert (row["rows"], row["tokens"], row["kernels"], refused["contestant"]) == (
        2,
        64,
        ["definition"],
        "puente cudnn",
    )
    assert row["tokens_per_second"] == pytest.approx(64e3 / row["milliseconds"])
    assert row["flops_per_second"] == pytest.approx(1e3 * row["flops"] / row["milliseconds"])
    rates = report["matrix_flops_per_second"]
    narrow = max(rate for name, rate in rates.items() if name.endswith("bfloat16"))
    assert row["operands"] == "bfloat16" and row["share_of_rate"] == pytest.approx(row["flops_per_second"] / narrow)
    assert row["peak_bytes"] > row["bytes"]["parameters"] and row["compile_seconds"] > 0
    assert report["environment"]["packages"]["jax"] == jax.__version__ and report["start"] is None


@RUNS_ON_CPU
@pytest.mark.slow
def test_training_on_a_corpus_and_its_start_are_timed(train):
    table, start = train("--lengths", 16, "--rounds", 1, "--start").split("\n\n")
    *_, full, corpus = table.splitlines()
    assert re.split(r"  +", full)[0] == "2 × 16 + 16" and re.split(r"  +", full)[-1] == "0.0%"
    assert re.split(r"  +", corpus)[0] == "the corpus" and re.split(r"  +", corpus)[-1] != "0.0%"
    title, _, header, *rows = start.splitlines()
    assert title == "START" and re.split(r"  +", header) == ["kept from before", "seconds"]
    starts = dict(re.split(r"  +", row) for row in rows)
    assert list(starts) == ["nothing", "data", "data and programs"]
    assert min(map(float, starts.values())) > 0


@RUNS_ON_CPU
def test_a_corpus_that_is_not_there_is_left_out_with_a_note(plan, small_experiment, tmp_path):
    config, _ = plan(small_experiment, f"data.root={tmp_path}")
    contestants, [note] = benchmark.contestants_on_corpus(benchmark.command_line(), config, tmp_path / "folder")
    assert contestants == [] and note.startswith("no steps on a corpus: ") and str(tmp_path) in note
