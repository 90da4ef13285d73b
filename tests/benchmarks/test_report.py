"""Ratios, rates and the parts that all reports share."""

from dataclasses import replace

import pytest

from benchmarks.report import Row, best_rate, create_report, with_ratios
from benchmarks.turns import Contestant
from common.text_table import three_digits
from tests.benchmarks.small import refused, results


def row(name: str, workload: str, milliseconds: int) -> Row[str]:
    return Row(Contestant(name, workload), "call", float(milliseconds), flops=2_000_000_000, amount=12)


def test_ratios_are_of_speeds_on_the_same_workload():
    rows = [row("puente", "x", 6), row("marian", "x", 3), row("puente", "y", 6), row("torch", "y", 3)]
    compared = with_ratios(rows, ("ctranslate2", "marian"))
    assert [each.ratio for each in compared] == [0.5, 1, 1, 2]
    assert [each.ratio_to for each in compared] == ["marian", "marian", "puente", "puente"]
    assert [each.per_second for each in compared] == [2000, 4000, 2000, 4000]
    assert compared[0].flops_per_second == pytest.approx(2e9 / 6e-3)
    figures = compared[0].as_json()
    assert (figures["contestant"]["workload"], figures["per_second"]) == ("x", 2000)


def test_the_share_is_of_products_with_the_same_operands():
    rates = {"jax": 2e9, "torch": 1e9, "jax bfloat16": 4e9, "torch bfloat16": 1e9}
    assert (best_rate(rates), best_rate(rates, bfloat16=True)) == (2e9, 4e9)
    assert best_rate({"jax": 8e14}, bfloat16=True) == 8e14  # a GPU's products are bfloat16 anyway
    assert row("torch", "x", 1000).speed_cells(rates, bfloat16=True) == ["1.00", "2.00", "50%"]


def test_a_report_has_no_empty_columns_and_says_where_it_was_measured():
    rows = [replace(row("puente", "x", 6), ratio_to=other) for other in ("torch", "jax.nn")]
    measurements = results(refused("tpu", "x", "needs a TPU"), jax=6e14)
    report = create_report(measurements, "Speed", "bfloat16", ["a", "b"], [["1", ""], ["2", ""]], rows, "Cheap.")
    table = report.table
    assert (table.title, table.header, table.rows) == ("Speed", ["a"], [["1"], ["2"]])
    assert table.note.startswith("bfloat16 on ") and table.note.endswith("matrices, TFLOP/s: jax 600.")
    assert "; best of 7; ratio to torch, jax.nn. Cheap. Products" in table.note
    assert (report.json["rows"], report.json["notes"]) == ([each.as_json() for each in rows], ["tpu: needs a TPU"])
    assert {"command", "processor", "torch", "GLIBC_TUNABLES", "environment"} < set(report.json)


def test_numbers_keep_three_digits():
    numbers = {0.0: "0", 0.0123456: "0.0123", 1.5: "1.50", 42.04: "42.0", 123.4: "123", 12345.6: "12,346"}
    assert {number: three_digits(number) for number in numbers} == numbers
