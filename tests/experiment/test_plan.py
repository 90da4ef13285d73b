"""What is said of a corpus before training on it begins."""

from dataclasses import replace

import pytest

import training.progress
from common.errors import UserError
from configs.load import load_config
from data.prepare import prepare
from experiment.plan import advise_small_corpus, describe_plan
from training.progress import find_last_step


@pytest.fixture
def planned(small_experiment, tmp_path):
    """``planned(override, …)``: a config and its prepared corpus."""

    def planned(*overrides):
        config = load_config(small_experiment, [f"run_dir={tmp_path / 'run'}", "training.steps=0", *overrides])
        return config, prepare(config.data, config.tokenizer, config.training.seed)

    return planned


def test_many_epochs_of_few_pairs_are_told_unless_dropout_is_strong(planned):
    config, prepared = planned("training.epochs=10")
    line = advise_small_corpus(config, prepared)
    assert line is not None and line.startswith("10 epochs of 160 pairs with model.dropout=0.1: ")
    large = replace(prepared, report=replace(prepared.report, training_pairs=20_000))
    assert advise_small_corpus(config, large) is None
    for quiet in ("training.epochs=9", "model.dropout=0.2", "training.patience=3"):
        assert advise_small_corpus(*planned("training.epochs=10", quiet)) is None


def test_epochs_beyond_a_thousand_are_not_packed_to_count_their_steps(planned, monkeypatch):
    config, prepared = planned("training.epochs=30000")
    monkeypatch.setattr(training.progress, "COUNTED", 3)
    counted = [prepared.stream.steps_in(epoch) for epoch in range(3)]
    assert find_last_step(config.training, prepared.stream) == 10_000 * sum(counted)
    assert {epoch for epoch, _ in prepared.stream.windows.row_counts} == {0, 1, 2}
    assert find_last_step(replace(config.training, epochs=2), prepared.stream) == sum(counted[:2])
    assert find_last_step(replace(config.training, epochs=0, steps=7), prepared.stream) == 7


def test_the_plan_counts_the_steps_that_the_batches_take(planned, capsys, tmp_path):
    config, prepared = planned("training.epochs=12", "data.drop_overlap=true")
    first = next(step for step in range(1000) if prepared.stream.epoch_of(step)[0] == 1)
    last = next(step for step in range(1000) if prepared.stream.epoch_of(step)[0] == 12)
    corpus, length = describe_plan(config).splitlines()
    assert corpus.startswith("corpus               160 pairs (dropped: none) in rows of ")
    assert length == f"training             {last} steps; an epoch has {first}: {last / first:.1f} epochs"
    assert capsys.readouterr().err == f"warning: {advise_small_corpus(config, prepared)}\n"
    with pytest.raises(UserError, match="no train file at"):
        describe_plan(replace(config, data=replace(config.data, train=["none.tsv"])))
    assert not (tmp_path / "run").exists()
