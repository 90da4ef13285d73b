"""Which config changes a run accepts when its training is resumed."""

from common.errors import UserError
from common.option import Changes
from configs.keys import KEYS
from configs.load import find_differences
from configs.schema import RunConfig
from training.config import ENDING

WORDS: dict[Changes, str] = {
    "nothing": "harmless",
    "validation": "changes the validation",
    "training": "changes the training",
    "model": "incompatible",
}


def accepted_changes(old: RunConfig, new: RunConfig) -> list[str]:
    """One line per difference. UserError if one is incompatible, or not harmless and ``allow_changes`` is false."""
    kinds = classify_changes(old, new)
    lines = [f"{line} ({WORDS[kinds[key]]})" for key, line in find_differences(old, new).items()]
    message = f"{new.run_dir} was trained with another config: {'; '.join(lines)}"
    if "model" in kinds.values():
        raise UserError(f"{message}. Undo what is incompatible, or set run_dir=NEW_FOLDER")
    if set(kinds.values()) - {"nothing"} and not new.allow_changes:
        raise UserError(f"{message}. Undo it, set run_dir=NEW_FOLDER, or continue with it: allow_changes=true")
    return lines


def classify_changes(old: RunConfig, new: RunConfig) -> dict[str, Changes]:
    """Every key whose values differ, with what the difference changes in a run that is resumed."""
    return {key: _classify(key, old, new) for key in find_differences(old, new)}


def _classify(key: str, old: RunConfig, new: RunConfig) -> Changes:
    if key in ("training.ema_decay", "training.weight_decay_factor"):
        values = [vars(each.training)[key.rpartition(".")[2]] for each in (old, new)]
        return "training" if all(values) else "model"  # only one of the two states has the arrays that the key needs
    if key == "training.steps" and new.training.schedule in ENDING:
        return "training"  # the learning rate falls to zero at the last step
    kind: Changes = KEYS[key].metadata["changes"]
    return kind
