"""Every form of a corpus trains and evaluates through the command line, and the same pairs give the same run."""

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
import pyarrow.parquet
import pytest

import eval as evaluation_program
import train as training_program
from common.files import sha256_of_file

pytestmark = pytest.mark.slow

SPLITS = ("train", "valid", "test")
SCORES = ("bleu", "chrf", "signature")
Pairs = dict[str, list[tuple[str, str]]]  # of each split


class Run(NamedTuple):
    """What a run directory holds after training for two steps and an evaluation."""

    folder: Path
    data: dict[str, Any]
    scores: dict[str, Any]
    translations: str


@pytest.fixture(scope="module")
def pairs(small_experiment) -> Pairs:
    """The pairs of the small experiment."""
    texts = {split: (small_experiment.parent / f"{split}.tsv").read_text(encoding="utf-8") for split in SPLITS}
    return {split: [tuple(line.split("\t")) for line in text.splitlines()] for split, text in texts.items()}


@pytest.fixture(scope="module")
def train_and_evaluate(small_experiment, tmp_path_factory) -> Callable[..., Run]:
    """``train_and_evaluate("data.train=…", …)`` is train.py for two steps and eval.py, called as they are by Python."""

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


def assert_evaluated(run: Run, sources: int, digest: str) -> None:
    scores = run.scores
    assert 0 <= scores["bleu"] <= 100 and 0 <= scores["chrf"] <= 100
    assert (scores["step"], scores["sources"], scores["test_set_sha256"]) == (2, sources, digest)
    assert scores["overlap_with_training"] == {"sources": 0, "targets": 0}
    assert run.translations.count("\n") == sources


def test_plain_tables(plain, small_experiment):
    digests = {split: sha256_of_file(small_experiment.parent / f"{split}.tsv") for split in SPLITS}
    assert {split: files[0]["sha256"] for split, files in plain.data["files"].items()} == digests
    assert plain.data["training_pairs"] == 160
    assert_evaluated(plain, 12, digests["test"])


# Each form writes a split into a folder, and gives the name that the config has for it.


def packed_parallel(folder: Path, split: str, rows: list[tuple[str, str]]) -> str:
    for language, texts in zip(("en", "es"), zip(*rows, strict=True), strict=True):
        with gzip.open(folder / f"{split}.{language}.gz", "wt", encoding="utf-8") as file:
            file.writelines(f"{text}\n" for text in texts)
    return f"{split}.LANG.gz"


def like_the_hub(folder: Path, split: str, rows: list[tuple[str, str]]) -> str:
    hub_split = {"valid": "validation"}.get(split, split)
    (folder / "opus/en-es").mkdir(parents=True, exist_ok=True)
    table = pyarrow.table({"translation": [{"en": en, "es": es} for en, es in rows]})
    pyarrow.parquet.write_table(table, folder / f"opus/en-es/{hub_split}-00000-of-00001.parquet")
    names = "".join(f"  - {{split: {name}, path: en-es/{name}-*}}\n" for name in ("train", "validation", "test"))
    (folder / "opus/README.md").write_text(f"---\nconfigs:\n- config_name: en-es\n  data_files:\n{names}---\n")
    return "opus:en-es"


@pytest.mark.parametrize("form", [packed_parallel, like_the_hub])
def test_the_same_pairs_in_another_form_are_the_same_run(train_and_evaluate, plain, pairs, tmp_path, form, capsys):
    names = {split: form(tmp_path, split, rows) for split, rows in pairs.items()}
    run = train_and_evaluate(f"data.root={tmp_path}", *(f"data.{split}={name}" for split, name in names.items()))
    assert run.data["fingerprint"] == plain.data["fingerprint"]
    assert_evaluated(run, 12, run.data["files"]["test"][0]["sha256"])
    assert run.translations == plain.translations
    assert [run.scores[score] for score in SCORES] == [plain.scores[score] for score in SCORES]
    assert f"BLEU      {run.scores['bleu']:.2f}" in capsys.readouterr().out


def test_three_columns_without_held_out_sets(train_and_evaluate, pairs, tmp_path):
    """As manythings.org's spa.txt is: the third column names the authors of the sentences."""
    rows = "".join(f"{en}\t{es}\tCC-BY 2.0 (France) #1 (Ana)\n" for en, es in pairs["train"])
    (tmp_path / "spa.txt").write_text(rows, encoding="utf-8")
    run = train_and_evaluate(f"data.root={tmp_path}", "data.train=spa.txt", "data.valid=", "data.test=")
    (train,) = run.data["files"]["train"]
    assert (train["sha256"], train["rows"]) == (sha256_of_file(tmp_path / "spa.txt"), 160)
    assert (train["held_out"], train["pairs"]) == (16, 144)
    assert_evaluated(run, 8, sha256_of_file(run.folder / "held_out/test.tsv"))
    held_out = [(run.folder / "held_out" / f"{split}.tsv").read_text(encoding="utf-8") for split in SPLITS[1:]]
    both = [tuple(line.split("\t")) for text in held_out for line in text.splitlines()]
    assert len(both) == len(set(both)) == 16 and set(both) < set(pairs["train"])
    validated = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()][-1]
    assert (validated["step"], "bleu" in validated) == (2, True)
