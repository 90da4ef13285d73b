"""What is counted of a training step, and how it is told."""

import json
from collections.abc import Generator

import jax
import pytest

from benchmarks.cost.step import StepWork, real_tokens
from benchmarks.training import (
    Contestant,
    Puente,
    batches_of,
    contestants_of,
    read_corpus,
    reason,
    row_of,
    together,
    training_table,
    with_ratios,
    with_share,
)
from benchmarks.turns import matrix_products
from common.errors import UserError
from common.text_table import as_text
from configs.load import load_config
from model.config import ModelConfig
from training.config import TrainingConfig
from training.run.environment import describe_environment

MODEL = ModelConfig(d_model=16, num_heads=2, head_dim=8, encoder_layers=1, decoder_layers=1, d_ff=32)
TRAINING = TrainingConfig(steps=1)
WORK = StepWork(MODEL, vocab_size=300, rows=2, sources=6, targets=6)
RUNS_ON_CPU = pytest.mark.skipif(jax.default_backend() != "cpu", reason="has the contestants of a CPU")


def rows_of(times):
    """Rows as a measurement gives them, from milliseconds by (contestant, batch rows); None is out of memory."""
    rows = []
    for (name, count), milliseconds in times.items():
        contestant = Contestant(name, StepWork(MODEL, 300, count, 6, 6), TRAINING)
        row = row_of(contestant, milliseconds or 1.0, {"compile_seconds": 2.0, "peak_bytes": 2**20})
        rows.append(row if milliseconds else row | {"refused": "out of memory"})
    return rows


def test_ratios_are_of_speeds_on_the_same_batch():
    times = {("puente", 2): 6.0, ("marian", 2): 3.0, ("puente", 4): 6.0, ("puente-bfloat16", 4): 3.0}
    rows = with_ratios(rows_of(times))
    assert [row["ratio"] for row in rows] == [0.5, 1, 1, 2]
    assert [row["ratio_to"] for row in rows] == ["marian", "marian", "puente", "puente"]
    assert [row["tokens_per_second"] for row in rows] == [4000, 8000, 8000, 16000]
    assert rows[0]["flops_per_second"] == pytest.approx(WORK.flops() / 6e-3)


def test_the_share_is_of_products_with_the_same_operands():
    wide, narrow = rows_of({("puente", 2): 1.0, ("torch-bfloat16", 2): 1.0})
    rate = wide["flops_per_second"]
    on_cpu = {"jax": 2 * rate, "torch": rate, "jax bfloat16": 4 * rate, "torch bfloat16": rate}
    assert [with_share(row, on_cpu)["share_of_rate"] for row in (wide, narrow)] == [0.5, 0.25]
    assert with_share(narrow, {"jax": 8 * rate})["share_of_rate"] == 0.125  # a GPU's products are bfloat16 anyway


def test_who_has_no_room_has_a_row_that_says_so():
    rates = {"jax": 1e9}
    rows = [with_share(row, rates) for row in rows_of({("puente", 2): 6.0, ("puente", 2**20): None})]
    report = {"model": {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16}, "vocab_size": 300, "rounds": 7}
    report |= {"rows": with_ratios(rows), "matrix_flops_per_second": rates, "processor": "abacus"}
    table = training_table(report | {"environment": describe_environment()})
    header = ["batch", "contestant", "ms a step", "tokens/s", "ratio", "GFLOP/s", "of rate", "compile s", "peak MiB"]
    assert table.header == [*header, "padding"]
    gigaflops = WORK.flops() / 6e-3 / 1e9  # 0.1
    figures = ["6.00", "4,000", "1.00", f"{gigaflops:.3f}", f"{gigaflops:.0%}", "2.0", "1", "0.0%"]
    assert table.rows[0] == ["2 × 6 + 6", "puente", *figures]
    assert table.rows[1] == ["1048576 × 6 + 6", "puente", "out of memory", *[""] * 7]
    assert "best of 7; ratio to puente. MFLOP a token: " in as_text(table)


def test_reasons_are_told_in_a_line():
    assert reason(RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes.\nmore")) == "out of memory"
    assert reason(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")) == "out of memory"
    assert reason(UserError("model.kernel=tpu: needs a TPU")) == "model.kernel=tpu: needs a TPU"
    assert reason(ValueError("no\nmore")) == "fails: no"


@RUNS_ON_CPU
def test_everyone_steps_on_every_batch_and_takes_turns_there():
    works = [StepWork(MODEL, 300, rows, 6, 6) for rows in (2, 4)]
    contestants = contestants_of({"puente": MODEL}, works, ["definition", "auto"], ("marian",), TRAINING)
    groups = [[who.name for who in group] for group in together(contestants)]
    assert groups == [["puente definition", "puente auto", "marian"]] * 2
    assert [who.work.model.kernel for who in contestants[:2]] == ["definition", "auto"]


@pytest.fixture(scope="module")
def corpus(small_experiment, tmp_path_factory):
    config = load_config(small_experiment)
    folder = tmp_path_factory.mktemp("corpus")
    return config, *read_corpus(config.data, config.tokenizer, config.training.seed, folder)


def on_corpus(corpus):
    config, read, vocab_size = corpus
    length = config.data.row_length
    return Contestant("puente", StepWork(MODEL, vocab_size, config.data.batch_rows, length, length), TRAINING, read)


def test_a_corpus_has_rows_of_its_own_lengths(corpus):
    contestant = on_corpus(corpus)
    assert contestant.work.vocab_size == 300 and contestant.corpus.input_milliseconds > 0
    batches, work = batches_of(contestant)
    first = next(batches)
    assert first.source_tokens.shape == (2, work.sources) and first.target_labels.shape == (2, work.targets)
    assert max(work.sources, work.targets) == 64
    assert real_tokens(first) == (first.source_tokens > 0).sum() + (first.target_labels > 0).sum() < work.places()
    assert contestant.batch() == "the corpus"
    assert isinstance(batches, Generator)
    batches.close()


@pytest.mark.slow
def test_steps_on_a_corpus_count_its_real_tokens(corpus):
    who = Puente(on_corpus(corpus))
    jax.block_until_ready(who())
    figures = who.figures()
    assert 0 < figures["padding"] < 0.3 and figures["kernels"] == ["definition"]
    assert figures["tokens"] == pytest.approx(who.work.places() * (1 - figures["padding"]))
    assert float(who.state.sums.target_tokens + who.state.sums.source_tokens) == 3 * figures["tokens"]
    assert int(who.state.step) == 3 and who.compile_seconds > 0
    json.dumps(figures)


@RUNS_ON_CPU
def test_products_of_narrow_operands_have_wide_results():
    products = matrix_products(narrow=True)
    assert {"jax", "jax bfloat16"} <= set(products) and len(products) in (2, 4)
    assert products["jax bfloat16"]().dtype == products["jax"]().dtype == "float32"
