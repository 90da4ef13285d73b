"""Files of sentence pairs → normalised, filtered pairs in the direction that the config translates."""

import codecs
import glob
import hashlib
import tempfile
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from data.config import DataConfig
from data.errors import UserError

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Pairs:
    """Parallel sentences: ``targets[i]`` translates ``sources[i]``."""

    sources: list[str]
    targets: list[str]

    def __len__(self) -> int:
        return len(self.sources)


@dataclass(frozen=True)
class SplitReport:
    """What was read: the file, the SHA-256 of its bytes and its number of lines."""

    file: str
    sha256: str
    rows: int


def normalise(sentence: str) -> str:
    """Unicode NFC, with every run of white space made one plain space and none left at the ends."""
    return unicodedata.normalize("NFC", " ".join(sentence.split()))


def load_split(config: DataConfig, split: str) -> tuple[Pairs, SplitReport]:
    """Read and normalise every pair of ``train``, ``valid`` or ``test``; UserError names a bad file and line."""
    path = split_path(config, split)
    report = scan(path)
    first, second = read_columns(path)
    if len(first) != report.rows:
        raise RuntimeError(f"{path} has {report.rows} lines, but datasets read {len(first)}")
    if config.source != config.columns[0]:
        first, second = second, first
    return Pairs([normalise(s) for s in first], [normalise(s) for s in second]), report


def split_path(config: DataConfig, split: str) -> Path:
    """Where a split lies: an absolute path, or relative to ``data.root``, or else to the working directory."""
    name = {"train": config.train, "valid": config.valid, "test": config.test}[split]
    path = (Path(config.root) / name).absolute()
    if not path.exists() and Path(name).exists():
        path = Path(name).absolute()
    if not path.is_file():
        raise UserError(f"no {split} file at {path}; set data.root=FOLDER (relative to here) or data.{split}=FILE")
    return path


def scan(path: Path) -> SplitReport:
    """Check every byte before a parser sees it: parsers repair, skip or join bad lines without a word."""
    digest, rows = hashlib.sha256(), 0
    try:
        with open(path, "rb") as file:
            for rows, line in enumerate(file, start=1):
                digest.update(line)
                problem = problem_of(line, first=rows == 1)
                if problem:
                    raise UserError(f"{path}:{rows}: {problem}")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    if rows == 0:
        raise UserError(f"{path} is empty; it needs one sentence pair a line, split by a tab")
    return SplitReport(str(path), digest.hexdigest(), rows)


def problem_of(line: bytes, first: bool) -> str | None:
    """What is wrong with one line, or None. Lines end in LF or CRLF, and the last one may end in neither."""
    body = line.removesuffix(b"\n").removesuffix(b"\r")
    if first and body.startswith(codecs.BOM_UTF8):
        return "begins with a byte order mark; save the file as UTF-8 without one"
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return f"invalid UTF-8 at byte {error.start + 1} of the line; save the file as UTF-8"
    tabs = body.count(b"\t")
    if tabs != 1:
        return f"{tabs or 'no'} tab{'s' * (tabs > 1)} in the line; it needs exactly one, between the two sentences"
    if b"\0" in body:
        return "a NUL character in the line; remove it"
    if b"\r" in body:
        return "a carriage return inside the line; end lines with LF or CRLF"
    return None


def read_columns(path: Path) -> tuple[list[str], list[str]]:
    """Both columns as written: no quoting, no header, no missing values, no numbers, no cache left behind."""
    import datasets  # here, because it costs 0.7 s to import

    datasets.disable_progress_bars()
    text = datasets.Features({"first": datasets.Value("string"), "second": datasets.Value("string")})
    with tempfile.TemporaryDirectory() as cache:
        table = datasets.Dataset.from_csv(
            glob.escape(str(path)),
            features=text,
            cache_dir=cache,
            keep_in_memory=True,
            sep="\t",
            column_names=["first", "second"],
            quoting=3,
            na_filter=False,
            skip_blank_lines=False,
        )
        return table["first"][:], table["second"][:]


def filter_pairs(pairs: Pairs, max_length_ratio: float) -> tuple[Pairs, dict[str, int]]:
    """Drop training pairs with an empty or a badly mismatched side; count each kind. Never used on held-out pairs."""
    kinds = [flaw(s, t, max_length_ratio) for s, t in zip(pairs.sources, pairs.targets, strict=True)]
    kept = [i for i, kind in enumerate(kinds) if kind is None]
    counts = {kind: kinds.count(kind) for kind in ("empty", "mismatched")}
    return Pairs([pairs.sources[i] for i in kept], [pairs.targets[i] for i in kept]), counts


def flaw(source: str, target: str, max_length_ratio: float) -> str | None:
    """Why a training pair is dropped, or None. The 5 lets short pairs differ freely: "Hi." / "¿Qué tal estás?"."""
    if not source or not target:
        return "empty"
    short, long = sorted((len(source), len(target)))
    return "mismatched" if long + 5 > max_length_ratio * (short + 5) else None
