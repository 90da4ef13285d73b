"""Configuration of the Transformer and of its search."""

import re
from dataclasses import dataclass, replace
from functools import partial

from attention.kernels import KERNELS
from attention.scores import SCORES
from common.option import harmless, of_training, of_validation, option, require_in_bounds
from model.activations import ACTIVATIONS

POSITIONS = {  # each kind, and where it acts
    "sinusoidal": "embeddings",
    "learned": "embeddings",
    "rotary": "queries and keys",
    "alibi": "bias on scores",
    "relative": "bias on scores",
}
NORMS, DTYPES = ("pre", "post"), ("float32", "bfloat16")
AVERAGE_NAME = r"[A-Za-z][A-Za-z0-9._-]{0,99}"  # never a step number, a path, or a hidden file

share = partial(of_training, min=0, below=1)


@dataclass(frozen=True)
class ModelConfig:
    """Shapes and number formats of the encoder-decoder Transformer (Vaswani et al. 2017)."""

    d_model: int = option(256, "width of embeddings and of the residual stream", min=1)
    encoder_width: int = option(
        0, "width of the encoder's residual stream, if it differs from the decoder's; 0: d_model", min=0
    )
    num_heads: int = option(4, "attention heads in every layer", min=1)
    head_dim: int = option(64, "width of a head's queries and keys; need not be d_model / num_heads", min=1)
    value_dim: int = option(0, "width of a head's values; 0: head_dim", min=0)
    key_value_heads: int = option(
        0, "key/value heads, each shared by the same number of query heads; 0: num_heads, 1: multi-query", min=0
    )
    score: str = option("scaled_dot_product", "how well a query matches a key (docs/variants.md)", SCORES)
    query_key_norm: bool = option(False, "normalize queries and keys, and learn a scale for the scores of every head")
    head_gates: bool = option(False, "multiply each head's output by a gate computed from the query's token")
    value_residual: bool = option(
        False, "in self-attention, mix a learned share of the first block's values into those of every later block"
    )
    positions: str = option(
        "sinusoidal",
        "how the model represents token order; rotary, alibi and relative (T5's) act in self-attention",
        POSITIONS,
    )
    max_positions: int = option(512, "number of positions in the table of positions=learned", min=1)
    kernel: str = of_training(
        "definition",
        "how training computes attention; chunked is for long rows, cudnn for NVIDIA, and auto chooses among the "
        "others. Translation always uses the definition",
        (*KERNELS, "auto"),
    )
    rematerialize: bool = of_training(
        False, "recompute each block's activations for the gradients instead of storing them", compared=False
    )
    # On a CPU, XLA compiles these maxima at width 16 in minutes with 5 to 6 GB; 48 decoder blocks need over 17 GB.
    encoder_layers: int = option(3, "encoder blocks", min=1, max=48)
    decoder_layers: int = option(3, "decoder blocks", min=1, max=24)
    d_ff: int = option(1024, "width of the feed-forward layers", min=1)
    activation: str = option("relu", "activation of the feed-forward layers", ACTIVATIONS)
    gated: bool = option(
        False, "gated feed-forward layers, with a third matrix of size d_model × d_ff; SwiGLU with activation=silu"
    )
    norm: str = option("pre", "layer norm before each sublayer, or after its residual sum", NORMS)
    dropout: float = share(0.1, "dropout on embeddings and on the output of every sublayer")
    attention_dropout: float = share(0.0, "dropout on attention weights")
    activation_dropout: float = share(0.0, "dropout on the hidden units of the feed-forward layers")
    source_word_dropout: float = share(
        0.0, "share of source tokens hidden in training: their embedding is zero, but their position remains"
    )
    target_word_dropout: float = share(0.0, "the same for the target tokens that the decoder reads")
    decoder_layer_drop: float = share(
        0.0, "probability of skipping a decoder block in training, drawn for each sentence (LayerDrop)"
    )
    dtype: str = of_training("float32", "dtype of activations; parameters stay float32", DTYPES)
    matmul_dtype: str = of_training("float32", "dtype of the operands of matrix products; sums stay float32", DTYPES)

    def __post_init__(self) -> None:
        require_in_bounds("model", self)
        if self.num_heads % self.groups:
            raise ValueError(
                f"model.key_value_heads must divide model.num_heads, and {self.key_value_heads} does not divide "
                f"{self.num_heads}"
            )
        odd = [key for key in ("d_model", "encoder_width") if vars(self)[key] % 2]
        if self.positions == "sinusoidal" and odd:
            raise ValueError(f"model.{odd[0]} must be even: sinusoidal positions come in pairs of sine and cosine")
        if self.positions == "rotary" and self.head_dim % 2:
            raise ValueError("model.head_dim must be even: rotary positions rotate pairs of components")
        if self.dtype == "bfloat16" and self.matmul_dtype == "float32":
            raise ValueError(
                "model.dtype=bfloat16 needs model.matmul_dtype=bfloat16: the operands of its products are bfloat16"
            )

    @property
    def groups(self) -> int:
        """G, the number of heads of keys and values."""
        return self.key_value_heads or self.num_heads

    @property
    def of_encoder(self) -> "ModelConfig":
        """The same config with the encoder's width as ``d_model``."""
        return replace(self, d_model=self.encoder_width or self.d_model, encoder_width=0)

    @property
    def value_width(self) -> int:
        """U, the width of a head's values."""
        return self.value_dim or self.head_dim

    @property
    def final_norm(self) -> bool:
        """Whether each sublayer is preceded by a norm, so that the stack needs a final one."""
        return {"pre": True, "post": False}[self.norm]


@dataclass(frozen=True)
class DecodingConfig:
    """How to search for translations; the same in validation, eval.py and scripts/translate.py."""

    search: str = of_validation("beam", "sample draws tokens at random", ("beam", "sample"))
    beam_size: int = of_validation(5, "live hypotheses per sentence; 1 is greedy decoding", min=1, max=10_000)
    normalization: str = of_validation(
        "gnmt",
        "score = log-probability / divisor ** length_penalty; the divisor is (5 + length) / 6 for gnmt (Wu et al. "
        "2016) and the length for length",
        ("gnmt", "length"),
    )
    length_penalty: float = of_validation(
        1.0, "exponent of the normalization; 0: the most likely translation, however short", min=0
    )
    coverage_penalty: float = of_validation(
        0.0, "GNMT's beta, which penalizes source tokens without attention, for example 0.2; 0: off", min=0
    )
    temperature: float = of_validation(
        1.0, "for search=sample: below 1, likely tokens become more likely; above 1, less likely", min=0.001
    )
    top_k: int = of_validation(0, "for search=sample: draw from the k most likely tokens; 0: all", min=0)
    top_p: float = of_validation(
        1.0, "for search=sample: draw from the most likely tokens with this total probability", above=0, max=1
    )
    seed: int = of_validation(1, "for search=sample: the same seed draws the same translations", min=0, below=2**32)
    mbr: str = of_validation(
        "none",
        "minimum-Bayes-risk decoding: pick the candidate most similar to all the others by this metric",
        ("none", "bleu", "chrf"),
    )
    candidates: int = of_validation(
        0, "number of translations that mbr chooses from, beam or samples; 0: beam_size", min=0, max=10_000
    )
    ensemble: list[str] = harmless(
        [],
        "more runs, RUN or RUN:CHECKPOINT, to ensemble with this one by averaging their probabilities; for eval.py and "
        "scripts",
        compared=True,
    )
    max_source_tokens: int = of_validation(
        0,
        "longer sources are translated in pieces of as many sentences as fit; 0: sentence by sentence, unless the "
        "training data had such sources (docs/decoding.md)",
        min=0,
    )
    max_length_factor: float = of_validation(
        2.0, "maximum translation length: this × source tokens + max_length_extra", min=0, max=100
    )
    max_length_extra: int = of_validation(
        10, "maximum translation length: max_length_factor × source tokens + this", min=1, max=10_000
    )
    batch_sentences: int = harmless(
        64,
        "sentences translated at once, a fixed shape per length bucket; waiting sentences replace finished ones",
        min=1,
    )
    checkpoint: str = harmless(
        "best",
        "best, latest, a step number, or the name of an average made by scripts/average_checkpoints.py",
        compared=True,
    )

    def __post_init__(self) -> None:
        require_in_bounds("decoding", self)
        if self.max_source_tokens == 1:
            raise ValueError("decoding.max_source_tokens must be 0 or at least 2, as EOS counts as a token")
        if not self.draws and self.candidates > self.beam_size:
            raise ValueError("decoding.candidates must be at most decoding.beam_size, unless decoding.search=sample")
        if not re.fullmatch(f"[0-9]+|{AVERAGE_NAME}", self.checkpoint):
            raise ValueError(
                f"decoding.checkpoint must be best, latest, a step number or an average's name, not {self.checkpoint!r}"
            )

    def limit(self, length: int) -> int:
        """The maximum length of the translation of a source of ``length`` tokens; both include EOS."""
        return int(length * self.max_length_factor + self.max_length_extra)

    @property
    def draws(self) -> bool:
        """Whether the search draws tokens at random."""
        return {"beam": False, "sample": True}[self.search]
