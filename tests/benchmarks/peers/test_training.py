"""PyTorch models of our dimensions: as large as ours, and they learn."""

import re
from dataclasses import replace

import jax
import numpy as np
import pytest

from benchmarks.cost.step import StepWork
from benchmarks.peers import training as train_peers
from benchmarks.peers.training import PEERS, Peer, refusal_of_peer
from model.config import ModelConfig
from training.config import TrainingConfig

MODEL = ModelConfig(d_model=16, num_heads=2, head_dim=8, encoder_layers=1, decoder_layers=2, d_ff=32)
WORK = StepWork(MODEL, vocab_size=50, rows=3, sources=4, targets=5)
TRAINING = TrainingConfig(steps=1, learning_rate=1e-2)
RUNS_ON_CPU = pytest.mark.skipif(jax.default_backend() != "cpu", reason="has the contestants of a CPU")


@pytest.fixture
def torch():
    pytest.importorskip("transformers")
    return pytest.importorskip("torch")


def test_who_is_not_installed_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(train_peers, "find_spec", lambda package: None)
    assert refusal_of_peer("marian", WORK) == "needs torch, transformers: pip install -e '.[bench]'"


def test_peers_are_asked_for_the_same_work_only(monkeypatch):
    monkeypatch.setattr(train_peers, "find_spec", lambda package: True)
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    assert refusal_of_peer("torch", WORK) == ""
    assert "one sentence" in refusal_of_peer("torch", replace(WORK, sentences=2))
    for changes in ({"key_value_heads": 1}, {"positions": "rotary"}, {"head_dim": 4}, {"attention_dropout": 0.1}):
        assert "plain" in refusal_of_peer("torch", replace(WORK, model=replace(MODEL, **changes))), changes


@RUNS_ON_CPU
@pytest.mark.parametrize("name", PEERS)
def test_peers_have_our_parameters_and_take_steps(torch, name):
    peer = Peer(name, WORK, TRAINING)
    learned = [parameter for parameter in peer.model.parameters() if parameter.requires_grad]
    before, first = [parameter.detach().clone() for parameter in learned], peer.model(**peer.batch).item()
    for _ in range(20):
        jax.block_until_ready(peer())
    assert peer.model(**peer.batch).item() < first
    assert all((old != new).any() for old, new in zip(before, learned, strict=True))
    # MarianMT is post-norm: without the norm at the end of encoder and decoder, a scale and a bias of 16 each.
    fewer = 2 * 2 * 16 if name == "marian" else 0
    assert peer.figures()["parameters"] == WORK.parameters() - fewer


@RUNS_ON_CPU
@pytest.mark.parametrize("name", ["marian", "torch"])
def test_peers_hide_the_future_and_see_the_source(torch, name):
    model = Peer(name, WORK, TRAINING).model.eval()
    logits = {}

    def keep(module, inputs, output):
        logits["now"] = output.logits if name == "marian" else output

    (model.marian if name == "marian" else model.transformer).register_forward_hook(keep)
    batch = train_peers.on_device(WORK.batch(), torch.device("cpu"))
    seen = []
    for changed in (None, "target_inputs", "source_tokens"):
        other = {key: value.clone() for key, value in batch.items()}
        if changed:
            other[changed][:, -1] += 1 - 2 * (other[changed][:, -1] > 40).long()
        with torch.inference_mode():
            model(**other)
        seen.append(logits["now"].numpy().copy())
    np.testing.assert_allclose(seen[1][:, :-1], seen[0][:, :-1], atol=1e-6)
    assert np.abs(seen[1][:, -1] - seen[0][:, -1]).max() > 1e-4
    assert np.abs(seen[2] - seen[0]).max(axis=(0, 2)).min() > 1e-6


def test_names_tell_the_dtype():
    assert all(re.fullmatch(r"(marian|torch)(-bfloat16)?", name) for name in (*PEERS, *train_peers.GPU_PEERS))
