"""Filters of training pairs."""

import numpy as np

from data.corpus.report import Dropped
from data.pairs import Pairs


def filter_pairs(pairs: Pairs, max_length_ratio: float) -> tuple[Pairs, Dropped]:
    """Drop and count training pairs with an empty or a badly mismatched side. Never applied to held-out pairs."""
    source, target = (np.fromiter(map(len, side), np.int64, len(pairs)) for side in (pairs.sources, pairs.targets))
    short, long = np.minimum(source, target), np.maximum(source, target)
    # The 5 lets short pairs differ freely: "Hi." / "¿Qué tal estás?".
    mismatched = (short > 0) & (long + 5 > max_length_ratio * (short + 5))
    dropped = Dropped(empty=int((short == 0).sum()), mismatched=int(mismatched.sum()))
    return pairs.select((short > 0) & ~mismatched), dropped
