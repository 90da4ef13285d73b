"""Which config changes a run accepts between two sessions of its training."""

from typing import Literal

from common.errors import UserError
from configs.load import list_differences
from configs.schema import RunConfig
from training.config import ENDING

Kind = Literal["harmless", "changes the training", "changes the validation", "incompatible"]


def _keys(**sections: str) -> set[str]:
    return {f"{section}.{key}" for section, keys in sections.items() for key in keys.split()}


# Limits, logging and retention, the corpus's location (its content is checked), and devices, which affect results by
# rounding only: a job that continues gets whatever devices are free.
HARMLESS = {"mesh"} | _keys(
    training="steps epochs minutes patience max_skipped log_every eval_every save_every save_minutes keep profile",
    data="allow_overlap max_malformed prefetch root test",
    decoding="ensemble batch_sentences checkpoint",
)

# Scores from before and after do not compare, so that the best checkpoint is chosen anew from here on.
CHANGES_VALIDATION = _keys(
    data="valid",
    decoding="search beam_size normalization length_penalty coverage_penalty temperature top_k top_p seed mbr "
    "candidates max_source_tokens max_length_factor max_length_extra",
)

# Saved checkpoints still translate as before, up to rounding; only the training that follows differs.
CHANGES_TRAINING = _keys(
    training="seed learning_rate embedding_rate warmup_steps schedule decay_steps beta1 beta2 epsilon weight_decay "
    "clip_norm label_smoothing consistency consistency_weight cutoff accumulation ema_decay",
    model="dropout attention_dropout activation_dropout source_word_dropout target_word_dropout decoder_layer_drop "
    "dtype matmul_dtype kernel rematerialize",
    data="train weights header quoting encoding max_length_ratio drop_overlap malformed row_length batch_rows window "
    "subword_sampling",
)


def accepted_changes(old: RunConfig, new: RunConfig) -> list[str]:
    """One line per difference; UserError if one is incompatible, or not harmless without ``allow_changes``."""
    kinds = classify_changes(old, new)
    lines = [f"{text} ({kind})" for text, kind in kinds.items()]
    message = f"{new.run_dir} was trained with another config: {'; '.join(lines)}"
    if "incompatible" in kinds.values():
        raise UserError(f"{message}. Undo what is incompatible, or set run_dir=NEW_FOLDER")
    if any(kind != "harmless" for kind in kinds.values()) and not new.allow_changes:
        raise UserError(f"{message}. Undo it, set run_dir=NEW_FOLDER, or continue with it: allow_changes=true")
    return lines


def classify_changes(old: RunConfig, new: RunConfig) -> dict[str, Kind]:
    """Every difference, "key: old → new", with its kind. Keys in no table (model, …) are incompatible."""
    return {line: _classify(line.partition(":")[0], old, new) for line in list_differences(old, new)}


def _classify(key: str, old: RunConfig, new: RunConfig) -> Kind:
    if key == "training.ema_decay" and not (old.training.ema_decay and new.training.ema_decay):
        return "incompatible"  # only one of the two states has averaged parameters
    if key == "training.steps" and new.training.schedule in ENDING:
        return "changes the training"  # the learning rate falls to zero at the last step
    if key in HARMLESS or key.partition(".")[0] in HARMLESS:
        return "harmless"
    if key in CHANGES_VALIDATION:
        return "changes the validation"
    return "changes the training" if key in CHANGES_TRAINING else "incompatible"
