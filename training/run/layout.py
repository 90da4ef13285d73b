"""The layout of a run directory."""

from pathlib import Path

from common.errors import UserError
from common.files import leads_elsewhere

CONFIG, DATA, ENVIRONMENT, INITIAL = "config.yaml", "data.json", "environment.json", "initial.json"
MACHINE = "machine.json"  # of a run of scripts/verify_record.py
TOKENIZER, TOKENIZER_CHECK = "tokenizer.model", "tokenizer.json"
TRAINING_SENTENCES, ROW_COUNTS = "training_sentences.npz", "row_counts.json"
METRICS, REJECTED_METRICS, LOG, EVENTS = "metrics.jsonl", "metrics.rejected.txt", "log.txt", "events"
LOCK, LOCK_HOLDER = ".lock", "process.json"
REPORTS, HELD_OUT, ATTENTION, PROFILE = "eval", "held_out", "attention", "profile"
CHECKPOINTS, AVERAGES = "checkpoints", "averages"
# where training appends, moves or deletes; it replaces everything else with new files
IN_PLACE = (CHECKPOINTS, REPORTS, HELD_OUT, PROFILE, METRICS, LOG)


def checkpoint_path(run_dir: Path, step: int) -> Path:
    return run_dir / CHECKPOINTS / str(step)


def average_path(run_dir: Path, name: str) -> Path:
    return run_dir / AVERAGES / name


def split_checkpoint(name: str) -> tuple[Path, str]:
    """The directory and the checkpoint in RUN:CHECKPOINT; the checkpoint is empty for RUN alone."""
    folder, _, checkpoint = (name, "", "") if Path(name).is_dir() else name.rpartition(":")
    return Path(folder or name), checkpoint


def is_step_name(name: str) -> bool:
    """Whether a name is a step as Puente writes it, without leading zeros or other Unicode digits."""
    return name.isdecimal() and name == str(int(name))


def refuse_to_leave(path: Path) -> None:
    """UserError if a file or folder of a run leads elsewhere, so that changes would be made there."""
    if leads_elsewhere(path):
        raise UserError(
            f"{path} leads out of the run's directory, where other files might be changed or deleted: move it away; "
            "run_dir=FOLDER puts a whole run elsewhere, such as on another disk"
        )


def report_path(run_dir: Path, set_name: str) -> Path:
    """The report of the scores on a set; evaluation/report.py describes the files beside it."""
    return run_dir / REPORTS / f"{set_name}.json"


def held_out_path(run_dir: Path, split: str) -> Path:
    """The sentence pairs of ``split`` that were held out from the training sources."""
    return run_dir / HELD_OUT / f"{split}.tsv"


def archived_path(run_dir: Path, name: str, step: int) -> Path:
    """The ``CONFIG`` or ``DATA`` of a run up to ``step``, after which it changed, e.g. config.until-STEP.yaml."""
    return (run_dir / name).with_stem(f"{Path(name).stem}.until-{step}")
