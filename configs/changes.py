"""What it means for a run when its config is another than the one that its checkpoints were trained with."""

from dataclasses import dataclass
from typing import Literal

from common.errors import UserError
from configs.load import differences
from configs.schema import RunConfig

Kind = Literal["harmless", "changes the training", "incompatible"]

# Limits, what is told and kept, where the corpus lies (its content is checked), how translations are searched, and the
# devices, on which results depend by rounding only: a job that comes back gets whatever devices are free.
HARMLESS = (
    "training.steps",
    "training.epochs",
    "training.minutes",
    "training.patience",
    "training.max_skipped",
    "training.log_every",
    "training.eval_every",
    "training.save_every",
    "training.keep",
    "data.allow_overlap",
    "data.prefetch",
    "data.root",
    "data.test",
    "decoding",
    "mesh",
)

# The state stays what it is, and goes on in another way.
CHANGES = (
    "training.seed",
    "training.learning_rate",
    "training.warmup_steps",
    "training.schedule",
    "training.beta1",
    "training.beta2",
    "training.epsilon",
    "training.weight_decay",
    "training.clip_norm",
    "training.label_smoothing",
    "training.accumulation",
    "training.ema_decay",
    "model.dropout",
    "model.attention_dropout",
    "model.dtype",
    "model.matmul_dtype",
    "model.kernel",
    "model.rematerialize",
    "data.train",
    "data.weights",
    "data.max_length_ratio",
    "data.drop_overlap",
    "data.malformed",
    "data.row_length",
    "data.batch_rows",
    "data.window",
    "data.subword_sampling",
)


@dataclass(frozen=True)
class Change:
    """One key that differs: ``text`` is "key: old → new"."""

    text: str
    kind: Kind

    def __str__(self) -> str:
        return f"{self.text} ({self.kind})"


def accepted_changes(old: RunConfig, new: RunConfig) -> list[str]:
    """A line for each difference. UserError if one is incompatible, or changes the training and may not."""
    changed = changes(old, new)
    told = f"{new.run_dir} was trained with another config: {'; '.join(map(str, changed))}"
    kinds = {change.kind for change in changed}
    if "incompatible" in kinds:
        raise UserError(f"{told}. Undo what is incompatible, or set run_dir=NEW_FOLDER")
    if "changes the training" in kinds and not new.allow_changes:
        raise UserError(f"{told}. Undo it, set run_dir=NEW_FOLDER, or continue with it: allow_changes=true")
    return list(map(str, changed))


def changes(old: RunConfig, new: RunConfig) -> list[Change]:
    """Every difference and its kind. What is in neither table is incompatible: another model, vocabulary or task."""
    lines = differences(old, new)
    return [Change(line, _kind(line.partition(":")[0], old, new)) for line in lines]


def _kind(key: str, old: RunConfig, new: RunConfig) -> Kind:
    if key == "training.ema_decay" and not (old.training.ema_decay and new.training.ema_decay):
        return "incompatible"  # the state has an average, or has none
    if key == "training.steps" and new.training.schedule in ("cosine", "linear"):
        return "changes the training"  # the learning rate falls to zero at the last step
    if key in HARMLESS or key.partition(".")[0] in HARMLESS:
        return "harmless"
    return "changes the training" if key in CHANGES else "incompatible"
