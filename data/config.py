"""Configuration of the corpus, its batches and the tokenizer."""

from dataclasses import dataclass, replace

from common.option import harmless, of_training, of_validation, option, require_in_bounds
from common.text import is_encoding

FEWEST_PIECES = 300


@dataclass(frozen=True)
class DataConfig:
    """Where the sentence pairs come from, which are dropped, and how they are packed into batches."""

    root: str = harmless(".", "folder of relative file names; PUENTE_CORPUS overrides a config's", of_text=False)
    train: list[str] = of_training(
        ["train.tsv"],
        "sources of training pairs, each one of: a file NAME.tsv or .txt (with the two columns of data.columns and an "
        "optional third, which is ignored, or all that it names), NAME.csv, .jsonl, .parquet or .tmx; two files with "
        "parallel lines, written NAME.LANG, where LANG means each language of data.columns; a dataset on the Hugging "
        "Face hub, or a local folder like one, written NAME:CONFIG:SPLIT; phrasebook:grammar and phrasebook:phrases, "
        "which need no download. Text files may end in .gz",
    )
    weights: list[float] = of_training(
        [], "visits to a pair per epoch for each source of data.train, such as [1, 0.5]; empty: 1"
    )
    valid: str = of_validation("valid.tsv", "pairs that choose the best checkpoint; empty: taken out of data.train")
    test: str = harmless("test.tsv", "pairs that eval.py scores; empty: taken out of data.train")
    held_out: int = option(1000, "pairs in each set taken out of data.train, at most 5 % of them", min=1)
    columns: list[str] = option(
        ["en", "es"],
        "what each column of a table contains: the two languages once each, and any other name, such as _, for columns "
        "to skip; in other formats, and in CSV with a header, the languages are the names of the columns to read",
        of_file=True,
    )
    source: str = option("en", "language to translate from, one of data.columns")
    target: str = option("es", "language to translate into, one of data.columns")
    direction: str = option(
        "one",
        "one: from data.source to data.target; both: also the reverse, with one model and a tag before each source",
        choices=("one", "both"),
    )
    header: str = of_training(
        "stop",
        "what to do if a table's first line names its columns: stop, skip the line, or keep it as a pair; for CSV, "
        "stop and skip read the columns by these names, and stop requires them",
        choices=("stop", "skip", "keep"),
        of_file=True,
    )
    quoting: str = of_training(
        "stop",
        "what to do if a table has cells in quotation marks, as Excel writes them: stop, read them as csv, or keep the "
        "marks; for CSV files, stop reads them as csv",
        choices=("stop", "csv", "keep"),
        of_file=True,
    )
    encoding: str = of_training("utf-8", "encoding of text files, as Python names it, such as latin-1", of_file=True)
    max_length_ratio: float = of_training(
        3.5, "drop training pairs if (characters + 5) of one side is more than this many times that of the other", min=1
    )
    allow_overlap: list[str] = harmless([], "splits that may share sentences: train/valid, train/test, valid/test")
    drop_overlap: bool = of_training(
        False, "drop training pairs that share a sentence with valid or test instead of stopping"
    )
    malformed: str = of_training(
        "stop", "at a line that cannot be read, stop, or skip it and count it", choices=("stop", "skip"), of_file=True
    )
    max_malformed: float = harmless(0.01, "largest share of a file's lines to skip", min=0, max=1)
    row_length: int = of_training(
        64,
        "tokens in a packed row, on the longer side; training pairs longer than a row on either side are dropped",
        min=8,
    )
    batch_rows: int = of_training(64, "packed rows in a training step's batch", min=1, of_text=False)
    window: int = of_training(65536, "pairs that are shuffled and packed together", min=1, of_text=False)
    subword_sampling: float = of_training(
        0.0, "random subwords (unigram only): 0 is off, less is more random (try 0.2)", min=0, max=1
    )
    noise: float = of_training(
        0.0,
        "share of sources that get noise at each visit in training, as when people type: a typo, different case and "
        "punctuation (try 0.3); the targets stay as they are, and data.subword_sampling leaves noisy sources alone",
        min=0,
        max=1,
        of_text=False,
    )
    prefetch: int = harmless(64, "batches prepared ahead", min=1, max=10_000, of_text=False)

    def __post_init__(self) -> None:
        require_in_bounds("data", self)
        if len(set(self.columns)) < 2:
            raise ValueError("data.columns must name two different languages")
        if self.source == self.target or [self.columns.count(name) for name in (self.source, self.target)] != [1, 1]:
            raise ValueError(f"data.source and data.target must be two of data.columns, [{', '.join(self.columns)}]")
        if "/" in self.source + self.target:
            raise ValueError("data.source and data.target are used in file names, and cannot contain /")
        if not self.train or not all(self.train):
            raise ValueError("data.train must name at least one source, and none may be empty")
        if self.weights and (len(self.weights) != len(self.train) or not all(weight > 0 for weight in self.weights)):
            raise ValueError(f"data.weights needs a number above 0 for each of {len(self.train)} sources of data.train")
        if not is_encoding(self.encoding):
            raise ValueError(f"data.encoding={self.encoding} is not an encoding that Python knows, such as latin-1")
        if unknown := sorted(set(self.allow_overlap) - {"train/valid", "train/test", "valid/test"}):
            raise ValueError(f"data.allow_overlap may name train/valid, train/test and valid/test, not {unknown[0]}")

    @property
    def directions(self) -> list["DataConfig"]:
        """A config for each trained direction, with its source and target."""
        reverse = replace(self, source=self.target, target=self.source)
        return {"one": [self], "both": [self, reverse]}[self.direction]

    @property
    def tags(self) -> list[str]:
        """The target languages that need a tag in the vocabulary: none if there is only one direction."""
        return [direction.target for direction in self.directions] if len(self.directions) > 1 else []

    @property
    def languages(self) -> tuple[str, str]:
        """The source and target languages in the order of the columns."""
        first, second = (name for name in self.columns if name in (self.source, self.target))
        return first, second


@dataclass(frozen=True)
class TokenizerConfig:
    """The joint SentencePiece vocabulary, trained on both sides of the training split."""

    type: str = option("unigram", "how pieces are chosen", choices=("unigram", "bpe"))
    vocab_size: int = option(8000, "pieces, including the 4 special and 256 byte pieces", max=1_000_000)
    character_coverage: float = option(
        1.0, "share of the text's characters with their own piece; the rest are spelled as bytes", min=0.9, max=1
    )

    def __post_init__(self) -> None:
        require_in_bounds("tokenizer", self)
        if self.vocab_size < FEWEST_PIECES:
            special = "260 pieces are special symbols and bytes"
            raise ValueError(f"tokenizer.vocab_size must be at least {FEWEST_PIECES}: {special}")
