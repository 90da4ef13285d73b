"""A sweep: a base config, changes to it, and seeds. Each combination is a cell, an experiment with its own run."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from common.errors import UserError
from common.text import in_brief
from configs.keys import format_value
from configs.load import check_value, load_config, parse_file
from configs.schema import RunConfig

PARTS = "base", "overrides", "grid", "cells", "seeds"
CELL_KEYS = {"run_dir", "training.seed", "allow_changes", "dry_run"}  # only the sweep itself may set these, if at all
LONGEST_NAME = 150
Changes = dict[str, object]  # key: value


@dataclass(frozen=True)
class Cell:
    """An experiment in a sweep: its name, its overrides of the base config, and the resulting config."""

    name: str
    overrides: list[str]
    config: RunConfig

    @property
    def run_dir(self) -> Path:
        return Path(self.config.run_dir)

    @property
    def output(self) -> Path:
        """The file with the output of its programs, beside its run."""
        return self.run_dir.with_name(f"{self.run_dir.name}.txt")


def without_outputs(arguments: Sequence[str]) -> list[str]:
    """Leave out the outputs of cells and reports, which runs/sweeps/NAME/* also matches."""
    return [name for name in arguments if not (name.endswith((".txt", ".html")) and Path(name).is_file())]


@dataclass(frozen=True)
class Sweep:
    """All cells of a sweep file, in the order of their changes, then of their seeds."""

    base: Path
    folder: Path  # of its runs
    cells: list[Cell]


def load_sweep(path: Path) -> Sweep:
    """Read ``configs/sweeps/NAME.yaml``, with runs in ``runs/sweeps/NAME``; every config is checked.

    - ``base``: a config file, relative to this one;
    - ``overrides``: keys and values for all cells;
    - ``grid``: lists of values by key, to be combined in all ways; or ``cells``: a list of keys and values;
    - ``seeds``: a list of values of ``training.seed``.

    UserError for a mistake in the file, an unknown key, or a combination that the config rejects.
    """
    tree = parse_file(path)
    if not isinstance(tree, dict) or not isinstance(tree.get("base"), str):
        raise UserError(f"{path}: a sweep is a YAML mapping with base, a config file, and grid or cells")
    if unknown := [name for name in tree if name not in PARTS]:
        raise UserError(f"{path}: unknown part {in_brief(str(unknown[0]))}; a sweep has {', '.join(PARTS)}")
    if "grid" in tree and "cells" in tree:
        raise UserError(f"{path}: give either grid or cells")
    base, folder = path.parent / os.path.expanduser(tree["base"]), Path("runs") / "sweeps" / path.stem
    common, seeds = _read_changes(path, "overrides", tree.get("overrides") or {}), _read_seeds(path, tree)
    changes = _read_grid(path, tree["grid"]) if "grid" in tree else _read_cells(path, tree.get("cells", [{}]))
    parts = [(own, common | own, seed) for own in changes for seed in seeds]
    return Sweep(base, folder, _make_cells(path, base, folder, parts))


def _make_cells(path: Path, base: Path, folder: Path, parts: list[tuple[Changes, Changes, int]]) -> list[Cell]:
    """A cell for each of the ``parts``: its own changes, all its changes, and its seed."""
    cells: dict[str, Cell] = {}
    first_of: dict[str, str] = {}  # the name of the first cell of a config
    for own, changes, seed in parts:
        name = name_cell(own, seed)
        if name in cells:
            raise UserError(f"{path}: two cells are named {in_brief(name)}")
        if len(name) > LONGEST_NAME:
            raise UserError(f"{path}: {in_brief(name)} is too long for a folder; set what all cells share in overrides")
        cells[name] = cell = _make_cell(base, folder / name, name, changes, seed)
        first = first_of.setdefault(repr(replace(cell.config, run_dir="")), name)
        if first != name:
            raise UserError(f"{path}: {first} and {name} are the same experiment; leave one out")
    return list(cells.values())


def _read_changes(path: Path, part: str, tree: object) -> Changes:
    if not isinstance(tree, dict):
        raise UserError(f"{path}: {part} must map keys to values, such as {{model.dropout: 0.2}}")
    for key, value in tree.items():
        if key in CELL_KEYS:
            raise UserError(f"{path}: {part} cannot set {key}; seeds sets the seeds")
        check_value(str(key), value, str(path))
    return {str(key): value for key, value in tree.items()}


def _read_grid(path: Path, tree: object) -> Iterator[Changes]:
    if not isinstance(tree, dict) or not all(isinstance(values, list) and values for values in tree.values()):
        raise UserError(f"{path}: grid must map each key to a list of values, such as {{model.dropout: [0.1, 0.2]}}")
    for values in product(*tree.values()):
        yield _read_changes(path, "grid", dict(zip(tree, values, strict=True)))


def _read_cells(path: Path, tree: object) -> Iterator[Changes]:
    if not isinstance(tree, list) or not tree:
        raise UserError(f"{path}: cells must be a list, such as [{{}}, {{model.dropout: 0.2}}]")
    for changes in tree:
        yield _read_changes(path, "cells", changes)


def _read_seeds(path: Path, tree: dict[str, object]) -> list[int]:
    seeds = tree.get("seeds", [1])
    if not isinstance(seeds, list) or not seeds:
        raise UserError(f"{path}: seeds must be a list of whole numbers, such as [1, 2, 3]")
    for seed in seeds:
        check_value("training.seed", seed, f"{path}: seeds")
    return seeds


def _make_cell(base: Path, run_dir: Path, name: str, changes: Changes, seed: int) -> Cell:
    everything = {**changes, "training.seed": seed, "run_dir": str(run_dir)}
    overrides = [f"{key}={format_value(value)}" for key, value in everything.items()]
    config = load_config(base, overrides)
    if not config.training.steps:
        raise UserError(f"{base}: the cells of a sweep need training.steps, which defines when one is complete")
    if config.training.epochs:
        raise UserError(f"{base}: the cells of a sweep end with training.steps; set training.epochs=0")
    return Cell(name, overrides, config)


def name_cell(changes: Changes, seed: int) -> str:
    """The name of a cell's run directory, such as positions=rotary,dropout=0.2,seed=1."""
    parts = [f"{key.rpartition('.')[2]}={format_value(value)}" for key, value in changes.items()] or ["base"]
    return re.sub(r"[^\w.,=+-]+", "_", ",".join([*parts, f"seed={seed}"]))
