"""What is said of validation losses that rise."""

import math

from training.progress import describe_rise

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
