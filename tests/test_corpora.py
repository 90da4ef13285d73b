"""Every form of a corpus trains and evaluates through the command line, and the same pairs give the same run."""

import gzip
import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import pyarrow
import pyarrow.parquet
import pytest
from jax.experimental.compilation_cache import compilation_cache

SPLITS = ("train", "valid", "test")
HUB_SPLITS = {"train": "train", "valid": "validation", "test": "test"}
Lines = dict[str, list[str]]  # of each split, a pair a line


@dataclass(frozen=True)
class Run:
    """What a run directory holds after training for two steps and an evaluation."""

    folder: Path
    data: dict[str, Any]
    scores: dict[str, Any]
    translations: str


@pytest.fixture(scope="module")
def lines(small_experiment) -> Lines:
    """The pairs of the small experiment."""
    texts = {split: (small_experiment.parent / f"{split}.tsv").read_text(encoding="utf-8") for split in SPLITS}
    return {split: text.split("\n")[:-1] for split, text in texts.items()}


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory):
    """All runs here compile the same programs; without this, each run would take six seconds longer."""
    names = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"
    before = [getattr(jax.config, name) for name in names]

    def configure(values: list) -> None:
        for name, value in zip(names, values, strict=True):
            jax.config.update(name, value)
        compilation_cache.reset_cache()  # else a process that has compiled before takes no notice

    configure([str(tmp_path_factory.mktemp("compiled")), 0])
    yield
    configure(before)


@pytest.fixture(scope="module")
def train_and_evaluate(small_experiment, compiled_once, tmp_path_factory) -> Callable[..., Run]:
    """``train_and_evaluate("data.train=…", …)`` is train.py for two steps and eval.py, called as they are by Python."""
    import eval as evaluation_program
    import train as training_program

    def train_and_evaluate(*overrides: str) -> Run:
        folder = tmp_path_factory.mktemp("run")
        command = ["train.py", str(small_experiment), f"run_dir={folder}", "training.steps=2", *overrides]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("signal.signal", lambda *_: None)  # SIGPIPE is this process's own business
            patch.setattr(sys, "argv", command)
            training_program.main()
            patch.setattr(sys, "argv", ["eval.py", str(folder)])
            evaluation_program.main()
        data, scores = (json.loads((folder / name).read_text()) for name in ("data.json", "eval/test.json"))
        return Run(folder, data, scores, (folder / "eval/test.translations.txt").read_text(encoding="utf-8"))

    return train_and_evaluate


@pytest.fixture(scope="module")
def plain(train_and_evaluate) -> Run:
    """The run on three plain TSV files."""
    return train_and_evaluate()


def columns(lines: list[str]) -> tuple[list[str], list[str]]:
    first, second = zip(*(line.split("\t") for line in lines), strict=True)
    return list(first), list(second)


def text_of(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def sha256(content: bytes | str) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def write(path: Path, content: str, packed: bool = False) -> str:
    """Write a text, and tell the SHA-256 of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    return sha256(path.read_bytes())


def write_parquet(path: Path, table: dict[str, list]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    return sha256(path.read_bytes())


# Each form writes the splits into a folder, and tells the name of each in the config and the SHA-256 of each.


def packed_objects(folder: Path, lines: Lines) -> tuple[dict[str, str], dict[str, str]]:
    names = {split: f"{split}.jsonl.gz" for split in SPLITS}
    digests = {}
    for split in SPLITS:
        objects = [json.dumps({"en": en, "es": es}) for en, es in zip(*columns(lines[split]), strict=True)]
        digests[split] = write(folder / names[split], text_of(objects), True)
    return names, digests


def parquet(folder: Path, lines: Lines) -> tuple[dict[str, str], dict[str, str]]:
    names = {split: f"{split}.parquet" for split in SPLITS}
    tables = {split: dict(zip(("en", "es"), columns(lines[split]), strict=True)) for split in SPLITS}
    return names, {split: write_parquet(folder / names[split], tables[split]) for split in SPLITS}


def packed_parallel(folder: Path, lines: Lines) -> tuple[dict[str, str], dict[str, str]]:
    digests = {}
    for split in SPLITS:
        sides = zip(("en", "es"), columns(lines[split]), strict=True)
        each = [write(folder / f"{split}.{language}.gz", text_of(side), True) for language, side in sides]
        digests[split] = sha256(" ".join(each))
    return {split: f"{split}.LANG.gz" for split in SPLITS}, digests


def like_the_hub(folder: Path, lines: Lines) -> tuple[dict[str, str], dict[str, str]]:
    files = "".join(f"  - {{split: {name}, path: en-es/{name}-*}}\n" for name in HUB_SPLITS.values())
    write(folder / "opus/README.md", f"---\nconfigs:\n- config_name: en-es\n  data_files:\n{files}---\n")
    for split, name in HUB_SPLITS.items():
        rows = [{"en": en, "es": es} for en, es in zip(*columns(lines[split]), strict=True)]
        write_parquet(folder / f"opus/en-es/{name}-00000-of-00001.parquet", {"translation": rows})
    return dict.fromkeys(SPLITS, "opus:en-es"), {split: sha256(text_of(lines[split])) for split in SPLITS}


def assert_evaluated(run: Run, sources: int, digest: str) -> None:
    scores = run.scores
    assert 0 <= scores["bleu"] <= 100 and 0 <= scores["chrf"] <= 100
    assert (scores["step"], scores["sources"], scores["test_set_sha256"]) == (2, sources, digest)
    assert scores["overlap_with_training"] == {"sources": 0, "targets": 0}
    assert run.translations.count("\n") == sources


@pytest.mark.slow
def test_plain_tables(plain, lines, small_experiment):
    digests = {split: sha256((small_experiment.parent / f"{split}.tsv").read_bytes()) for split in SPLITS}
    assert {split: files[0]["sha256"] for split, files in plain.data["files"].items()} == digests
    assert plain.data["training_pairs"] == 160
    assert_evaluated(plain, 12, digests["test"])


@pytest.mark.slow
@pytest.mark.parametrize("form", [packed_objects, parquet, packed_parallel, like_the_hub])
def test_the_same_pairs_in_another_form_are_the_same_run(train_and_evaluate, plain, lines, tmp_path, form, capsys):
    names, digests = form(tmp_path, lines)
    run = train_and_evaluate(f"data.root={tmp_path}", *(f"data.{split}={names[split]}" for split in SPLITS))
    assert {split: files[0]["sha256"] for split, files in run.data["files"].items()} == digests
    assert run.data["fingerprint"] == plain.data["fingerprint"]
    assert_evaluated(run, 12, digests["test"])
    assert run.translations == plain.translations
    for score in ("bleu", "chrf", "signature"):
        assert run.scores[score] == plain.scores[score]
    assert f"BLEU      {run.scores['bleu']:.2f}" in capsys.readouterr().out


@pytest.mark.slow
def test_three_columns_without_held_out_sets(train_and_evaluate, lines, tmp_path):
    """As manythings.org's spa.txt is: the third column tells whose the sentences are."""
    digest = write(tmp_path / "spa.txt", text_of([f"{line}\tCC-BY 2.0 (France) #1 (Ana)" for line in lines["train"]]))
    run = train_and_evaluate(f"data.root={tmp_path}", "data.train=spa.txt", "data.valid=", "data.test=")
    (train,) = run.data["files"]["train"]
    assert (train["sha256"], train["rows"], train["held_out"], train["pairs"]) == (digest, 160, 16, 144)
    held_out = {split: (run.folder / "held_out" / f"{split}.tsv").read_text(encoding="utf-8") for split in SPLITS[1:]}
    assert_evaluated(run, 8, sha256(held_out["test"]))
    both = (held_out["valid"] + held_out["test"]).split("\n")[:-1]
    assert len(both) == len(set(both)) == 16 and set(both) < set(lines["train"])
    validated = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()][-1]
    assert (validated["step"], "bleu" in validated) == (2, True)


@pytest.mark.slow
def test_two_sources_with_weights(train_and_evaluate, plain, lines, tmp_path, small_experiment):
    english, spanish = columns(lines["train"][100:])
    digests = [
        write(tmp_path / "a.tsv", text_of(lines["train"][:100])),
        write_parquet(tmp_path / "b.parquet", {"en": english, "es": spanish}),
    ]
    run = train_and_evaluate(
        f"data.root={tmp_path}",
        "data.train=[a.tsv, b.parquet]",
        "data.weights=[1, 0.5]",
        *(f"data.{split}={small_experiment.parent / split}.tsv" for split in SPLITS[1:]),
    )
    accounts = [(file["sha256"], file["pairs"], file["weight"]) for file in run.data["files"]["train"]]
    assert accounts == [(digests[0], 100, 1), (digests[1], 60, 0.5)]
    assert run.data["training_pairs"] == 160
    assert run.data["tokenizer"] == plain.data["tokenizer"]
    assert run.data["fingerprint"] != plain.data["fingerprint"]
    assert_evaluated(run, 12, sha256(text_of(lines["test"])))
