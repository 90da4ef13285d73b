"""The cost of decoding by hand."""

import pytest

from benchmarks.cost.decoding import DecodingCost
from tests.benchmarks.small import DECODING


def test_operations_by_hand():
    """Multiplications, each with an addition, one matrix after the other."""
    # Encoder, 4 tokens, 1 layer: four projections 16 × 16; up and down 16 × 32; 4 scores and 4 values of 2 × 8.
    encoder = 4 * (4 * 256 + 2 * 512 + 4 * 16 + 4 * 16)
    cross_keys_and_values = 4 * 2 * 2 * 256  # 4 tokens, 2 layers
    # Decoder, a token in a layer: 6 projections; up and down; scores and values of the source.
    layer = 6 * 256 + 2 * 512 + 2 * 4 * 16
    past = (1 + 2 + 3 + 4 + 5) * 2 * 16  # scores and values of the 5 tokens, in a layer
    decoder = 5 * (2 * layer + 16 * 50) + 2 * past
    assert DECODING.flops(1) == 2 * (encoder + cross_keys_and_values + decoder)
    assert DECODING.flops(5) == 2 * (encoder + cross_keys_and_values + 5 * decoder)


def test_operations_of_the_usual_sentences():
    """At 200 GFLOP/s these are about 900 sentences a second greedily, and 237 with five beams."""
    cost = DecodingCost()
    assert cost.flops(1) == 221_126_656
    assert (200e9 / cost.flops(1), 200e9 / cost.flops(5)) == pytest.approx((904, 238), abs=1)


def test_sentences_have_no_special_tokens_and_are_the_same_for_all():
    rows = DECODING.source_tokens()
    assert rows.shape == (3, 4) and rows.min() >= 4 and rows.max() < 50
    assert (rows == DECODING.source_tokens()).all()
