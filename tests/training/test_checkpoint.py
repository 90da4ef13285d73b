"""Checkpoints: exact, whole or not at all, and damage is seen."""

import json
import shutil

import jax
import numpy as np
import pytest

from data.errors import UserError
from model.config import ModelConfig
from training.checkpoint import damaged_steps, good_steps, keep_only, load_for_inference, notes, restore, save
from training.config import TrainingConfig
from training.state import init_state

VOCAB = 20
MODEL = ModelConfig(d_model=4, num_heads=1, head_dim=4, encoder_layers=1, decoder_layers=1, d_ff=4)
TRAINING = TrainingConfig(steps=10, ema_decay=0.9)


def make_state(step, training=TRAINING):
    state = init_state(MODEL, training, VOCAB)
    return state._replace(
        step=state.step + step, averaged=state.averaged and jax.tree.map(lambda leaf: leaf * 2, state.params)
    )


def assert_same(some, others):
    jax.tree.map(np.testing.assert_array_equal, some, others)


@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
def test_what_is_saved_is_restored_bit_for_bit(tmp_path, ema_decay):
    training = TrainingConfig(steps=10, ema_decay=ema_decay)
    state = make_state(7, training)
    save(tmp_path, state, {"best_step": 3})
    assert_same(restore(tmp_path, 7, init_state(MODEL, training, VOCAB)), state)
    assert notes(tmp_path, 7) == {"best_step": 3}


def test_inference_gets_the_averaged_parameters_of_the_best_step(tmp_path):
    for step, best in ((2, 2), (4, 2)):
        save(tmp_path, make_state(step), {"best_step": best})
    params, step = load_for_inference(tmp_path, "best", MODEL, VOCAB)
    assert step == 2
    assert_same(params, make_state(2).averaged)
    assert load_for_inference(tmp_path, "latest", MODEL, VOCAB)[1] == 4
    assert load_for_inference(tmp_path, "4", MODEL, VOCAB)[1] == 4


def test_a_damaged_best_checkpoint_is_not_replaced_by_another_in_silence(tmp_path):
    for step in (2, 4):
        save(tmp_path, make_state(step), {"best_step": 2})
    (tmp_path / "checkpoints" / "2" / "manifest.json").unlink()
    assert damaged_steps(tmp_path) == [2]
    with pytest.raises(UserError, match=r"step 2, is damaged or gone; decoding.checkpoint=latest takes step 4"):
        load_for_inference(tmp_path, "best", MODEL, VOCAB)


def test_missing_checkpoints_are_the_users_to_fix(tmp_path):
    with pytest.raises(UserError, match="no complete checkpoint"):
        load_for_inference(tmp_path, "best", MODEL, VOCAB)
    save(tmp_path, make_state(2), {})
    with pytest.raises(UserError, match="no checkpoint at step 5; there are 2"):
        load_for_inference(tmp_path, "5", MODEL, VOCAB)


def test_every_damaged_file_is_seen(tmp_path):
    save(tmp_path, make_state(2), {})
    save(tmp_path, make_state(4), {})
    newest = tmp_path / "checkpoints" / "4"
    files = [path for path in newest.rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        content = path.read_bytes()
        damages = [content[: len(content) // 2] if content else b"x", None]
        if content and path.name != "manifest.json":
            damages.append(bytes([content[0] ^ 1]) + content[1:])
        for damage in damages:
            path.write_bytes(damage) if damage is not None else path.unlink()
            assert good_steps(tmp_path) == [2], path
            path.write_bytes(content)
    assert good_steps(tmp_path) == [2, 4]


def test_leftovers_of_an_interrupted_save_are_not_believed_and_go(tmp_path):
    save(tmp_path, make_state(2), {})
    shutil.copytree(tmp_path / "checkpoints" / "2", tmp_path / "checkpoints" / ".4")
    assert good_steps(tmp_path) == [2]
    save(tmp_path, make_state(4), {})
    assert good_steps(tmp_path) == [2, 4]
    assert not list((tmp_path / "checkpoints").glob(".*"))


def test_a_damaged_checkpoint_is_replaced_when_its_step_comes_again(tmp_path):
    path = save(tmp_path, make_state(2), {}) / "manifest.json"
    path.write_text(json.dumps({}))
    save(tmp_path, make_state(2), {"best_step": 2})
    assert notes(tmp_path, 2) == {"best_step": 2}
    assert good_steps(tmp_path) == [2]


def test_retention(tmp_path):
    for step in (1, 2, 3):
        save(tmp_path, make_state(step), {})
    keep_only(tmp_path, newest=1, best=1)
    assert good_steps(tmp_path) == [1, 3]
