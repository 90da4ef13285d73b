"""Earlier configs and data reports of a run with a changed config or corpus, for rebuilding an earlier step."""

from pathlib import Path

from common.files import write_atomically
from training.run.layout import CONFIG, DATA, archived_path, is_step_name


def archive_config(run_dir: Path, step: int) -> None:
    """Copy the files that describe the run up to ``step`` to config.until-STEP.yaml and data.until-STEP.json."""
    for name in (CONFIG, DATA):
        copy = archived_path(run_dir, name, step)
        if (run_dir / name).is_file() and not copy.exists():  # otherwise no step was taken since an earlier change
            write_atomically(copy, (run_dir / name).read_bytes())


def rewind_history(run_dir: Path, step: int) -> None:
    """When a run resumes from an older checkpoint: end the config in use at ``step`` there, and drop later ones."""
    for number, later in enumerate(changed for changed in change_steps(run_dir) if changed > step):
        for name in (CONFIG, DATA):
            archived, current = archived_path(run_dir, name, later), archived_path(run_dir, name, step)
            if number == 0 and archived.exists() and not current.exists():
                archived.rename(current)
            archived.unlink(missing_ok=True)


def change_steps(run_dir: Path) -> list[int]:
    """The steps after which the config or corpus changed, in order."""
    stems = [path.stem.removeprefix("config.until-") for path in run_dir.glob("config.until-*.yaml")]
    return sorted(int(stem) for stem in stems if is_step_name(stem))


def records(run_dir: Path, name: str, newest: int | None) -> list[Path]:
    """The run's config.yaml or data.json, followed by the version that its newest checkpoint was made with.

    The two differ if a change was recorded after that checkpoint and training then ended without another one.
    """
    if newest is None or newest not in change_steps(run_dir):
        return [run_dir / name]
    return [run_dir / name, find_record(run_dir, name, newest)]


def find_record(run_dir: Path, name: str, step: int) -> Path:
    """The config.yaml or data.json that update ``step`` was made with."""
    later = [changed for changed in change_steps(run_dir) if step <= changed]
    return archived_path(run_dir, name, later[0]) if later else run_dir / name
