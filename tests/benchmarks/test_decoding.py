"""The work of the decoding benchmark by arithmetic, and contestants that really do it."""

import re
from dataclasses import asdict
from itertools import product

import jax
import pytest

from benchmarks.cost.decoding import Work
from benchmarks.decoding import able, check, decoding_table, rows_of
from benchmarks.peers import decoding as decoding_peers
from benchmarks.peers.decoding import CTranslate2, Marian
from common.errors import UserError
from model.config import ModelConfig
from training.run.environment import describe_environment

MODEL = ModelConfig(d_model=16, num_heads=2, head_dim=8, encoder_layers=1, decoder_layers=2, d_ff=32)
WORK = Work(model=MODEL, vocab_size=50, batch=3, sources=4, length=5)
RUNS_ON_CPU = pytest.mark.skipif(jax.default_backend() != "cpu", reason="has the contestants of a CPU")


def test_operations_by_hand():
    """Multiplications, each with an addition, one matrix after the other."""
    # Encoder, 4 tokens, 1 layer: four projections 16 × 16; up and down 16 × 32; 4 scores and 4 values of 2 × 8.
    encoder = 4 * (4 * 256 + 2 * 512 + 4 * 16 + 4 * 16)
    cross_keys_and_values = 4 * 2 * 2 * 256  # 4 tokens, 2 layers
    # Decoder, a token in a layer: 6 projections; up and down; scores and values of the source.
    layer = 6 * 256 + 2 * 512 + 2 * 4 * 16
    past = (1 + 2 + 3 + 4 + 5) * 2 * 16  # scores and values of the 5 tokens, in a layer
    decoder = 5 * (2 * layer + 16 * 50) + 2 * past
    assert WORK.flops(1) == 2 * (encoder + cross_keys_and_values + decoder)
    assert WORK.flops(5) == 2 * (encoder + cross_keys_and_values + 5 * decoder)


def test_operations_of_the_usual_work():
    """At 200 GFLOP/s these are about 900 sentences a second greedily, and 237 with five beams."""
    assert Work().flops(1) == 221_126_656
    assert (200e9 / Work().flops(1), 200e9 / Work().flops(5)) == pytest.approx((904, 238), abs=1)


def test_sentences_have_no_special_tokens_and_are_the_same_for_all():
    rows = WORK.source_tokens()
    assert rows.shape == (3, 4) and rows.min() >= 4 and rows.max() < 50
    assert (rows == WORK.source_tokens()).all()


def test_other_work_is_refused():
    check("who", WORK, [[7] * 5] * 3)
    for found in ([[7] * 5] * 2, [[7] * 5, [7] * 5, [7] * 4]):
        with pytest.raises(RuntimeError, match=r"who gave .* instead of 3 of 5"):
            check("who", WORK, found)


def test_who_is_not_installed_is_left_out_with_a_note(monkeypatch):
    monkeypatch.setattr(decoding_peers, "find_spec", lambda package: None)
    notes = [
        "marian needs torch, transformers: pip install -e '.[bench]'",
        "ctranslate2-int8 needs torch, transformers, ctranslate2: pip install -e '.[bench]'",
    ]
    assert able(["marian", "puente", "ctranslate2-int8"], WORK) == (["puente"], notes)
    with pytest.raises(UserError, match=re.escape("; ".join(notes))):
        able(["marian", "ctranslate2-int8"], WORK)


def test_ratios_are_of_speeds_and_to_the_engine_that_is_there():
    times = {(1, "puente"): 6.0, (1, "ctranslate2"): 3.0, (5, "puente"): 12.0, (5, "ctranslate2"): 24.0}
    rows = rows_of(WORK, times)
    assert [row["ratio"] for row in rows] == [0.5, 1, 2, 1]
    assert [row["sentences_per_second"] for row in rows] == [500, 1000, 250, 125]
    assert {row["ratio_to"] for row in rows} == {"ctranslate2"}
    alone = rows_of(WORK, {(1, "puente"): 6.0, (1, "puente-bfloat16"): 2.0})
    assert [(row["ratio"], row["ratio_to"]) for row in alone] == [(1, "puente"), (3, "puente")]


def test_the_table_ends_each_beam_size_with_its_ceiling():
    times = {(beam, who): 1e3 for beam in (5, 1) for who in ("puente", "puente-bfloat16")}
    report = {"work": asdict(WORK), "rows": rows_of(WORK, times), "rounds": 7, "processor": "abacus"}
    report |= {"environment": describe_environment(), "matrix_flops_per_second": {"jax": 2e9, "torch": 1e9}}
    table = decoding_table(report)
    assert table.header == ["beam", "contestant", "sentences/s", "ratio", "GFLOP/s", "of rate"]
    assert [tuple(row[:2]) for row in table.rows] == list(product("51", ["puente", "puente-bfloat16", "ceiling"]))
    assert table.rows[0][2:4] == ["3.00", "1.00"]
    ceiling = 2e9 / WORK.flops(5)
    assert table.rows[2][2:] == [f"{ceiling:,.0f}", "", "2.00", "100%"]
    assert table.rows[0][5] == f"{3 / ceiling:.0%}"
    assert "3 sentences of 4 tokens to 5;" in table.note and table.note.endswith("best of 7; ratio to puente.")
    unknown = decoding_table(report | {"matrix_flops_per_second": {}})
    assert unknown.header == table.header[:4] and len(unknown.rows) == 4


@RUNS_ON_CPU
def test_marian_does_the_same_work():
    for package in decoding_peers.MARIAN_NEEDS:
        pytest.importorskip(package)
    marian = Marian(WORK)
    for beam_size in (1, 3):
        check("marian", WORK, marian(beam_size))


@RUNS_ON_CPU
@pytest.mark.parametrize(("compute_type", "workers"), [("float32", 1), ("float32", 2), ("int8", 1)])
def test_ctranslate2_does_the_same_work(compute_type, workers):
    for package in decoding_peers.CTRANSLATE2_NEEDS:
        pytest.importorskip(package)
    engine = CTranslate2(WORK, compute_type, workers)
    for beam_size in (1, 3):
        check("ctranslate2", WORK, engine(beam_size))
