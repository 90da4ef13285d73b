"""python scripts/scaling.py CONFIG, as a user calls it."""

from pathlib import Path

from scripts.scaling import main

ROOT = Path(__file__).parents[2]


def test_devices_that_divide_the_rows_and_others(run_main):
    shape = "--devices", "6", "--rows-per-device", "2", "--inside", "1"
    code, printed, _ = run_main(main, ROOT / "configs/transformer-base.yaml", "model.d_model=64", *shape)
    assert code == 0 and "NVIDIA H200, changed" in printed and "links 1 GB/s in a node of 8" in printed
    by_data = [line.split() for line in printed.splitlines() if "6·1·1" in line]
    assert [row[2] for row in by_data] == ["32", "2"]  # 192 rows of the batch, and two
    assert sum("1·1·6" in line and "–" in line for line in printed.splitlines()) == 2  # 8 heads


def test_a_mistake_is_one_line(refuses):
    message = "argument --devices: 0 must be a whole number from 1; --help shows an example"
    refuses(main, message, ROOT / "configs/transformer-base.yaml", "--devices", "8,0")


def test_the_document_has_what_is_printed(run_main):
    document = (ROOT / "docs/scaling.md").read_text(encoding="utf-8")
    for name in ("base", "big"):
        config = ROOT / f"configs/transformer-{name}.yaml"
        assert run_main(main, config, "data.batch_rows=256", "--markdown")[1].strip() in document
