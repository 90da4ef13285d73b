"""Where everything of a run lies in its directory."""

from pathlib import Path

CONFIG, DATA, ENVIRONMENT = "config.yaml", "data.json", "environment.json"
TOKENIZER, TOKENIZER_KEY = "tokenizer.model", "tokenizer.json"
TRAINING_SENTENCES, ROW_COUNTS = "training_sentences.npz", "row_counts.json"
METRICS, REJECTED_METRICS, LOG, EVENTS = "metrics.jsonl", "metrics.rejected.txt", "log.txt", "events"
LOCK, LOCK_HOLDER = ".lock", "process.json"
REPORTS, HELD_OUT, PICTURES, PROFILE = "eval", "held_out", "attention", "profile"


def checkpoint_path(run_dir: Path, step: int) -> Path:
    return run_dir / "checkpoints" / str(step)


def average_path(run_dir: Path, name: str) -> Path:
    return run_dir / "averages" / name


def report_path(run_dir: Path, set_name: str) -> Path:
    """The scores on a set; evaluation/report.py says what lies beside them."""
    return run_dir / REPORTS / f"{set_name}.json"


def held_out_path(run_dir: Path, split: str) -> Path:
    """The sentence pairs of ``split`` that were taken out of the training sources."""
    return run_dir / HELD_OUT / f"{split}.tsv"


def archived_path(run_dir: Path, name: str, step: int) -> Path:
    """The ``CONFIG`` or ``DATA`` of a run up to ``step``, after which it changed, as config.until-STEP.yaml."""
    return (run_dir / name).with_stem(f"{Path(name).stem}.until-{step}")
