"""A corpus as others publish it trains and evaluates as a user does it, and the same pairs in any form are the same."""

import gzip
import json
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

import eval as evaluation_program
import train as training_program
from common.files import sha256_of_file
from configs.load import load_config
from data.prepare import Prepared, prepare

pytestmark = pytest.mark.slow

SPLITS = ("train", "valid", "test")
Pairs = dict[str, list[tuple[str, str]]]  # of each split


@pytest.fixture(scope="module")
def pairs(small_experiment) -> Pairs:
    """The pairs of the small experiment."""
    texts = {split: (small_experiment.parent / f"{split}.tsv").read_text(encoding="utf-8") for split in SPLITS}
    return {split: [tuple(line.split("\t")) for line in text.splitlines()] for split, text in texts.items()}


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
def test_the_same_pairs_in_another_form_are_the_same_corpus(small_experiment, pairs, tmp_path, form):
    """The same batches, which have the vocabulary's digest, and the same sets to score: all that a run depends on."""
    names = {split: form(tmp_path, split, rows) for split, rows in pairs.items()}

    def prepared(*overrides: str) -> Prepared:
        config = load_config(small_experiment, overrides)
        return prepare(config.data, config.tokenizer, config.training.seed)

    other = prepared(f"data.root={tmp_path}", *(f"data.{split}={name}" for split, name in names.items()))
    assert other.report.fingerprint == prepared().report.fingerprint
    for split, found in (("valid", other.corpus.valid), ("test", other.corpus.test)):
        assert list(zip(found.sources, found.targets, strict=True)) == pairs[split]


def test_three_columns_without_held_out_sets(small_experiment, pairs, tmp_path, monkeypatch):
    """As manythings.org's spa.txt is: the third column names the authors of the sentences."""
    rows, run = "".join(f"{en}\t{es}\tCC-BY 2.0 (France) #1 (Ana)\n" for en, es in pairs["train"]), tmp_path / "run"
    (tmp_path / "spa.txt").write_text(rows, encoding="utf-8")
    changes = [f"data.root={tmp_path}", "data.train=spa.txt", "data.valid=", "data.test=", "training.steps=2"]
    monkeypatch.setattr("signal.signal", lambda *_: None)  # SIGPIPE is this process's own business
    monkeypatch.setattr(sys, "argv", ["train.py", str(small_experiment), f"run_dir={run}", *changes])
    training_program.main()
    monkeypatch.setattr(sys, "argv", ["eval.py", str(run)])
    evaluation_program.main()

    (train,) = json.loads((run / "data.json").read_text())["files"]["train"]
    assert (train["sha256"], train["rows"]) == (sha256_of_file(tmp_path / "spa.txt"), 160)
    assert (train["held_out"], train["pairs"]) == (16, 144)
    held_out = [(run / "held_out" / f"{split}.tsv").read_text(encoding="utf-8") for split in SPLITS[1:]]
    both = [tuple(line.split("\t")) for text in held_out for line in text.splitlines()]
    assert len(both) == len(set(both)) == 16 and set(both) < set(pairs["train"])
    validated = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()][-1]
    assert (validated["step"], "bleu" in validated) == (2, True)

    scores = json.loads((run / "eval/test.json").read_text())
    digest = sha256_of_file(run / "held_out/test.tsv")
    assert (scores["step"], scores["sources"], scores["test_set_sha256"]) == (2, 8, digest)
    assert scores["overlap_with_training"] == {"sources": 0, "targets": 0}
    assert (run / "eval/test.translations.txt").read_text(encoding="utf-8").count("\n") == 8
