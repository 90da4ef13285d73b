"""The schema of an experiment."""

from dataclasses import dataclass, field

from common.option import harmless
from data.config import DataConfig, TokenizerConfig
from model.config import DecodingConfig, ModelConfig
from training.config import MeshConfig, TrainingConfig


@dataclass(frozen=True)
class RunConfig:
    """Everything that defines an experiment; each section is documented next to the code it configures."""

    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=lambda: TrainingConfig(steps=100_000))
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    mesh: MeshConfig = field(default_factory=MeshConfig)
    run_dir: str = harmless("", "directory of the run (default: runs/NAME for configs/NAME.yaml)")
    allow_changes: bool = harmless(
        False, "continue a run even if changes to its config or corpus affect training or validation from here on"
    )
    dry_run: bool = harmless(
        False, "read the corpus, print sizes, memory, pairs, epochs and the resolved config, then exit"
    )

    def __post_init__(self) -> None:
        if self.data.subword_sampling and self.tokenizer.type != "unigram":
            raise ValueError("data.subword_sampling draws by probability: it needs tokenizer.type=unigram")
        model = self.model
        units = model.dropout, model.attention_dropout, model.activation_dropout
        words_and_blocks = model.source_word_dropout, model.target_word_dropout, model.decoder_layer_drop
        if self.training.consistency == "r_drop" and not any(units + words_and_blocks):
            raise ValueError("training.consistency=r_drop needs model.dropout: without it both views are the same")
        of_units, of_words = max(model.dropout, model.activation_dropout), max(words_and_blocks[:2])
        for key, rate in {"dropout_factor": of_units, "word_dropout_factor": of_words}.items():
            points = vars(self.training)[key]
            if points and not 0 < rate * max(factor for _, factor in points) < 1:
                raise ValueError(f"training.{key} times a rate of {rate} must at its highest be above 0 and below 1")
        rows, slices = self.data.batch_rows, self.training.accumulation
        if rows % slices:
            raise ValueError(f"data.batch_rows={rows} cannot be cut into training.accumulation={slices} equal slices")
