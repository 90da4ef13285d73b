"""What a run was before its config or its corpus was changed on the way, for whoever rebuilds an earlier step."""

from pathlib import Path

from common.files import write_atomically


def keep_records(run_dir: Path, step: int) -> None:
    """Keep the files that describe the run up to ``step`` as config.until-STEP.yaml and data.until-STEP.json.

    Those of a change at the same step stay: no step was taken with what came between.
    """
    for name in ("config.yaml", "data.json"):
        kept = _record(run_dir, name, step)
        if (run_dir / name).exists() and not kept.exists():
            write_atomically(kept, (run_dir / name).read_bytes())


def rewind_records(run_dir: Path, step: int) -> None:
    """Where a run goes on from an older checkpoint than it had, what it was before a later change ended at ``step``."""
    for number, later in enumerate(changed for changed in changed_at(run_dir) if changed > step):
        for name in ("config.yaml", "data.json"):
            record, earlier = (_record(run_dir, name, each) for each in (later, step))
            if number == 0 and record.exists() and not earlier.exists():
                record.rename(earlier)
            record.unlink(missing_ok=True)


def changed_at(run_dir: Path) -> list[int]:
    """The steps after which the run went on with another config or corpus, in order."""
    stems = [path.stem.removeprefix("config.until-") for path in run_dir.glob("config.until-*.yaml")]
    return sorted(int(stem) for stem in stems if stem.isdigit())


def record_of(run_dir: Path, name: str, step: int) -> Path:
    """The config.yaml or data.json with which update ``step`` was made."""
    later = [changed for changed in changed_at(run_dir) if step <= changed]
    return _record(run_dir, name, later[0]) if later else run_dir / name


def _record(run_dir: Path, name: str, step: int) -> Path:
    return (run_dir / name).with_stem(f"{Path(name).stem}.until-{step}")
