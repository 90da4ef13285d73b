"""What cannot be trained here is refused in one line that names what can."""

import jax
import numpy as np
import pytest

from attention.kernels.request import tracing_for
from common.errors import UserError
from data.batches.packing import Batch
from model.config import ModelConfig
from training.config import MeshConfig, TrainingConfig
from training.devices.mesh import abstract_state, make_mesh
from training.devices.preflight import check_memory, check_position_table, choose_kernels, compare_memory, device_memory

USES = ("encoder self-attention", "decoder self-attention", "encoder-decoder attention")


def test_a_named_kernel_serves_every_use_and_auto_chooses_for_each():
    assert choose_kernels(ModelConfig(kernel="chunked"), (64, 64)) == dict.fromkeys(USES, "chunked")
    auto = choose_kernels(ModelConfig(kernel="auto"), (2048, 16))
    assert list(auto.values()) == ["chunked", "definition", "definition"]
    low = ModelConfig(kernel="auto", dtype="bfloat16", matmul_dtype="bfloat16", positions="alibi")
    with tracing_for("gpu", capability=9.0):
        assert list(choose_kernels(low, (64, 64)).values()) == ["definition", "definition", "cudnn"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"kernel": "cudnn"}, "model.kernel=cudnn: kernel cudnn needs an NVIDIA GPU, and this is a cpu; for this"),
        ({"kernel": "xla", "score": "additive"}, "kernel xla has dot-product scores only, not additive ones"),
        ({"kernel": "xla", "value_dim": 5}, "kernel xla needs values as wide as keys, not 5 beside 64"),
        ({"kernel": "chunked", "attention_dropout": 0.1}, "no attention dropout; for this attention choose definition"),
    ],
    ids=str,
)
def test_what_a_kernel_cannot_serve_is_refused_with_those_that_can(changes, told):
    with pytest.raises(UserError) as refused, tracing_for("cpu"):
        choose_kernels(ModelConfig(**changes), (64, 64))
    assert told in str(refused.value) and "definition" in str(refused.value)


def test_learned_positions_must_reach_to_the_end_of_rows_and_validation_sentences():
    batch = Batch(*(np.arange(100)[None] for _ in Batch._fields))
    learned = ModelConfig(positions="learned", max_positions=100)
    check_position_table(learned, (64, 64), [batch])
    check_position_table(ModelConfig(max_positions=1), (64, 64), [batch])  # no table
    for lengths, batches in (((101, 64), []), ((64, 64), [jax.tree.map(lambda array: array + 1, batch)])):
        with pytest.raises(UserError, match=r"model.max_positions=100 .* set it to 101 or more"):
            check_position_table(learned, lengths, batches)


def test_the_memory_that_is_needed_stands_beside_what_is_there():
    assert compare_memory(3 * 2**29, None) == "about 1.50 GiB"
    assert compare_memory(3 * 2**29, 2**31) == "about 1.50 GiB of 2.00 GiB"
    assert compare_memory(2**31 + 2**29, 2**31) == "about 2.50 GiB of 2.00 GiB: too much"
    assert device_memory() is not None


def test_a_state_is_weighed_as_it_lies_in_memory():
    """A parameter that Adam learns is three numbers of four bytes; a step and its sums are some bytes more."""
    config = ModelConfig(d_model=8, num_heads=1, head_dim=8, d_ff=8, encoder_layers=1, decoder_layers=1)
    state = abstract_state(make_mesh(MeshConfig()), config, TrainingConfig(steps=1), 300)
    count = sum(leaf.size for leaf in jax.tree.leaves(state.params))
    with pytest.raises(UserError, match=f"training {count:,} parameters needs about 0.0"):
        check_memory(state, 12 * count)
    check_memory(state, 12 * count + 100)
    check_memory(state, None)
