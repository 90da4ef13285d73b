import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from common.special_tokens import BOS, EOS
from data.batches.packing import place, row_lengths
from data.tokens.table import token_table
from tests.prepared import fill


def test_a_tiny_example_by_hand():
    """The pair of (5, 5) tokens comes first and leaves no target place for (1, 2), which then joins (3, 2)."""
    sources = token_table([[11, 12], [], [13, 14, 15, 16]])
    targets = token_table([[21], [22], [23, 24, 25, 26]])
    placement = place(sources.length, targets.length, (6, 5))
    batch = fill(sources, targets, placement, (6, 5))
    assert batch.source_tokens.tolist() == [[13, 14, 15, 16, EOS, 0], [11, 12, EOS, EOS, 0, 0]]
    assert batch.target_labels.tolist() == [[23, 24, 25, 26, EOS], [21, EOS, 22, EOS, 0]]
    assert placement.row.tolist() == [1, 1, 0]
    assert placement.segment.tolist() == [1, 2, 1]
    assert placement.source_offset.tolist() == [0, 3, 0]
    assert placement.target_offset.tolist() == [0, 2, 0]


def test_row_lengths_follow_the_ratio_of_the_corpus():
    assert row_lengths(np.array([10, 30]), np.array([5, 25]), 64) == (64, 48)  # 30 of 40 tokens
    assert row_lengths(np.array([5, 25]), np.array([10, 30]), 64) == (48, 64)
    assert row_lengths(np.array([7]), np.array([7]), 100) == (100, 100)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(2, 40), st.integers(2, 40))
def test_every_pair_is_placed_once_without_overlap(data, width, height):
    pair = st.tuples(st.integers(1, width), st.integers(1, height))
    lengths = np.array(data.draw(st.lists(pair, min_size=1, max_size=120)))
    rng = np.random.default_rng(len(lengths))
    sources = token_table(rng.integers(4, 9999, n - 1).tolist() for n in lengths[:, 0])
    targets = token_table(rng.integers(4, 9999, n - 1).tolist() for n in lengths[:, 1])
    placement = place(sources.length, targets.length, (width, height))
    batch = fill(sources, targets, placement, (width, height))
    assert batch.source_tokens.shape == (placement.rows, width)
    assert batch.target_labels.shape == (placement.rows, height)
    # as many real tokens as there are: nothing was overwritten; and every pair can be read back from its segment
    assert (batch.source_segments > 0).sum() == lengths[:, 0].sum()
    assert (batch.target_segments > 0).sum() == lengths[:, 1].sum()
    for i, (row, segment) in enumerate(zip(placement.row, placement.segment, strict=True)):
        source, target = batch.source_segments[row] == segment, batch.target_segments[row] == segment
        for tokens, table in ((batch.source_tokens[row][source], sources), (batch.target_labels[row][target], targets)):
            assert tokens.tolist() == table.flat[table.start[i] :][: table.length[i]].tolist()
        assert batch.source_positions[row][source].tolist() == list(range(lengths[i, 0]))
        assert batch.target_inputs[row][target].tolist() == [BOS, *batch.target_labels[row][target][:-1]]
    assert (batch.source_segments.max(axis=1) > 0).all()  # no row is empty
