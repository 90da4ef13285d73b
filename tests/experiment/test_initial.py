"""A run that begins with the parameters of another one: ``training.init_from``."""

import shutil

import jax
import numpy as np
import pytest

from common.errors import UserError
from common.files import read_json_object
from configs.load import load_config
from experiment.initial import load_initial
from experiment.load_run import load_run
from tests.drawn import drawn_state
from tests.prepared import save_untrained
from tests.saved import save
from train import train
from training.config import MeshConfig
from training.devices.mesh import abstract_state, initial_state_on, make_mesh
from training.replay.inspect_step import inspect_update
from training.run.checkpoint import restore
from training.run.layout import INITIAL, TOKENIZER, checkpoint_path
from training.run.manifest import read_manifest
from training.state import state_shapes

BOTH = "data.direction=both"


@pytest.fixture(scope="module")
def first(small_experiment, tmp_path_factory):
    """A first stage in both directions; at step 3, its averaged parameters are twice the others."""
    run_dir = tmp_path_factory.mktemp("stages") / "first"
    config = load_config(small_experiment, [f"run_dir={run_dir}", BOTH, "training.ema_decay=0.9"])
    save_untrained(config)
    state = drawn_state(config.model, config.training, config.tokenizer.vocab_size)
    averaged = jax.tree.map(lambda leaf: 2 * leaf, state.params)
    save(run_dir, state._replace(step=state.step + 3, averaged=averaged), {"best_step": 3})
    return run_dir


@pytest.fixture
def second(small_experiment, tmp_path, first):
    """The config of a second stage in one direction."""

    def second(*overrides, source=first, name="second"):
        begins = [f"training.init_from={source}", f"run_dir={tmp_path / name}"]
        return load_config(small_experiment, [*begins, "training.ema_decay=0.5", *overrides])

    return second


@pytest.mark.parametrize(("checkpoint", "times"), [("", 2), (":best", 2), (":0", 1)])
def test_the_state_before_the_first_step_has_the_averaged_parameters(second, first, checkpoint, times):
    config = second(source=f"{first}{checkpoint}")
    initial, vocab_size = load_initial(config), config.tokenizer.vocab_size
    assert initial is not None
    like = abstract_state(make_mesh(MeshConfig(data=1)), config.model, config.training, vocab_size)
    state = initial_state_on(like, initial.params, config.training)
    drawn = drawn_state(config.model, config.training, vocab_size).params
    for params in (state.params, state.averaged):
        jax.tree.map(lambda found, before: np.testing.assert_array_equal(found, times * before), params, drawn)
    assert int(state.step) == 0
    assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(state.opt_state))


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (["model.d_ff=48", "tokenizer.vocab_size=400"], "model.d_ff: 32 → 48"),
        (["tokenizer.type=bpe"], "tokenizer.type: unigram → bpe"),
        (["model.query_key_norm=true"], "model.query_key_norm: false → true"),
        (["training.init_from=nowhere"], "nowhere is not a run directory"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key_and_nothing_is_written(second, tmp_path, overrides, problem):
    with pytest.raises(UserError) as refusal:
        train(second(*overrides))
    assert problem in str(refusal.value) and "\n" not in str(refusal.value)
    assert {path.name for path in (tmp_path / "second").iterdir()} <= {".lock", "process.json"}


def test_a_vocabulary_without_tags_serves_one_direction_only(second, small_experiment, tmp_path):
    plain = save_untrained(load_config(small_experiment, [f"run_dir={tmp_path / 'plain'}"]))
    with pytest.raises(UserError, match=r"does not fit: data\.direction=both, for which its vocabulary has no tags"):
        load_initial(second(BOTH, source=plain))


@pytest.mark.slow
def test_a_second_stage_keeps_the_vocabulary_replays_its_first_update_and_goes_on_alone(second, tmp_path, first):
    source = tmp_path / "first"
    shutil.copytree(first, source)
    short = (
        "training.log_every=1 training.save_every=1 training.keep=9 training.eval_every=4 decoding.beam_size=1".split()
    )
    train(second(*short, "training.steps=4", source=source))
    train(second(*short, "training.steps=2", source=source, name="parts"))
    run, record = load_run(tmp_path / "second"), read_json_object(tmp_path / "second" / INITIAL)
    assert (record["run"], record["checkpoint"]) == (str(source), "3")
    assert record["sha256"] == read_manifest(checkpoint_path(source, 3)).digest
    assert (run.folder / TOKENIZER).read_bytes() == (source / TOKENIZER).read_bytes()
    # Trained with the tag with which it translates, at the beginning of every row.
    assert {*run.recorded.setup(1).stream.batch(0).source_tokens[:, 0]} == {*run.translator.tag}
    assert inspect_update(run.recorded, 1).verified["checkpoint"] == "equal, bit for bit"

    source.rename(tmp_path / "moved")
    train(second(*short, "training.steps=4", source=source, name="parts"))
    like = state_shapes(run.config.model, run.config.training, run.config.tokenizer.vocab_size)
    jax.tree.map(np.testing.assert_array_equal, *(restore(tmp_path / name, 4, like) for name in ("second", "parts")))
    with pytest.raises(UserError, match="first has no complete checkpoint yet"):
        inspect_update(load_run(run.folder).recorded, 1)
