"""Every config change has a kind, and each kind its consequence."""

from dataclasses import replace

import pytest

from common.errors import UserError
from common.option import option
from configs.changes import accepted_changes, classify_changes
from configs.schema import RunConfig

OLD = RunConfig(run_dir="runs/mine")


def changed(section, **values):
    return replace(OLD, **{section: replace(getattr(OLD, section), **values)})


def test_a_key_that_does_not_say_what_it_changes_is_incompatible_compared_and_of_the_text():
    facts = option(1, "help").metadata
    assert (facts["changes"], facts["compared"], facts["of_text"]) == ("model", True, True)


@pytest.mark.parametrize(
    ("section", "values", "kind"),
    [
        ("training", {"steps": 7}, "nothing"),
        ("data", {"root": "/elsewhere"}, "nothing"),
        ("decoding", {"beam_size": 2, "length_penalty": 0.6}, "validation"),
        ("data", {"valid": "other.tsv"}, "validation"),
        ("training", {"learning_rate": 0.5}, "training"),
        ("model", {"dropout": 0.5}, "training"),
        ("data", {"header": "keep", "quoting": "csv", "encoding": "latin-1"}, "training"),
        ("model", {"d_ff": 7}, "model"),
        ("tokenizer", {"vocab_size": 400}, "model"),
        ("data", {"source": "es", "target": "en"}, "model"),
        ("mesh", {"fsdp": 2}, "nothing"),
    ],
)
def test_a_change_is_of_its_kind(section, values, kind):
    assert classify_changes(OLD, changed(section, **values)) == {f"{section}.{key}": kind for key in values}


def test_where_the_learning_rate_ends_with_the_steps_they_are_no_mere_limit():
    linear = replace(OLD, training=replace(OLD.training, schedule="linear"))
    longer = replace(linear, training=replace(linear.training, steps=7))
    assert classify_changes(linear, longer) == {"training.steps": "training"}


def test_another_decay_of_the_average_changes_the_training_and_having_one_is_incompatible():
    averaging = changed("training", ema_decay=0.9)
    assert classify_changes(averaging, changed("training", ema_decay=0.99)) == {"training.ema_decay": "training"}
    assert classify_changes(averaging, OLD) == {"training.ema_decay": "model"}


def test_another_schedule_of_weight_decay_changes_the_training_and_having_one_is_incompatible():
    def decaying(*points):
        return changed("training", optimizer="adamw", weight_decay=0.1, weight_decay_factor=[*map(list, points)])

    constant, falling, steep = decaying(), decaying((0.0, 1.0), (9.0, 0.0)), decaying((0.0, 1.0), (3.0, 0.0))
    assert classify_changes(falling, steep) == {"training.weight_decay_factor": "training"}
    assert classify_changes(constant, falling) == {"training.weight_decay_factor": "model"}  # optax counts its updates


def test_what_may_go_on_is_told_and_what_may_not_is_refused():
    new = replace(changed("training", learning_rate=0.5, keep=9), run_dir="runs/mine")
    with pytest.raises(UserError) as refusal:
        accepted_changes(OLD, new)
    assert str(refusal.value) == (
        "runs/mine was trained with another config: training.learning_rate: 0.001 → 0.5 (changes the training); "
        "training.keep: 1 → 9 (harmless). Undo it, set run_dir=NEW_FOLDER, or continue with it: allow_changes=true"
    )
    assert accepted_changes(OLD, replace(new, allow_changes=True)) == [
        "training.learning_rate: 0.001 → 0.5 (changes the training)",
        "training.keep: 1 → 9 (harmless)",
    ]
    assert accepted_changes(OLD, changed("training", keep=9)) == ["training.keep: 1 → 9 (harmless)"]
    with pytest.raises(UserError, match=r"model\.d_ff: 1024 → 7 \(incompatible\)\. Undo what is incompatible"):
        accepted_changes(OLD, replace(changed("model", d_ff=7), allow_changes=True))
