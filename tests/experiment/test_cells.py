"""Sweep files: the cells they make, and what is wrong with them."""

import pytest

from common.errors import UserError
from common.programs import ROOT
from experiment.sweep.cells import load_sweep

GOOD = """
base: small.yaml
overrides: {training.steps: 20, training.eval_every: 10}
grid: {model.positions: [sinusoidal, rotary], model.dropout: [0.1, 1.0e-05]}
seeds: [1, 3]
"""


@pytest.fixture
def write(tmp_path, small_experiment):
    (tmp_path / "small.yaml").write_text(small_experiment.read_text())

    def write(text):
        (tmp_path / "mine.yaml").write_text(text)
        return tmp_path / "mine.yaml"

    return write


def test_a_grid_is_every_combination_with_every_seed(write):
    sweep = load_sweep(write(GOOD))
    assert [cell.name for cell in sweep.cells] == [
        "positions=sinusoidal,dropout=0.1,seed=1",
        "positions=sinusoidal,dropout=0.1,seed=3",
        "positions=sinusoidal,dropout=1e-05,seed=1",
        "positions=sinusoidal,dropout=1e-05,seed=3",
        "positions=rotary,dropout=0.1,seed=1",
        "positions=rotary,dropout=0.1,seed=3",
        "positions=rotary,dropout=1e-05,seed=1",
        "positions=rotary,dropout=1e-05,seed=3",
    ]
    last = sweep.cells[-1]
    assert (last.config.model.positions, last.config.model.dropout) == ("rotary", 1e-5)
    assert (last.config.training.steps, last.config.training.eval_every, last.config.training.seed) == (20, 10, 3)
    assert str(last.run_dir) == "runs/sweeps/mine/positions=rotary,dropout=1e-05,seed=3"


def test_cells_are_the_changes_that_are_listed(write):
    sweep = load_sweep(write("base: small.yaml\ncells: [{}, {model.norm: post, training.warmup_steps: 5}]\n"))
    assert [cell.name for cell in sweep.cells] == ["base,seed=1", "norm=post,warmup_steps=5,seed=1"]
    assert [cell.config.model.norm for cell in sweep.cells] == ["pre", "post"]


def test_cells_take_precedence_over_what_all_share(write):
    [cell] = load_sweep(write("base: small.yaml\noverrides: {model.dropout: 0.3}\ncells: [{model.dropout: 0.2}]")).cells
    assert cell.config.model.dropout == 0.2


def test_names_are_folders(write):
    [cell] = load_sweep(write("base: small.yaml\ncells: [{data.train: [a/b.tsv, 'c d.tsv']}]")).cells
    assert cell.name == "train=_a_b.tsv,_c_d.tsv_,seed=1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "a sweep is a YAML mapping with base"),
        ("base: 3", "a sweep is a YAML mapping with base"),
        ("base: none.yaml", "there is no config file"),
        ("base: small.yaml\nseed: [1]", "unknown part seed; a sweep has base, overrides, grid, cells, seeds"),
        ("base: small.yaml\ngrid: {}\ncells: [{}]", "give either grid or cells"),
        ("base: small.yaml\ngrid: {model.dropuot: [0.1]}", "unknown key model.dropuot; the nearest"),
        ("base: small.yaml\ngrid: {model.dropout: 0.1}", "grid must map each key to a list of values"),
        ("base: small.yaml\ngrid: {model.dropout: []}", "grid must map each key to a list of values"),
        ("base: small.yaml\ngrid: {model.dropout: [high]}", "model.dropout must be a number, not 'high'"),
        ("base: small.yaml\ngrid: {model.dropout: [2.0]}", "model.dropout must be below 1"),
        ("base: small.yaml\ngrid: {model.norm: [sandwich]}", "model.norm must be"),
        ("base: small.yaml\ncells: {}", "cells must be a list"),
        ("base: small.yaml\ncells: [3]", "cells must map keys to values"),
        ("base: small.yaml\ncells: [{}, {}]", "two cells are named base,seed=1"),
        ("base: small.yaml\ncells: [{}, {model.norm: pre}]", "base,seed=1 and norm=pre,seed=1 are the same experiment"),
        ("base: small.yaml\noverrides: {run_dir: x}", "overrides cannot set run_dir"),
        ("base: small.yaml\ngrid: {training.seed: [1, 2]}", "grid cannot set training.seed; seeds sets the seeds"),
        ("base: small.yaml\nseeds: 3", "seeds must be a list of whole numbers"),
        ("base: small.yaml\nseeds: [one]", "training.seed must be a whole number"),
        ("base: small.yaml\nseeds: [1, 1]", "two cells are named base,seed=1"),
        ("base: small.yaml\noverrides: {training.steps: 0, training.epochs: 1}", "a sweep need training.steps"),
        ("base: small.yaml\noverrides: {training.epochs: 1}", "a sweep end with training.steps; set training.epochs=0"),
        ("base: small.yaml\ncells: [{data.train: [" + "a" * 200 + "]}]", "is too long for a folder"),
        ("base: small.yaml\ngrid: {model.dropout: [0.1", "mine.yaml:3: "),
    ],
)  # fmt: skip
def test_mistakes_are_told_before_anything_starts(write, text, message):
    with pytest.raises(UserError) as caught:
        load_sweep(write(text))
    assert message in str(caught.value) and "\n" not in str(caught.value)


HEADERS = {
    "sweeps": ("python scripts/sweep.py configs/sweeps/{0.name}", "Question", "Hardware", "Command", "Answer"),
    "records": ("python scripts/verify_record.py {0.stem}", "Record", "What", "Machine", "Commit", "Command"),
}


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*/*.yaml")), ids=lambda path: path.stem)
def test_shipped_sweeps_and_records_load_and_open_with_what_they_ask_or_claim(path):
    cells = load_sweep(path).cells
    assert len(cells) >= 4 and len({cell.config.training.seed for cell in cells}) >= 2
    header, (command, *titles) = path.read_text(encoding="utf-8").partition("\n\n")[0], HEADERS[path.parent.name]
    for title in titles:
        assert f"# {title}  " in header, title
    assert command.format(path) in header
