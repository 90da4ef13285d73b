"""Configuration of the corpus, its batches and the tokenizer."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class DataConfig:
    """Where the sentence pairs come from, which are dropped, and how they are packed into batches."""

    root: str = field(
        default=".",
        metadata={"help": "folder that files are relative to; the variable PUENTE_CORPUS overrides a config file's"},
    )
    train: list[str] = field(
        default_factory=lambda: ["train.tsv"],
        metadata={
            "help": "sources of training pairs, each one of: a file NAME.tsv or .txt (two columns, or three of which "
            "the last is ignored), NAME.jsonl or NAME.parquet; two files of parallel lines written NAME.LANG, where "
            "LANG stands for each of data.columns; a dataset of the Hugging Face hub, or a local folder like one, "
            "written NAME:CONFIG:SPLIT; phrasebook:grammar and phrasebook:phrases, which need no download. Text files "
            "may end in .gz"
        },
    )
    weights: list[float] = field(
        default_factory=list,
        metadata={"help": "visits to a pair per epoch, a number for each source of data.train, as [1, 0.5]; empty: 1"},
    )
    valid: str = field(
        default="valid.tsv",
        metadata={"help": "pairs scored during training to choose the best checkpoint; empty: taken out of data.train"},
    )
    test: str = field(
        default="test.tsv", metadata={"help": "pairs that eval.py scores; empty: taken out of data.train"}
    )
    held_out: int = field(
        default=1000,
        metadata={"help": "pairs in each set taken out of data.train, but at most 5 % of them"},
    )
    columns: list[str] = field(
        default_factory=lambda: ["en", "es"],
        metadata={"help": "language of each column of a text file, and the names of these columns elsewhere"},
    )
    source: str = field(default="en", metadata={"help": "language to translate from, one of data.columns"})
    target: str = field(default="es", metadata={"help": "language to translate into, one of data.columns"})
    max_length_ratio: float = field(
        default=3.5,
        metadata={"help": "drop training pairs if one side's (characters + 5) is above this many times the other's"},
    )
    allow_overlap: list[str] = field(
        default_factory=list,
        metadata={"help": "splits that may share sentences: train/valid, train/test, valid/test"},
    )
    drop_overlap: bool = field(
        default=False,
        metadata={"help": "drop training pairs that share a sentence with valid or test instead of stopping"},
    )
    malformed: str = field(
        default="stop", metadata={"help": "stop at a line that cannot be read, or skip it and count it"}
    )
    row_length: int = field(
        default=64, metadata={"help": "tokens in a packed row, on the longer side; longer training pairs are dropped"}
    )
    batch_rows: int = field(default=64, metadata={"help": "packed rows in the batch of one training step"})
    window: int = field(default=65536, metadata={"help": "pairs that are shuffled and packed together"})
    subword_sampling: float = field(
        default=0.0,
        metadata={"help": "random subwords: 0 is off, less is more random (try 0.2); needs tokenizer.type=unigram"},
    )
    prefetch: int = field(default=64, metadata={"help": "batches prepared ahead of the training step"})

    def __post_init__(self) -> None:
        if len(self.columns) != 2 or self.columns[0] == self.columns[1]:
            raise ValueError("data.columns must name two different languages")
        if sorted([self.source, self.target]) != sorted(self.columns):
            raise ValueError(f"data.source and data.target must be data.columns, {' and '.join(self.columns)}")
        if not self.train or not all(self.train):
            raise ValueError("data.train must name at least one source, and none may be empty")
        if self.weights and (len(self.weights) != len(self.train) or not all(weight > 0 for weight in self.weights)):
            raise ValueError(f"data.weights needs a number above 0 for each of {len(self.train)} sources of data.train")
        if self.held_out < 1:
            raise ValueError("data.held_out must be at least 1")
        if self.malformed not in ("stop", "skip"):
            raise ValueError(f"data.malformed must be stop or skip, not {self.malformed}")
        if self.row_length < 8 or self.batch_rows < 1 or self.window < 1 or self.prefetch < 1:
            raise ValueError("data.row_length must be at least 8; data.batch_rows, .window and .prefetch at least 1")
        if self.max_length_ratio < 1:
            raise ValueError("data.max_length_ratio must be at least 1")
        if not 0 <= self.subword_sampling <= 1:
            raise ValueError("data.subword_sampling must lie between 0 and 1")
        if unknown := sorted(set(self.allow_overlap) - {"train/valid", "train/test", "valid/test"}):
            raise ValueError(f"data.allow_overlap may name train/valid, train/test and valid/test, not {unknown[0]}")


@dataclass(frozen=True)
class TokenizerConfig:
    """The joint SentencePiece vocabulary, trained on both sides of the training split."""

    type: str = field(default="unigram", metadata={"help": "unigram or bpe"})
    vocab_size: int = field(default=8000, metadata={"help": "pieces, including the 4 special and 256 byte pieces"})
    character_coverage: float = field(
        default=1.0, metadata={"help": "share of the text's characters with a piece of their own; bytes spell the rest"}
    )

    def __post_init__(self) -> None:
        if self.type not in ("unigram", "bpe"):
            raise ValueError(f"tokenizer.type must be unigram or bpe, not {self.type}")
        if self.vocab_size < 300:
            raise ValueError("tokenizer.vocab_size must be at least 300: 260 pieces are special symbols and bytes")
        if not 0.9 <= self.character_coverage <= 1:
            raise ValueError("tokenizer.character_coverage must lie between 0.9 and 1")
