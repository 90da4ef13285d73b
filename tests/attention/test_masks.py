"""Which keys a query sees, on rows short enough to write out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention.masks import Mask, visible_keys


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
    np.testing.assert_array_equal(  # without causality, places mean nothing
        visible_keys(segments[part], segments, causal=False, query_places=part),
        visible_keys(segments, segments, causal=False)[part],
    )


@pytest.mark.parametrize("causal", [False, True])
def test_a_mask_is_the_rule_in_every_row(causal):
    query_segments, key_segments = jnp.array([[1, 1, 2], [1, 0, 0]]), jnp.array([[1, 2, 2, 0], [0, 1, 1, 1]])
    visible = Mask(query_segments, key_segments, causal).visible()
    for row in range(2):
        np.testing.assert_array_equal(visible[row], visible_keys(query_segments[row], key_segments[row], causal=causal))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("transform", [jax.jit, jax.checkpoint, lambda function: jax.jit(jax.checkpoint(function))])
def test_causality_is_static_where_a_mask_is_an_argument(transform, causal):
    segments = jnp.array([[1, 1, 2, 0]])
    mask = Mask(segments, segments, causal)
    visible, causality = transform(lambda mask: (mask.visible(), mask.causal is causal))(mask)
    np.testing.assert_array_equal(visible, mask.visible())
    assert causality and len(jax.tree.leaves(mask)) == 2
