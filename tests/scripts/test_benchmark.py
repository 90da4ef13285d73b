"""python scripts/benchmark.py, as a user calls it, at sizes of a moment."""

import json
import re
from functools import partial

import pytest

from benchmarks.training import check_plain
from configs.load import load_config
from scripts import benchmark
from tests.benchmarks.small import DECODING, RUNS_ON_CPU

PROGRAM = "scripts/benchmark.py"


def cells(line: str) -> list[str]:
    """The cells of a printed row."""
    return re.split(r"  +", line.strip())


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """The program in this process, which does not start again, with a small model; returns what it prints and writes.

    XLA spares itself the effort in the processes that it starts: nothing here depends on speed.
    """

    def run(*arguments):
        options = "--rounds", "1", "--json", f"{tmp_path}/report"
        monkeypatch.setattr("sys.argv", [PROGRAM, *map(str, arguments), *options])
        monkeypatch.setattr(benchmark, "use_cores", lambda count: None)
        monkeypatch.setattr(benchmark, "decoding_cost", lambda gpu: DECODING)
        monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
        monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or the program sets it, for good
        benchmark.main()
        printed, written, path = capsys.readouterr().out.rpartition("\n\nwritten  ")
        assert written and path.strip() == f"{tmp_path}/report"
        return printed, json.loads((tmp_path / "report").read_text(encoding="utf-8"))

    return run


@pytest.mark.nightly
def test_attention_is_measured_on_one_core(call, tmp_path):
    options = "--kernels", "definition", "--rounds", 1, "--json", tmp_path / "figures" / "a.json"
    call(PROGRAM, "attention", "--sizes", "2,2,8,4;1,2,16,4", *options)
    report = json.loads((tmp_path / "figures" / "a.json").read_text(encoding="utf-8"))
    assert report["command"].startswith("python scripts/benchmark.py attention --sizes '2,2,8,4;1,2,16,4' ")
    assert report["environment"]["XLA_FLAGS"] == "--xla_cpu_multi_thread_eigen=false"


@RUNS_ON_CPU
def test_mistakes_end_in_one_line_and_code_2(refuses, small_experiment, tmp_path):
    mistake = partial(refuses, benchmark.main)
    mistake("COMMAND")
    for command in ("attention", "decode", "train"):
        mistake("argument --rounds: 0 must be a whole number from 1", command, "--rounds", 0)
        mistake("is a folder; name a file", command, "--json", tmp_path)
        mistake("JAX sees no GPU here but a cpu", command, "--gpu")
    mistake("there is no flash here; choose from definition,xla,chunked", "attention", "--kernels", "definition,flash")
    mistake("--sizes: 1,2,3 is not of the form B,N,T,H", "attention", "--sizes", "1,2,3")
    mistake("--sizes: 0 must be a whole number from 1", "attention", "--sizes", "1,1,1,1;1,0,3,4")
    mistake("--beams: two must be a whole number from 1", "decode", "--beams", "1,two")
    mistake("there is no fairseq here; choose from puente,puente-bfloat16", "decode", "--contestants", "puente,fairseq")
    known = "there is no puente-bfloat16 on a GPU; choose from puente,ctranslate2"
    mistake(known, "decode", "--gpu", "--contestants", "puente-bfloat16")
    mistake("--rows: 0 must be a whole number from 1", "train", "--rows", "2,0")
    mistake("--sentences=17 must be at most the 16 tokens of a row", "train", "--sentences", 17)
    mistake("one CONFIG at a time, not a.yaml and b.yaml", "train", "a.yaml", "b.yaml")
    mistake("there is no config file a.yaml", "train", "a.yaml")
    mistake("unknown key model.width", "train", small_experiment, "model.width=3")
    other = "--against: data.batch_rows=8 must be a model.key=value or a training.key=value"
    mistake(other, "train", small_experiment, "--against", "model.d_ff=48 data.batch_rows=8")


@pytest.mark.slow
@RUNS_ON_CPU
def test_decoding_is_printed_and_written(run):
    printed, report = run("decode", "--beams", "1,3", "--contestants", "puente-bfloat16")
    title, _, _, *rows = printed.splitlines()
    assert title == "DECODING"
    assert [cells(row)[:2] for row in rows] == [[beam, who] for beam in "13" for who in ("puente-bfloat16", "ceiling")]

    assert report["notes"] == [] and {"torch", "transformers", "ctranslate2"} <= set(report)
    row, _ = report["rows"]
    assert (row["amount"], row["contestant"]["workload"]["length"]) == (3, 5)
    assert row["per_second"] == pytest.approx(3000 / row["milliseconds"])


@pytest.fixture
def plan(monkeypatch):
    """The config and the contestants that a command line asks for."""

    def plan(*arguments):
        monkeypatch.setattr("sys.argv", [PROGRAM, "train", *map(str, arguments)])
        parsed = benchmark.command_line()
        config = load_config(*benchmark.choose_experiment(parsed))
        return config, benchmark.training_contestants(parsed, config)

    return plan


def test_the_usual_training_is_that_of_the_peers(plan):
    config, contestants = plan("--peer", "torch")
    operands = [who.workload.cost.model.matmul_dtype for who in contestants]
    assert operands == ["float32", "bfloat16", "float32", "float32", "float32"]
    for peer in contestants[2:]:
        check_plain(peer.workload)
    assert config.training.ema_decay == 0
    _, contestants = plan("model.d_ff=2048", "--rows", "64", "--lengths", "64")
    assert [str(who.workload) for who in contestants] == ["64 × 64 + 64"] * 2
    assert contestants[0].workload.cost.model.d_ff == 2048


def test_a_config_takes_turns_with_its_own_changes(plan, small_experiment):
    """Peers, and the values that are not changed, are those of the experiment."""
    changes = "training.optimizer=muon training.consistency=simcut", "model.kernel=chunked model.d_ff=48"
    options = [option for text in changes for option in ("--against", text)]
    config, contestants = plan(small_experiment, "data.batch_rows=6", *options, "--peer", "torch")
    assert [who.name for who in contestants[:4]] == ["puente", *(f"puente {text}" for text in changes), "marian"]
    plain, two_views, wider, marian = (who.workload for who in contestants[:4])
    assert plain == marian and plain.training == config.training
    assert (two_views.training.optimizer, two_views.training.consistency) == ("muon", "simcut")
    assert two_views.cost == plain.cost
    assert (wider.cost.model.kernel, wider.cost.model.d_ff) == ("chunked", 48) and wider.training == config.training
    assert {str(who.workload) for who in contestants} == {"6 × 64 + 64"}


def test_a_gpu_has_longer_rows_with_more_sentences(plan):
    _, contestants = plan("--gpu", "--lengths", "8,64", "--rows", 3)
    assert {str(who.workload) for who in contestants} == {"3 × 8 + 8", "3 × 64 + 64, 4 sentences a row"}


@pytest.mark.slow
@RUNS_ON_CPU
def test_training_is_printed_and_written(run, small_experiment):
    options = "--lengths", 16, "--sentences", 2, "--kernels", "definition"
    printed, report = run("train", small_experiment, "model.dropout=0", *options)
    title, _, header, first = printed.splitlines()
    assert title == "TRAINING" and cells(header)[2:5] == ["ms a step", "tokens/s", "ratio"]
    assert cells(first)[:2] == ["2 × 16 + 16, 2 sentences a row", "puente"]
    assert report["notes"] == []

    row = report["rows"][0]
    facts = row["facts"]
    assert (row["contestant"]["workload"]["cost"]["rows"], row["amount"], facts["kernels"]) == (2, 64, ["definition"])
    assert row["per_second"] == pytest.approx(64e3 / row["milliseconds"])
    assert facts["peak_bytes"] > 0 and facts["compile_seconds"] > 0
    assert (report["model"]["d_model"], report["vocab_size"]) == (16, 300)
