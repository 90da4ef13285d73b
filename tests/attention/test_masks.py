"""Which keys a query sees, on rows short enough to write out."""

import jax.numpy as jnp
import numpy as np

from attention.masks import visible_keys


def sees(query_segments, key_segments, **options):
    return visible_keys(jnp.array(query_segments), jnp.array(key_segments), **options).astype(int).tolist()


def test_a_query_sees_its_whole_sentence_and_a_causal_one_itself_and_what_stands_before_it():
    segments = [1, 1, 2, 0]
    assert sees(segments, segments, causal=True) == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert sees(segments, segments, causal=False) == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]


def test_a_target_sees_the_source_of_its_own_pair_and_padding_sees_no_padding():
    assert sees([1, 2, 2, 0], [1, 1, 2, 3, 0], causal=False) == [
        [1, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 0, 0, 0],
    ]


def test_causality_goes_by_the_place_in_the_row_also_where_lengths_differ():
    assert sees([1, 1], [1, 1, 1], causal=True) == [[1, 0, 0], [1, 1, 0]]
    assert sees([1, 1, 1], [1, 1], causal=True) == [[1, 0], [1, 1], [1, 1]]


def test_queries_that_are_a_part_of_the_row_see_what_they_see_in_the_whole():
    segments = jnp.array([1, 1, 2, 2, 2, 0])
    whole = visible_keys(segments, segments, causal=True)
    part = jnp.array([4, 1])
    np.testing.assert_array_equal(visible_keys(segments[part], segments, causal=True, query_places=part), whole[part])
    whole = visible_keys(segments, segments, causal=False)  # without causality, places mean nothing
    np.testing.assert_array_equal(visible_keys(segments[part], segments, causal=False, query_places=part), whole[part])
