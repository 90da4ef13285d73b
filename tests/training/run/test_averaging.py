"""Averages of checkpoints: NumPy's mean, over the right steps, written whole or not at all."""

import json
import math
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common.errors import UserError
from tests.saved import save
from tests.training.run.test_checkpoint import MODEL, VOCAB
from training.config import TrainingConfig
from training.run.averaging import Validated, choose_steps, mean_params, read_validated, write_average
from training.run.checkpoint import load_for_inference, restore
from training.run.retention import delete_old_checkpoints
from training.state import state_shapes

STEPS = [2, 4, 10]  # as text, 10 sorts before the others
RUN = Path("runs/x")
CANCELLING = {2: 1e8, 4: 1.0, 10: -1e8}  # in float32 their sum is 0, or depends on the order


def random_params(like, seed):
    draw = np.random.default_rng(seed).standard_normal
    return jax.tree.map(lambda leaf: jnp.asarray(draw(leaf.shape), jnp.float32), like)


def make_run(folder, ema_decay):
    """A run with three checkpoints of random parameters, the embedding's first number taken from CANCELLING."""
    shapes = state_shapes(MODEL, TrainingConfig(steps=10, ema_decay=ema_decay), VOCAB)
    start = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    for step in STEPS:
        averaged = start.averaged and first_number_set(random_params(start.params, step + 100), CANCELLING[step])
        params = first_number_set(random_params(start.params, step), CANCELLING[step])
        state = start._replace(step=jnp.int32(step), params=params, averaged=averaged)
        save(folder, state, {"best_step": 4})
    return folder, start


def first_number_set(params, value):
    leaves, structure = jax.tree.flatten(params)
    return jax.tree.unflatten(structure, [leaves[0].at[(0,) * leaves[0].ndim].set(value), *leaves[1:]])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return {decay: make_run(tmp_path_factory.mktemp("run"), decay) for decay in (0.0, 0.9)}


@pytest.fixture
def run(saved, tmp_path):
    """A run of one's own, without an exponential average."""
    return shutil.copytree(saved[0.0][0], tmp_path / "run")


def average_of(run, steps=STEPS, name="last-3"):
    return write_average(run, steps, name, by="last", bleu={4: 12.5, 10: 1.0}, config=MODEL, vocab_size=VOCAB)


def assert_same_bits(some, others):
    def compare(leaf, other):
        assert leaf.dtype == other.dtype == np.float32
        np.testing.assert_array_equal(np.asarray(leaf).view(np.uint32), np.asarray(other).view(np.uint32))

    jax.tree.map(compare, some, others)


@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
def test_the_average_is_numpys_mean_in_float64_of_what_inference_would_use(saved, tmp_path, ema_decay):
    run, like = saved[ema_decay]
    states = [restore(run, step, like) for step in STEPS]
    assert (states[0].averaged is None) == (ema_decay == 0)
    evaluated = [state.inference_params for state in states]
    expected = jax.tree.map(lambda *leaves: np.mean(np.stack(leaves).astype(np.float64), axis=0), *evaluated)
    mean = mean_params(run, STEPS, MODEL, VOCAB)
    assert_same_bits(mean, jax.tree.map(lambda leaf: leaf.astype(np.float32), expected))
    assert np.float32(1 / 3) in np.asarray(jax.tree.leaves(mean)[0])  # of 1e8, 1 and -1e8


def test_what_is_kept_is_what_inference_gets(run):
    folder = average_of(run)
    assert folder == run / "averages" / "last-3"
    params, manifest = load_for_inference(run, "last-3", MODEL, VOCAB)
    assert manifest.step == 10
    assert_same_bits(params, mean_params(run, STEPS, MODEL, VOCAB))
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["step"] == 10
    assert manifest["notes"] == {"steps": STEPS, "by": "last", "bleu": {"4": 12.5, "10": 1.0}}
    assert {name.partition("/")[0] for name in manifest["sha256"]} == {"params"}


@pytest.mark.parametrize(("call", "newer"), [("write_manifest", False), ("os.replace", False), ("shutil.rmtree", True)])
def test_an_interrupted_replacement_leaves_the_old_or_the_new_average(run, monkeypatch, call, newer):
    """Before the manifest, before the renaming, and when the old one is to go. The next one takes the rest away."""
    average_of(run, [4], "kept")

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"training.run.write_trees.{call}", interrupt)
        with pytest.raises(KeyboardInterrupt):
            average_of(run, STEPS, "kept")
    assert load_for_inference(run, "kept", MODEL, VOCAB)[1].step == (10 if newer else 4)
    assert {path.name for path in (run / "averages").iterdir()} == {"kept", ".kept-old" if newer else ".kept"}
    average_of(run, [2], "kept")
    assert load_for_inference(run, "kept", MODEL, VOCAB)[1].step == 2
    assert [path.name for path in (run / "averages").iterdir()] == ["kept"]


def test_a_damaged_average_is_refused(run):
    (average_of(run) / "manifest.json").write_text("{}")
    with pytest.raises(UserError, match=r"last-3 is damaged: make it again with scripts/average_checkpoints"):
        load_for_inference(run, "last-3", MODEL, VOCAB)


def test_retention_leaves_averages_alone(run):
    average_of(run)
    expected = mean_params(run, STEPS, MODEL, VOCAB)
    delete_old_checkpoints(run, keep=1, best=10)
    assert_same_bits(load_for_inference(run, "last-3", MODEL, VOCAB)[0], expected)


def test_an_unknown_name_is_told_what_there_is(run, tmp_path):
    with pytest.raises(UserError, match=r"run has no average newest; there are best, latest, 2, 4, 10$"):
        load_for_inference(run, "newest", MODEL, VOCAB)
    average_of(run, name="mine")
    shutil.rmtree(run / "checkpoints")
    for name in ("newest", "../averages/mine", ".mine"):
        with pytest.raises(UserError, match=r"; there are mine$"):
            load_for_inference(run, name, MODEL, VOCAB)
    with pytest.raises(UserError, match="no complete checkpoint yet: train it"):
        load_for_inference(tmp_path / "nothing", "mine", MODEL, VOCAB)


def test_steps_are_the_last_or_those_of_the_best_bleu():
    bleu = {100: 30.0, 200: 33.0, 250: 99.0, 300: 31.0, 500: 31.0}
    validated = {step: Validated(each, 2.0) for step, each in bleu.items()}
    good = [100, 200, 300, 400, 500]  # and there is no checkpoint of step 250

    def chosen(count, by):
        return choose_steps(RUN, good, count, by, validated, TrainingConfig(steps=500))

    assert chosen(1, "last") == [500] and chosen(3, "last") == [300, 400, 500]
    assert chosen(1, "best") == [200] and chosen(4, "best") == [100, 200, 300, 500]
    assert chosen(2, "best") == [200, 500]  # of equal BLEU, the later
    validated[300] = Validated(31.0, 1.9)
    assert chosen(2, "best") == [200, 300]  # of equal BLEU, the lower loss


@pytest.mark.parametrize(("save_every", "keep"), [(0, 3), (5, 6), (4, 9), (10, 3), (99, 3)])
def test_the_advised_keep_has_room_for_saves_between_evaluations(save_every, keep):
    """As many as the advice are the newest of a long run: among them are three that were evaluated."""
    training, last = TrainingConfig(steps=2000, eval_every=10, save_every=save_every), 2000
    with pytest.raises(UserError, match=f"training.keep={keep} keeps enough"):
        choose_steps(RUN, [], 3, "best", {}, training)
    saved = [step for step in range(1, last + 1) if step % 10 == 0 or (save_every and step % save_every == 0)]
    validated = {step: Validated(30.0, 2.0) for step in range(10, last + 1, 10)}
    assert choose_steps(RUN, saved[-keep:], 3, "best", validated, training)


def test_bleu_and_loss_are_those_of_a_steps_newest_validation(tmp_path):
    assert read_validated(tmp_path) == {}
    entries = [
        {"step": 50, "kind": "train", "loss": 3.0},
        {"step": 100, "kind": "valid", "loss": "nan", "bleu": 1.5},
        {"step": 200, "kind": "valid", "loss": "nan", "bleu": 2},
        {"step": 100, "kind": "valid", "loss": 2.5, "bleu": 1.25},
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    found = read_validated(tmp_path)
    assert {step: each.bleu for step, each in found.items()} == {100: 1.25, 200: 2.0}
    assert found[100].loss == 2.5 and math.isnan(found[200].loss)


DAMAGED = [b"", b"[]", b"\xff", b'{"step": 8, "ki', b'{"step": 8}', b'{"step": 8, "kind": "valid"}']
DAMAGED += [b'{"step": "x", "kind": "valid", "bleu": 2}', b'{"step": 8, "kind": "valid", "bleu": null}']


@pytest.mark.parametrize("line", DAMAGED)
def test_a_line_that_is_none_of_metrics_is_named(tmp_path, line):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 2, "kind": "train"}\n' + line + b'\n{"step": 2, "kind": "train"}\n')
    with pytest.raises(UserError) as caught:
        read_validated(tmp_path)
    assert str(caught.value).startswith(f"{path}:2 is not a line of metrics")
