"""python scripts/scaling.py CONFIG, as a user calls it."""

from pathlib import Path

import pytest

PROGRAM, ROOT = "scripts/scaling.py", Path(__file__).parents[2]


def test_devices_that_divide_the_rows_and_others(call):
    shape = "--devices", "6", "--rows-per-device", "2", "--inside", "1"
    done = call(PROGRAM, ROOT / "configs/transformer-base.yaml", "model.d_model=64", *shape)
    assert done.returncode == 0, done.stderr.decode()
    printed = done.stdout.decode()
    assert "NVIDIA H200, changed" in printed and "links 1 GB/s in a node of 8" in printed
    by_data = [line.split() for line in printed.splitlines() if "6·1·1" in line]
    assert [row[2] for row in by_data] == ["32", "2"]  # 192 rows of the batch, and two
    assert sum("1·1·6" in line and "–" in line for line in printed.splitlines()) == 2  # 8 heads


def test_a_kernel_that_a_machine_chooses_is_asked_for(call):
    done = call(PROGRAM, ROOT / "configs/quickstart.yaml", "model.kernel=auto")
    told = "model.kernel=auto depends on the machine that trains: name a kernel, such as model.kernel=xla"
    assert (done.returncode, done.stdout.decode(), done.stderr.decode()) == (2, "", f"error: {told}\n")


def test_a_mistake_is_one_line(call):
    done = call(PROGRAM, ROOT / "configs/transformer-base.yaml", "--devices", "8,0")
    assert done.returncode == 2
    assert (
        done.stderr.decode() == "error: argument --devices: 0 must be a whole number from 1; --help shows an example\n"
    )


@pytest.mark.parametrize("name", ["base", "big"])
def test_the_document_has_what_is_printed(call, name):
    done = call(PROGRAM, ROOT / f"configs/transformer-{name}.yaml", "data.batch_rows=256", "--markdown")
    assert done.stdout.decode().strip() in (ROOT / "docs/scaling.md").read_text(encoding="utf-8")
