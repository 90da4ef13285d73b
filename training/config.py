"""Configuration of training."""

import re
from dataclasses import dataclass
from itertools import pairwise

from common.option import harmless, of_training, option, require_in_bounds

ENDING = "cosine", "linear", "wsd"  # schedules that fall to zero at the last step
Points = list[list[float]]  # of a schedule: [STEP, FACTOR]


@dataclass(frozen=True)
class TrainingConfig:
    """Optimization, limits, and how often a run logs, evaluates and saves."""

    # JAX uses 32 bits of a seed: 2**32 would silently become seed 0.
    seed: int = of_training(
        1, "seed for the initial parameters, data order, subword sampling and dropout", min=0, below=2**32
    )
    init_from: str = option(
        "", "RUN or RUN:CHECKPOINT to take a new run's initial parameters and tokenizer from; read only at its start"
    )
    steps: int = harmless(0, "end after this many updates; 0: no limit on steps", min=0, compared=True)
    epochs: int = harmless(
        0,
        "end after this many passes over the corpus, the first 1,000 counted exactly; 0: no limit on epochs",
        min=0,
        compared=True,
    )
    minutes: float = harmless(0.0, "pause (save and exit) after this many minutes; 0: never", min=0)
    optimizer: str = option(
        "adam",
        "adamw adds training.weight_decay; muon orthogonalizes the updates of matrices and uses adam for the rest",
        ("adam", "adamw", "muon"),
    )
    learning_rate: float = of_training(1e-3, "peak learning rate, reached at the end of the warm-up", above=0)
    embedding_rate: float = of_training(
        1.0, "learning rate of the embedding table, as a multiple of training.learning_rate", above=0
    )
    warmup_steps: int = of_training(400, "updates of linear warm-up", min=0)
    schedule: str = of_training(
        "inverse_sqrt",
        "learning rate after the warm-up; wsd (warm-up, stable, decay) is constant, then falls linearly to zero",
        ("inverse_sqrt", "cosine", "linear", "constant", "wsd"),
    )
    decay_steps: int = of_training(0, "number of final updates in which schedule=wsd falls to zero", min=0)
    beta1: float = of_training(0.9, "Adam's decay rate of the first moment", min=0, below=1)
    beta2: float = of_training(0.98, "Adam's decay rate of the second moment", min=0, below=1)
    epsilon: float = of_training(1e-9, "Adam's epsilon", above=0)
    weight_decay: float = of_training(
        0.0, "decoupled decay, on arrays of two axes or more for adamw, on matrices of dense layers for muon", min=0
    )
    dropout_factor: Points = of_training(
        [],
        "factor for model.dropout and model.activation_dropout, as [STEP, FACTOR] points, linear in between, "
        "such as [[0, 0], [1100, 0], [2000, 1]]; empty: 1",
    )
    word_dropout_factor: Points = of_training([], "the same for both rates of word dropout")
    weight_decay_factor: Points = of_training(
        [], "the same for training.weight_decay, which also scales with the learning rate"
    )
    learning_rate_factor: Points = of_training([], "the same for the rate of training.schedule")
    clip_norm: float = of_training(1.0, "maximum global norm of the gradient; 0: no clipping", min=0)
    label_smoothing: float = of_training(0.1, "probability spread evenly over the vocabulary", min=0, below=1)
    consistency: str = of_training(
        "none",
        "train on two views of every sentence, with predictions that must agree",
        ("none", "r_drop", "simcut", "cutoff"),
    )
    consistency_weight: float = of_training(3.0, "alpha, the weight of the divergence between the two views", above=0)
    cutoff: float = of_training(
        0.05, "share of tokens on both sides hidden from the second view of simcut and cutoff", min=0, below=1
    )
    accumulation: int = of_training(
        1, "split a step's batch into this many slices to save memory; changes only the dropout draws", min=1
    )
    reproducible: str = of_training(
        "same_mesh",
        "which meshes give bit-identical runs; any_mesh: those of 1, 2, 4 or 8 devices, without mesh.tensor",
        ("same_mesh", "any_mesh"),
    )
    ema_decay: float = of_training(
        0.0,
        "decay of the parameter average used for evaluation, at most (1 + step) / (10 + step); 0: no average",
        min=0,
        below=1,
    )
    max_skipped: int = harmless(
        10, "stop after this many non-finite updates in a row; each is skipped and counted", min=1
    )
    log_every: int = harmless(50, "updates between lines of metrics", min=1)
    eval_every: int = harmless(500, "updates between evaluations, each preceded by a save", min=1, compared=True)
    save_every: int = harmless(0, "updates between additional saves; 0: save only before evaluations", min=0)
    save_minutes: float = harmless(0.0, "save when this many minutes have passed since the last save; 0: never", min=0)
    profile: list[int] = harmless(
        [], "FROM,TO: the updates to profile, such as [21,30]; view RUN/profile with XProf or Perfetto"
    )
    keep: int = harmless(1, "number of newest checkpoints to keep, besides the best", min=1)
    patience: int = harmless(
        0,
        "stop after this many evaluations without a better BLEU (or equal BLEU and lower loss); 0: never",
        min=0,
        compared=True,
    )

    def __post_init__(self) -> None:
        require_in_bounds("training", self)
        if not (self.steps or self.epochs):
            raise ValueError("set training.steps or training.epochs: schedules and completion depend on them")
        if self.schedule in ENDING and not self.steps:
            raise ValueError(f"training.schedule={self.schedule} needs training.steps: it ends where the run ends")
        if (self.schedule == "wsd") != bool(self.decay_steps):
            raise ValueError("training.schedule=wsd and training.decay_steps are set together")
        if self.decay_steps and self.decay_steps > self.steps - self.warmup_steps:
            raise ValueError(
                f"training.decay_steps={self.decay_steps} must be at most steps - warmup_steps = "
                f"{self.steps - self.warmup_steps}"
            )
        if self.profile and not (len(self.profile) == 2 and 1 <= self.profile[0] <= self.profile[1]):
            raise ValueError(
                "training.profile must be two updates, the first and the last to record, such as [21,30], not "
                f"{self.profile}"
            )
        if self.reproducible == "any_mesh" and self.accumulation > 1:
            raise ValueError("training.reproducible=any_mesh has eight slices of its own: set training.accumulation=1")
        if self.weight_decay and self.optimizer == "adam":
            raise ValueError("training.weight_decay needs training.optimizer=adamw or muon")
        if self.weight_decay_factor and not self.weight_decay:
            raise ValueError("training.weight_decay_factor needs training.weight_decay")
        for name, points in vars(self).items():
            if name.endswith("_factor") and not are_points(points):
                form = "points [STEP, FACTOR] with rising steps and no factor below 0, such as [[0, 0], [2000, 1]]"
                raise ValueError(f"training.{name} must be {form}, not {points}")


def are_points(points: Points) -> bool:
    """Whether these are valid points of a schedule: increasing whole steps, each with a factor."""
    has_form = all(len(point) == 2 and point[0] % 1 == 0 <= min(point) <= max(point) < 2**31 for point in points)
    return has_form and all(one[0] < other[0] for one, other in pairwise(points))


@dataclass(frozen=True)
class MeshConfig:
    """The mesh of data × fsdp × tensor devices; a run may continue on another mesh."""

    data: int = harmless(0, "groups of devices, each with its own rows; 0: as many as fsdp and tensor leave", min=0)
    fsdp: int = harmless(1, "devices that share parameters and moments, each with its own rows", min=1)
    tensor: int = harmless(1, "devices that share the heads, hidden units and vocabulary of a row", min=1)
    coordinator: str = harmless(
        "",
        "HOST:PORT of the first of several processes, with mesh.processes and mesh.process; detected automatically "
        "on SLURM, Open MPI, Kubernetes (indexed jobs) and Cloud TPU",
    )
    processes: int = harmless(0, "number of processes, if mesh.coordinator is set", min=0)
    process: int = harmless(0, "number of this process, from 0")

    def __post_init__(self) -> None:
        require_in_bounds("mesh", self)
        if bool(self.coordinator) != bool(self.processes):
            raise ValueError("mesh.coordinator=HOST:PORT and mesh.processes=N are set together")
        address = re.fullmatch(r"\S+:([0-9]{1,5})", self.coordinator)
        if self.coordinator and not (address and 0 < int(address[1]) < 2**16):
            raise ValueError(f"mesh.coordinator must be HOST:PORT, such as node1:12345, not {self.coordinator}")
        if not 0 <= self.process < max(self.processes, 1):
            raise ValueError(f"mesh.process={self.process} must be from 0 to mesh.processes - 1")
