"""Contestants that really decode what is asked, and their report."""

from itertools import product

import pytest

from benchmarks import peers
from benchmarks.decoding import check_tokens, load, prepare, report_decoding
from benchmarks.turns import Contestant
from common.errors import UserError
from tests.benchmarks.small import DECODING, RUNS_ON_CPU, measured, refused, results


def test_other_numbers_of_tokens_are_refused():
    check_tokens("one", DECODING, [[7] * 5] * 3)
    for tokens in ([[7] * 5] * 2, [[7] * 5, [7] * 5, [7] * 4]):
        with pytest.raises(RuntimeError, match=r"one returned .* instead of 3 of 5"):
            check_tokens("one", DECODING, tokens)


def test_an_engine_that_is_not_installed_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(peers, "find_spec", lambda package: None)
    with pytest.raises(UserError, match=r"^needs ctranslate2: pip install -e '\.\[bench\]'$"):
        load("ctranslate2-int8", DECODING)


@RUNS_ON_CPU
@pytest.mark.parametrize("name", ["ctranslate2", "ctranslate2-2x1", "ctranslate2-int8"])
def test_peers_decode_as_many_tokens(name):
    pytest.importorskip("ctranslate2")
    prepare([1, 3], Contestant(name, DECODING))


def test_the_table_ends_each_beam_size_with_its_ceiling():
    times = {"puente": {5: 1e3, 1: 1e3}, "puente-bfloat16": {5: 500.0, 1: 2e3}}
    measurements = [measured(name, DECODING, of_name) for name, of_name in times.items()]
    other = refused("ctranslate2", DECODING, "needs ctranslate2")
    report = report_decoding(results(*measurements, other, jax=2e9, torch=1e9))
    table = report.table
    assert table.header == ["beam", "contestant", "sentences/s", "ratio", "GFLOP/s", "of rate"]
    assert [tuple(row[:2]) for row in table.rows] == list(product("51", [*times, "ceiling"]))
    ceiling = 2e9 / DECODING.flops(5)
    assert table.rows[2][2:] == [f"{ceiling:,.0f}", "", "2.00", "100%"]
    assert table.rows[0][2:4] == ["3.00", "1.00"] and table.rows[0][5] == f"{3 / ceiling:.0%}"
    assert table.rows[1][3] == "2.00" and table.rows[4][3] == "0.50"
    assert "3 sentences of 4 tokens to 5 on" in table.note and "; ratio to puente. MFLOP a sentence: " in table.note
    assert report.json["rows"][0]["flops"] == 3 * DECODING.flops(5)
    with pytest.raises(UserError, match="ctranslate2: needs ctranslate2"):
        report_decoding(results(other))
