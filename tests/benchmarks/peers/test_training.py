"""PyTorch models of our dimensions: as large as ours, and they learn."""

from dataclasses import replace

import jax
import pytest

from benchmarks.training import PEERS, Task, check_plain, prepare_peer
from common.errors import UserError
from tests.benchmarks.small import MODEL, RUNS_ON_CPU, STEP, TRAINING


def test_peers_take_the_same_work_only():
    check_plain(Task(STEP, TRAINING))
    with pytest.raises(UserError, match="one sentence"):
        check_plain(Task(replace(STEP, sentences=2), TRAINING))
    for model in (replace(MODEL, key_value_heads=1), replace(MODEL, positions="rotary"), replace(MODEL, head_dim=4)):
        with pytest.raises(UserError, match="plain"):
            check_plain(Task(replace(STEP, model=model), TRAINING))
    words, blocks = replace(MODEL, source_word_dropout=0.1), replace(MODEL, decoder_layer_drop=0.1)
    for model in (replace(MODEL, attention_dropout=0.1), replace(MODEL, activation_dropout=0.1), words, blocks):
        with pytest.raises(UserError, match=r"model\.dropout only"):
            check_plain(Task(replace(STEP, model=model), TRAINING))
    muon, fast = replace(TRAINING, optimizer="muon"), replace(TRAINING, embedding_rate=2.0)
    for training in (muon, fast, replace(TRAINING, consistency="simcut")):
        with pytest.raises(UserError, match="Adam's steps"):
            check_plain(Task(STEP, training))


@pytest.mark.torch
@RUNS_ON_CPU
@pytest.mark.parametrize("name", [*PEERS, "marian-bfloat16"])
def test_peers_have_our_parameters_and_take_steps(name):
    from benchmarks.peers.marian import MarianLoss
    from benchmarks.peers.pytorch import TrainingStep, TransformerLoss

    loss = (MarianLoss if name.startswith("marian") else TransformerLoss)(STEP, TRAINING)
    step = TrainingStep(loss, STEP, TRAINING, autocast=name.endswith("bfloat16"))
    learned = [parameter for parameter in step.loss.parameters() if parameter.requires_grad]
    before, first = [parameter.detach().clone() for parameter in learned], step.loss(**step.batch).item()
    for _ in range(20):
        jax.block_until_ready(step())
    assert step.loss(**step.batch).item() < first
    assert all((old != new).any() for old, new in zip(before, learned, strict=True))
    # MarianMT is post-norm: without the norm at the end of encoder and decoder, a scale and a bias of 16 each.
    fewer = 2 * 2 * 16 if name.startswith("marian") else 0
    usage = prepare_peer(name, Task(STEP, TRAINING)).facts()
    assert usage.parameters == step.count_parameters() == STEP.parameters() - fewer
    assert usage.compile_seconds is None
