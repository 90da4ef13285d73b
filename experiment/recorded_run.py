"""Open a run directory for replay, with the config and corpus that each of its updates was made with."""

import functools
from pathlib import Path

from common.errors import UserError, write_note
from common.files import read_json_object
from configs.load import load_config, load_run_config
from data.prepare import prepare
from training.devices.preflight import choose_kernels
from training.replay.replay import RecordedRun, Setup
from training.run.config_history import find_record
from training.run.metrics import read_metrics
from training.run.retention import damaged_steps


def open_recorded_run(run_dir: Path) -> RecordedRun:
    """Open a run; its corpus is prepared when an update is first asked for. Damaged checkpoints are reported."""
    training = load_run_config(run_dir).training
    for damaged in damaged_steps(run_dir):
        write_note(f"note: the checkpoint at step {damaged} of {run_dir} is damaged and left out")

    prepare_once = functools.cache(functools.partial(_prepare_setup, run_dir))

    def setup(step: int) -> Setup:
        return prepare_once(find_record(run_dir, "config.yaml", step), find_record(run_dir, "data.json", step))

    initial = load_config(find_record(run_dir, "config.yaml", 1), [f"run_dir={run_dir}"])
    metrics = {line["step"]: line for line in read_metrics(run_dir) if line["kind"] == "train"}
    return RecordedRun(run_dir, setup, initial.model, training, metrics)


def _prepare_setup(run_dir: Path, config_path: Path, data_path: Path) -> Setup:
    """The batches by these records of a run; UserError if the corpus no longer yields them."""
    config = load_config(config_path, [f"run_dir={run_dir}"])
    choose_kernels(config.model, (config.data.row_length,) * 2)
    is_old = config_path.name != "config.yaml"
    prepared = prepare(config.data, config.tokenizer, config.training.seed, run_dir, allow_changes=is_old)
    recorded, current = read_json_object(data_path).get("fingerprint"), prepared.stream.fingerprint
    if not isinstance(recorded, str):
        raise UserError(f"{data_path} is missing or damaged, so the batches cannot be verified; bring it back")
    if recorded != current:
        raise UserError(
            f"the corpus has changed since {data_path} was written: it gives other batches (fingerprint "
            f"{recorded[:8]} → {current[:8]}). Bring the old one back, or name its folder with PUENTE_CORPUS"
        )
    return Setup(config.model, config.training, prepared.stream)
