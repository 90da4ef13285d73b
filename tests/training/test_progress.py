"""What is said of validation losses that rise, and the notes that progress is read from."""

import json
import math

import pytest

from common.errors import UserError
from training.progress import Progress, describe_rise
from training.validation import losses_so_far


@pytest.mark.parametrize("notes", [{"best_step": "x"}, {"seconds": []}, {"batches": 5}, {"batches": "x"}, {"other": 1}])
def test_notes_of_other_types_are_refused(notes):
    assert Progress.from_notes(Progress(best_step=4).to_notes()) == Progress(best_step=4)
    with pytest.raises(UserError, match="a checkpoint's notes are not from a training run"):
        Progress.from_notes(notes)


RISING = [(100, 2.0), (200, 1.0), (300, 1.05), (400, 1.06), (500, 2.0), (600, 0.9), (700, 3.0)]


def test_a_loss_far_above_the_lowest_is_told_once():
    """1.06 is the first above 1.05 × 1.0."""
    told = [describe_rise(RISING[:count]) for count in range(8)]
    assert [line is not None for line in told] == [False, False, False, False, True, False, False, False]
    assert told[4] is not None and told[4].startswith("validation loss has risen from 1 at step 200 to 1.06: ")


def test_what_falls_or_is_no_number_has_not_risen():
    assert describe_rise([(100, 2.0), (200, 1.0)]) is None
    assert describe_rise([(100, math.nan), (200, 1.0)]) is None
    assert describe_rise([(100, 1.0), (200, math.nan)]) is None


def test_losses_from_before_a_change_of_the_config_are_not_compared(tmp_path):
    """They may be of another validation set: a copy that is fine-tuned has not learned anything by heart yet."""
    steps, kinds = (100, 200, 300), ("train", "valid")
    lines = [{"step": step, "kind": kind, "loss": step / 100} for step in steps for kind in kinds]
    lines.append({"step": 350, "kind": "valid"})
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert losses_so_far(tmp_path) == [(100, 1.0), (200, 2.0), (300, 3.0)]
    (tmp_path / "config.until-200.yaml").touch()
    assert losses_so_far(tmp_path) == [(300, 3.0)]
