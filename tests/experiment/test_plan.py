"""What is said of a corpus before training on it begins."""

from dataclasses import replace

import pytest

from common.errors import UserError
from configs.load import load_config
from data.prepare import prepare
from experiment.plan import advise_small_corpus, describe_plan
from training.schedule import Schedule


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


def test_the_end_is_expected_by_the_first_window_alone_and_found_when_it_is_near(planned):
    """However many epochs are asked for, nothing but what is trained on is packed."""
    config, prepared = planned("training.epochs=30000", "data.window=50")
    stream = prepared.stream
    first = stream.expected_steps()
    assert first == pytest.approx(stream.steps_in(0), abs=2)
    assert prepared.stream.windows.row_counts.keys() <= {(0, window) for window in range(4)}
    assert Schedule(config.training, stream).expected_end(0) == 30_000 * first
    three = Schedule(replace(config.training, epochs=3), stream)
    end = sum(stream.steps_in(epoch) for epoch in range(3))
    assert [three.is_last(step) for step in (end - 1, end)] == [False, True]
    assert three.expected_end(end) == end
    assert Schedule(replace(config.training, steps=7), stream).expected_end(0) == 7


def test_the_plan_counts_the_steps_that_the_batches_take(planned, capsys, tmp_path):
    config, prepared = planned("training.epochs=12", "data.drop_overlap=true")
    first = next(step for step in range(1000) if prepared.stream.epoch_of(step)[0] == 1)
    last = next(step for step in range(1000) if prepared.stream.epoch_of(step)[0] == 12)
    corpus, length = describe_plan(config).splitlines()
    assert corpus.startswith("corpus               160 pairs (dropped: none) in rows of ")
    assert length == f"training             {last} steps; an epoch has {first}: {last / first:.1f} epochs"
    assert capsys.readouterr().err == f"warning: {advise_small_corpus(config, prepared)}\n"
    (tmp_path / "long.tsv").write_text("word " * 500 + "\tuno\n")
    for changed, told in (({"train": ["none.tsv"]}, "no train"), ({"valid": str(tmp_path / "long.tsv")}, "has a pair")):
        with pytest.raises(UserError, match=told):
            describe_plan(replace(config, data=replace(config.data, **changed)))
    assert not (tmp_path / "run").exists()
