"""Every config change has a kind, and each kind its consequence."""

from dataclasses import replace

import pytest

from common.errors import UserError
from configs.changes import CHANGES_TRAINING, CHANGES_VALIDATION, HARMLESS, accepted_changes, classify_changes
from configs.keys import KEYS, RUN_KEYS, SECTIONS
from configs.schema import RunConfig

OLD = RunConfig(run_dir="runs/mine")


def changed(section, **values):
    return replace(OLD, **{section: replace(getattr(OLD, section), **values)})


def kinds(new, old=OLD):
    return {text.partition(":")[0]: kind for text, kind in classify_changes(old, new).items()}


def test_the_tables_name_keys_that_there_are_and_none_twice():
    named = [*HARMLESS, *CHANGES_TRAINING, *CHANGES_VALIDATION]
    assert len(named) == len(set(named))
    assert set(named) <= KEYS.keys() | SECTIONS.keys()
    assert not set(named) & {key.name for key in RUN_KEYS}


@pytest.mark.parametrize(
    ("section", "values", "kind"),
    [
        ("training", {"steps": 7}, "harmless"),
        ("training", {"patience": 3}, "harmless"),
        ("training", {"keep": 9}, "harmless"),
        ("training", {"save_minutes": 9.0}, "harmless"),
        ("data", {"root": "/elsewhere"}, "harmless"),
        ("data", {"max_malformed": 0.5}, "harmless"),
        ("decoding", {"batch_sentences": 2}, "harmless"),
        ("decoding", {"beam_size": 2, "length_penalty": 0.6}, "changes the validation"),
        ("data", {"valid": "other.tsv"}, "changes the validation"),
        ("training", {"learning_rate": 0.5}, "changes the training"),
        ("training", {"schedule": "cosine"}, "changes the training"),
        ("training", {"seed": 9}, "changes the training"),
        ("model", {"dropout": 0.5}, "changes the training"),
        ("model", {"kernel": "xla"}, "changes the training"),
        ("data", {"train": ["other.tsv"]}, "changes the training"),
        ("data", {"row_length": 32}, "changes the training"),
        ("data", {"header": "keep", "quoting": "csv", "encoding": "latin-1"}, "changes the training"),
        ("model", {"d_ff": 7}, "incompatible"),
        ("model", {"activation": "gelu"}, "incompatible"),
        ("tokenizer", {"vocab_size": 400}, "incompatible"),
        ("training", {"optimizer": "adamw"}, "incompatible"),
        ("training", {"ema_decay": 0.9}, "incompatible"),
        ("data", {"source": "es", "target": "en"}, "incompatible"),
    ],
)
def test_a_change_is_of_its_kind(section, values, kind):
    assert kinds(changed(section, **values)) == {f"{section}.{key}": kind for key in values}


def test_where_the_learning_rate_ends_with_the_steps_they_are_no_mere_limit():
    linear = replace(OLD, training=replace(OLD.training, schedule="linear"))
    longer = replace(linear, training=replace(linear.training, steps=7))
    assert kinds(longer, linear) == {"training.steps": "changes the training"}


def test_another_decay_of_the_average_changes_the_training_and_having_one_is_incompatible():
    averaging = changed("training", ema_decay=0.9)
    assert kinds(changed("training", ema_decay=0.99), averaging) == {"training.ema_decay": "changes the training"}
    assert kinds(OLD, averaging) == {"training.ema_decay": "incompatible"}


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
