"""Contestants that train, and their report."""

import json
from collections.abc import Generator
from dataclasses import replace

import jax
import pytest

from benchmarks.cost.operations import count_tokens
from benchmarks.training import (
    PuenteSteps,
    Recipe,
    Task,
    list_contestants,
    list_on_corpus,
    open_batches,
    report_training,
    usage_of,
)
from configs.load import load_config
from tests.benchmarks.small import MODEL, RUNS_ON_CPU, STEP, TRAINING, measured, refused, results


def test_a_contestant_that_could_not_take_part_has_a_row_that_says_so():
    usage = replace(usage_of(STEP, TRAINING, 27.0, 1000, 2**20), compile_seconds=2.0, kernels=["xla"])
    bfloat16 = replace(STEP, model=replace(MODEL, matmul_dtype="bfloat16"))
    report = report_training(
        results(
            measured("puente", Task(STEP, TRAINING), {"step": 6.0}, usage),
            refused("puente cudnn", Task(STEP, TRAINING), "model.kernel=cudnn: no"),
            measured("marian", Task(STEP, TRAINING), {"step": 3.0}, usage_of(STEP, TRAINING, 27.0, 900, None)),
            refused("puente", Task(replace(STEP, rows=2**20), TRAINING), "out of memory"),
            measured("puente-bfloat16", Task(bfloat16, TRAINING), {"step": 6.0}, usage),
            **{"jax": 1e9, "jax bfloat16": 1e8},
        )
    )
    [table] = report.tables
    header = ["batch", "contestant", "ms a step", "tokens/s", "ratio", "GFLOP/s", "of rate", "compile s", "peak MiB"]
    assert table.header == [*header, "padding"]
    speed = STEP.flops() / 6e-3
    figures = ["6.00", "4,500", "0.50", f"{speed / 1e9:.3f}", f"{speed / 1e9:.0%}", "2.0", "1", "0.0%"]
    assert table.rows[0] == ["3 × 4 + 5", "puente", *figures]
    assert table.rows[1] == ["3 × 4 + 5", "puente cudnn", "refused", *[""] * 7]
    assert table.rows[2][7:] == ["", "", "0.0%"]
    assert table.rows[3] == ["1048576 × 4 + 5", "puente", "out of memory", *[""] * 7]
    assert table.rows[4][6] == f"{speed / 1e8:.0%}"  # of products with the same operands
    assert "; ratio to marian. MFLOP a token: " in table.note
    assert report.json["notes"] == ["puente cudnn: model.kernel=cudnn: no", "puente on 1048576 × 4 + 5: out of memory"]

    ours, refusal, marian, *_, last = report.json["rows"]
    assert (ours["rows"], ours["tokens"], ours["kernels"], ours["ratio_to"]) == (3, 27, ["xla"], "marian")
    assert ours["tokens_per_second"] == pytest.approx(4500) and ours["share_of_rate"] == pytest.approx(speed / 1e9)
    assert marian["compile_seconds"] is None
    assert refusal["refused"] == "model.kernel=cudnn: no" and "milliseconds" not in refusal
    assert (ours["operands"], last["operands"]) == ("float32", "bfloat16")


def test_everyone_steps_on_every_batch():
    costs = [replace(STEP, rows=rows) for rows in (2, 4)]
    recipes = {"puente": Recipe(MODEL, TRAINING)}
    contestants = list_contestants(recipes, costs, ["definition", "auto"], ("marian",))
    assert [who.name for who in contestants] == ["puente definition", "puente auto", "marian"] * 2
    assert [who.workload.cost.model.kernel for who in contestants[:2]] == ["definition", "auto"]
    assert [who.workload.cost.rows for who in contestants] == [2] * 3 + [4] * 3


@pytest.fixture(scope="module")
def on_corpus(small_experiment):
    """The task of training the small model on the small experiment's corpus."""
    config = load_config(small_experiment)
    recipes = {"puente": Recipe(MODEL, TRAINING)}
    [contestant] = list_on_corpus(recipes, config.data, config.tokenizer)
    return contestant.workload


def test_a_corpus_has_rows_of_its_own_lengths(on_corpus):
    assert on_corpus.cost.vocab_size == 300 and on_corpus.corpus.input_milliseconds > 0
    assert str(on_corpus) == "the corpus"
    batches, cost = open_batches(on_corpus)
    first = next(batches)
    assert first.source_tokens.shape == (2, cost.sources) and first.target_labels.shape == (2, cost.targets)
    assert max(cost.sources, cost.targets) == 64
    assert count_tokens(first) == (first.source_tokens > 0).sum() + (first.target_labels > 0).sum() < cost.places()
    assert isinstance(batches, Generator)
    batches.close()


@pytest.mark.slow
@RUNS_ON_CPU
def test_steps_on_a_corpus_count_its_real_tokens_and_its_packing(on_corpus):
    steps = PuenteSteps(on_corpus)
    jax.block_until_ready(steps())
    usage = steps.usage()
    assert 0 < usage.padding < 0.3 and usage.kernels == ["definition"]
    assert usage.tokens == pytest.approx(steps.cost.places() * (1 - usage.padding))
    assert float(steps.state.sums.target_tokens + steps.state.sums.source_tokens) == 3 * usage.tokens
    assert int(steps.state.step) == 3 and steps.compile_seconds > 0
    [row] = report_training(results(measured("puente", on_corpus, {"step": 1.0}, usage), jax=1e9)).json["rows"]
    assert row["milliseconds"] == 1 + row["input_milliseconds"] and row["sentences"] is None
    json.dumps(row)
