"""What is told before a run takes its first step."""

import pytest

from configs.load import load_config
from data.sources.phrasebook import phrasebook
from experiment.open_run import prepare_data, record_run
from scripts.inspect_data import inspect_data

PHRASES = [f"{english}\t{spanish}\n" for english, spanish, _ in phrasebook()["phrases:train"][:400]]


@pytest.fixture
def experiment(small_experiment, tmp_path):
    """``experiment(key=value, …)``: hand-written phrases for training, and a file of them to validate on."""
    (tmp_path / "mine.tsv").write_text("".join(PHRASES), encoding="utf-8")

    def experiment(*overrides):
        files = [f"data.train={tmp_path / 'mine.tsv'}", "data.valid=", "data.test=", f"run_dir={tmp_path / 'run'}"]
        return load_config(small_experiment, [*files, "tokenizer.vocab_size=400", *overrides])

    return experiment


def prepared(config, tmp_path, capsys):
    (tmp_path / "run").mkdir(exist_ok=True)
    record_run(config, tmp_path / "run", None, *prepare_data(config, tmp_path / "run", None))
    return capsys.readouterr().err


def test_a_corpus_in_the_wrong_direction_is_told_before_training(experiment, tmp_path, capsys):
    assert prepared(experiment(), tmp_path, capsys) == ""
    assert prepared(experiment("data.source=es", "data.target=en"), tmp_path, capsys) == ""
    told = prepared(experiment("data.columns=[es,en]"), tmp_path, capsys)
    assert told.startswith(f"warning: {tmp_path / 'mine.tsv'}: source and target look exchanged: in ")
    assert told.endswith("set data.columns=[en,es] (with data.source=es data.target=en to translate from es)\n")
    assert told.count("\n") == 1
    turned = ["\t".join(reversed(line.rstrip("\n").split("\t"))) + "\n" for line in PHRASES]
    (tmp_path / "turned.tsv").write_text("".join(turned), encoding="utf-8")
    told = prepared(experiment(f"data.train=[{tmp_path / 'mine.tsv'},{tmp_path / 'turned.tsv'}]"), tmp_path, capsys)
    assert told.startswith(f"warning: {tmp_path / 'turned.tsv'}: source and target look") and told.count("\n") == 1


def test_bad_rows_of_a_held_out_set_are_told(experiment, tmp_path, capsys):
    lines = [f"Phrase {number}.\tFrase {number}.\n" for number in range(150)]
    (tmp_path / "valid.tsv").write_text("".join([*lines, "no tab\n"]), encoding="utf-8")
    told = prepared(experiment(f"data.valid={tmp_path / 'valid.tsv'}", "data.malformed=skip"), tmp_path, capsys)
    assert told == (f"warning: {tmp_path / 'valid.tsv'}: 1 of 151 rows are not scored: 1 malformed, 0 empty\n")


def test_the_data_card_warns_too(experiment, capsys):
    inspect_data(experiment("data.columns=[es,en]"), "mine")
    assert "source and target look exchanged" in capsys.readouterr().err
