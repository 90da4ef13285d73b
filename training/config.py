"""Configuration of training."""

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TrainingConfig:
    """Optimization, limits, and how often a run logs, evaluates and saves."""

    seed: int = field(
        default=1, metadata={"help": "seed of initial parameters, order of the data, subwords and dropout"}
    )
    steps: int = field(default=0, metadata={"help": "end after this many updates; 0: no limit by steps"})
    epochs: int = field(
        default=0, metadata={"help": "end after this many passes over the corpus; 0: no limit by epochs"}
    )
    minutes: float = field(default=0.0, metadata={"help": "pause (save and exit) after this many minutes; 0: never"})
    optimizer: str = field(default="adam", metadata={"help": "adam or adamw"})
    learning_rate: float = field(
        default=1e-3, metadata={"help": "peak learning rate, reached at the end of the warm-up"}
    )
    warmup_steps: int = field(default=400, metadata={"help": "updates of linear warm-up"})
    schedule: str = field(
        default="inverse_sqrt", metadata={"help": "after the warm-up: inverse_sqrt, cosine, linear or constant"}
    )
    beta1: float = field(default=0.9, metadata={"help": "Adam's decay of the first moment"})
    beta2: float = field(default=0.98, metadata={"help": "Adam's decay of the second moment"})
    epsilon: float = field(default=1e-9, metadata={"help": "Adam's epsilon"})
    weight_decay: float = field(
        default=0.0, metadata={"help": "adamw's decoupled decay of matrices; biases and norms are spared"}
    )
    clip_norm: float = field(default=1.0, metadata={"help": "largest global norm of the gradient; 0: no clipping"})
    label_smoothing: float = field(default=0.1, metadata={"help": "probability spread evenly over the vocabulary"})
    accumulation: int = field(
        default=1, metadata={"help": "slices into which a step's batch is cut to save memory; results do not change"}
    )
    ema_decay: float = field(
        default=0.0, metadata={"help": "decay of the averaged parameters that are evaluated, such as 0.999; 0: off"}
    )
    max_skipped: int = field(
        default=10,
        metadata={"help": "stop after this many updates in a row that are not finite; each is skipped and counted"},
    )
    log_every: int = field(default=50, metadata={"help": "updates between lines of metrics"})
    eval_every: int = field(default=500, metadata={"help": "updates between evaluations, each followed by a save"})
    save_every: int = field(default=0, metadata={"help": "updates between further saves; 0: only after evaluations"})
    keep: int = field(default=1, metadata={"help": "newest checkpoints kept, beside the best"})
    patience: int = field(
        default=0, metadata={"help": "stop after this many evaluations without a better BLEU; 0: never"}
    )

    def __post_init__(self) -> None:
        if not (self.steps or self.epochs):
            raise ValueError("set training.steps or training.epochs: schedules and completion depend on them")
        if min(self.steps, self.epochs, self.warmup_steps, self.save_every, self.patience) < 0 or self.minutes < 0:
            raise ValueError(
                "training.steps, epochs, minutes, warmup_steps, save_every and patience must not be negative"
            )
        if min(self.log_every, self.eval_every, self.accumulation, self.keep, self.max_skipped) < 1:
            raise ValueError("training.log_every, eval_every, accumulation, keep and max_skipped must be at least 1")
        if not 0 <= self.seed < 2**32:  # jax keeps 32 bits of it: 2**32 would silently be the seed 0
            raise ValueError("training.seed must be at least 0 and less than 2**32")
        if self.optimizer not in ("adam", "adamw"):
            raise ValueError(f"training.optimizer must be adam or adamw, not {self.optimizer}")
        if self.schedule not in ("inverse_sqrt", "cosine", "linear", "constant"):
            raise ValueError(f"training.schedule must be inverse_sqrt, cosine, linear or constant, not {self.schedule}")
        if self.schedule in ("cosine", "linear") and not self.steps:
            raise ValueError(f"training.schedule={self.schedule} needs training.steps: it ends where the run ends")
        if self.weight_decay and self.optimizer == "adam":
            raise ValueError("training.weight_decay needs training.optimizer=adamw")
        if self.learning_rate <= 0 or self.epsilon <= 0 or self.weight_decay < 0 or self.clip_norm < 0:
            raise ValueError(
                "training.learning_rate and epsilon must be positive, weight_decay and clip_norm not negative"
            )
        for key in ("beta1", "beta2", "label_smoothing", "ema_decay"):
            if not 0 <= getattr(self, key) < 1:
                raise ValueError(f"training.{key} must be at least 0 and less than 1")


@dataclass(frozen=True)
class MeshConfig:
    """The devices, data × fsdp × tensor of them; a run may continue on another mesh."""

    data: int = field(
        default=0, metadata={"help": "groups of devices with rows of their own; 0: as many as the others leave"}
    )
    fsdp: int = field(
        default=1, metadata={"help": "devices that share parameters and moments, and have rows of their own"}
    )
    tensor: int = field(default=1, metadata={"help": "devices that share heads, hidden units and vocabulary of a row"})
    coordinator: str = field(
        default="",
        metadata={
            "help": "HOST:PORT of the first of several processes, with mesh.processes and mesh.process; not needed "
            "on SLURM, Open MPI, Kubernetes (indexed jobs) and Cloud TPU, which are asked"
        },
    )
    processes: int = field(default=0, metadata={"help": "how many processes there are, if mesh.coordinator is set"})
    process: int = field(default=0, metadata={"help": "which of them this is, from 0"})

    def __post_init__(self) -> None:
        if self.data < 0 or min(self.fsdp, self.tensor) < 1:
            raise ValueError("mesh.fsdp and mesh.tensor must be at least 1, mesh.data at least 0")
        if bool(self.coordinator) != bool(self.processes):
            raise ValueError("mesh.coordinator=HOST:PORT and mesh.processes=N are set together")
        address = re.fullmatch(r"\S+:([0-9]{1,5})", self.coordinator)
        if self.coordinator and not (address and 0 < int(address[1]) < 2**16):
            raise ValueError(f"mesh.coordinator must be HOST:PORT, such as node1:12345, not {self.coordinator}")
        if not 0 <= self.process < max(self.processes, 1):
            raise ValueError(f"mesh.process={self.process} must be from 0 to mesh.processes - 1")
