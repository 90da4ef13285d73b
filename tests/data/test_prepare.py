import json

import numpy as np
import pytest

from common.errors import UserError
from data.config import DataConfig, TokenizerConfig
from data.pairs import Pairs
from tests.prepared import prepare_and_save

TOKENIZER = TokenizerConfig(vocab_size=330)


@pytest.fixture
def folder(tmp_path, phrases):
    write(tmp_path / "train.tsv", Pairs(["", *phrases.sources, "Hi."], ["vacío", *phrases.targets, "z" * 90]))
    write(tmp_path / "valid.tsv", Pairs(["How are you?", ""], ["¿Qué tal?", "Nada."]))
    write(tmp_path / "test.tsv", Pairs(["Good night."], ["Buenas noches."]))
    return tmp_path


def write(path, pairs):
    path.write_text("".join(f"{s}\t{t}\n" for s, t in zip(pairs.sources, pairs.targets, strict=True)))


def config(folder, **changes):
    return DataConfig(root=str(folder), batch_rows=4, **changes)


def test_a_run_directory_tells_where_its_data_came_from(folder):
    run = folder / "runs/a"
    run.mkdir(parents=True)
    prepared = prepare_and_save(config(folder), TOKENIZER, 1, run)
    report = json.loads((run / "data.json").read_text())
    assert report == json.loads(prepared.report.as_json())
    rows = {split: [file["rows"] for file in files] for split, files in report["files"].items()}
    assert rows == {"train": [242], "valid": [2], "test": [1]}
    nothing = {"malformed": 0, "overlapping": 0, "held_out": 0, "over_long": 0}
    assert report["dropped"] == nothing | {"empty": 1, "mismatched": 1}
    assert report["training_pairs"] + sum(report["dropped"].values()) == 242
    assert len(prepared.valid) == 2
    assert {path.name for path in run.iterdir()} == {
        "data.json", "row_counts.json", "tokenizer.json", "tokenizer.model", "training_sentences.npz",
        "source_words.npz", "target_words.npz"
    }  # fmt: skip


def test_preparing_again_gives_the_same_batches(folder):
    first = prepare_and_save(config(folder), TOKENIZER, 1, folder / "run")
    again = prepare_and_save(config(folder), TOKENIZER, 1, folder / "run")
    assert again.report == first.report
    assert np.array_equal(first.stream.batch(5).target_labels, again.stream.batch(5).target_labels)


@pytest.mark.parametrize("fault", ["leak", "vocabulary", "bad line", "missing", "one-sided"])
def test_nothing_is_written_before_every_check_has_passed(folder, phrases, fault):
    tokenizer = TOKENIZER
    if fault == "leak":
        write(folder / "test.tsv", Pairs([phrases.sources[0].upper()], ["nuevo"]))
    elif fault == "vocabulary":
        tokenizer = TokenizerConfig(vocab_size=8000)
    elif fault == "bad line":
        (folder / "test.tsv").write_bytes(b"one\tuno\ntwo dos\n")
    elif fault == "one-sided":
        write(folder / "train.tsv", Pairs(["", "x"], ["y", ""]))
    else:
        (folder / "test.tsv").unlink()
    with pytest.raises(UserError):
        prepare_and_save(config(folder), tokenizer, 1, folder / "run")
    assert not (folder / "run").exists()


def test_overlap_can_be_accepted_by_name(folder, phrases):
    write(folder / "test.tsv", Pairs([phrases.sources[0].upper()], ["nuevo"]))
    report = prepare_and_save(config(folder, allow_overlap=["train/test"]), TOKENIZER, 1, folder / "run").report
    assert report.overlap["train/test"].source.shared == 1
