"""The held-out sets of a run: those that its config names, and those that it took out of its training pairs."""

from dataclasses import replace
from pathlib import Path

from common.errors import UserError
from data.config import DataConfig
from data.corpus.report import DATA_FILE, load_identity
from data.pairs import Pairs
from data.sources.report import SourceReport
from data.sources.source import load_source


def load_held_out(config: DataConfig, split: str, run_dir: Path) -> tuple[Pairs, SourceReport]:
    """Load a run's ``valid`` or ``test`` set: the source named in the config, or the set taken out of training.

    UserError if the latter is not the set recorded in ``data.json``.
    """
    if name := config.valid if split == "valid" else config.test:
        return load_source(config, name, split)
    pairs, report = load_source(as_written(config), str(held_out_path(run_dir, split).absolute()), split)
    recorded = load_identity(run_dir)
    if recorded is None or recorded.files[split] != [report.sha256]:
        raise UserError(f"{report.file} is not the set recorded in {run_dir / DATA_FILE}: bring both files back")
    return pairs, report


def as_written(config: DataConfig) -> DataConfig:
    """How to read the pairs that a run has written, whatever form its corpus has."""
    return replace(config, columns=list(config.languages), header="keep", quoting="keep", encoding="utf-8")


def held_out_path(run_dir: Path, split: str) -> Path:
    """Where a run stores a set taken out of its training pairs."""
    return run_dir / "held_out" / f"{split}.tsv"
