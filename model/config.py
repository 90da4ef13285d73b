"""Configuration of the Transformer and of its search."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ModelConfig:
    """Shape and numbers of the encoder-decoder Transformer (Vaswani et al. 2017)."""

    d_model: int = field(default=256, metadata={"help": "width of embeddings and of the residual stream"})
    num_heads: int = field(default=4, metadata={"help": "attention heads in every layer"})
    head_dim: int = field(
        default=64, metadata={"help": "width of a head's queries and keys; need not be d_model / num_heads"}
    )
    value_dim: int = field(default=0, metadata={"help": "width of a head's values; 0: head_dim"})
    key_value_heads: int = field(
        default=0,
        metadata={"help": "heads of keys and values, each shared by as many query heads; 0: num_heads, 1: multi-query"},
    )
    score: str = field(
        default="scaled_dot_product",
        metadata={"help": "scaled_dot_product, dot_product, general (Luong et al. 2015) or additive (Bahdanau 2014)"},
    )
    positions: str = field(
        default="sinusoidal",
        metadata={"help": "sinusoidal, learned, rotary, alibi or relative (T5's); the last three in self-attention"},
    )
    max_positions: int = field(default=512, metadata={"help": "rows of the table of positions=learned"})
    kernel: str = field(
        default="definition",
        metadata={
            "help": "how training computes attention: definition, xla, chunked (long rows), cudnn (NVIDIA), tpu, or "
            "auto to choose among them; translating always takes the definition"
        },
    )
    encoder_layers: int = field(default=3, metadata={"help": "encoder blocks"})
    decoder_layers: int = field(default=3, metadata={"help": "decoder blocks"})
    d_ff: int = field(default=1024, metadata={"help": "width of the feed-forward layers"})
    activation: str = field(default="relu", metadata={"help": "relu, gelu or silu, in the feed-forward layers"})
    norm: str = field(
        default="pre", metadata={"help": "pre or post: layer norm before each sublayer, or after its residual sum"}
    )
    dropout: float = field(default=0.1, metadata={"help": "dropout on embeddings and on the output of every sublayer"})
    attention_dropout: float = field(default=0.0, metadata={"help": "dropout on the weights of attention"})
    dtype: str = field(
        default="float32", metadata={"help": "float32 or bfloat16, for activations; parameters stay float32"}
    )
    matmul_dtype: str = field(
        default="float32",
        metadata={"help": "float32 or bfloat16, for the operands of matrix products; sums stay float32"},
    )

    def __post_init__(self) -> None:
        sizes = (self.d_model, self.num_heads, self.head_dim, self.encoder_layers, self.decoder_layers, self.d_ff)
        if min(sizes) < 1:
            raise ValueError(
                "model.d_model, num_heads, head_dim, encoder_layers, decoder_layers and d_ff must be at least 1"
            )
        if self.value_dim < 0 or self.key_value_heads < 0 or self.max_positions < 1:
            raise ValueError("model.value_dim and key_value_heads must be at least 0, max_positions at least 1")
        if self.num_heads % self.groups:
            raise ValueError(
                f"model.key_value_heads must divide model.num_heads, and {self.key_value_heads} does not divide "
                f"{self.num_heads}"
            )
        self._check_choices()
        self._check_numbers()

    def _check_choices(self) -> None:
        for key, value, known in (
            ("activation", self.activation, ("relu", "gelu", "silu")),
            ("norm", self.norm, ("pre", "post")),
            ("score", self.score, ("scaled_dot_product", "dot_product", "general", "additive")),
            ("positions", self.positions, ("sinusoidal", "learned", "rotary", "alibi", "relative")),
            ("kernel", self.kernel, ("definition", "xla", "chunked", "cudnn", "tpu", "auto")),
            ("dtype", self.dtype, ("float32", "bfloat16")),
            ("matmul_dtype", self.matmul_dtype, ("float32", "bfloat16")),
        ):
            if value not in known:
                raise ValueError(f"model.{key} must be {', '.join(known[:-1])} or {known[-1]}, not {value}")

    def _check_numbers(self) -> None:
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError("model.d_model must be even: sinusoidal positions come in pairs of sine and cosine")
        if self.positions == "rotary" and self.head_dim % 2:
            raise ValueError("model.head_dim must be even: rotary positions turn pairs of components")
        for key, rate in (("dropout", self.dropout), ("attention_dropout", self.attention_dropout)):
            if not 0 <= rate < 1:
                raise ValueError(f"model.{key} must be at least 0 and less than 1")
        if self.dtype == "bfloat16" and self.matmul_dtype == "float32":
            raise ValueError(
                "model.dtype=bfloat16 needs model.matmul_dtype=bfloat16: its products' operands are bfloat16"
            )

    @property
    def groups(self) -> int:
        """G, the heads of keys and values."""
        return self.key_value_heads or self.num_heads

    @property
    def value_width(self) -> int:
        """Width of a head's values."""
        return self.value_dim or self.head_dim


@dataclass(frozen=True)
class DecodingConfig:
    """How translations are searched, in validation, eval.py and scripts/translate.py alike."""

    beam_size: int = field(default=5, metadata={"help": "hypotheses kept per sentence; 1 is greedy decoding"})
    length_penalty: float = field(
        default=1.0, metadata={"help": "GNMT's alpha: score = log-probability / ((5 + length) / 6) ** alpha; 0 is off"}
    )
    max_length_factor: float = field(
        default=2.0, metadata={"help": "longest translation: this times the source tokens + max_length_extra"}
    )
    max_length_extra: int = field(
        default=10, metadata={"help": "longest translation: max_length_factor times the source tokens + this"}
    )
    batch_sentences: int = field(
        default=64, metadata={"help": "sentences translated together, a fixed shape per length bucket"}
    )
    checkpoint: str = field(default="best", metadata={"help": "best, latest or a step number"})

    def __post_init__(self) -> None:
        if self.beam_size < 1 or self.batch_sentences < 1:
            raise ValueError("decoding.beam_size and decoding.batch_sentences must be at least 1")
        if self.length_penalty < 0 or self.max_length_factor < 0 or self.max_length_extra < 1:
            raise ValueError(
                "decoding.length_penalty and max_length_factor must be at least 0, max_length_extra at least 1"
            )
        if self.checkpoint not in ("best", "latest") and not self.checkpoint.isdigit():
            raise ValueError(f"decoding.checkpoint must be best, latest or a step number, not {self.checkpoint}")
