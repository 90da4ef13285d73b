"""A run that begins with the parameters of another one: ``training.init_from``."""

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
from training.devices.mesh import abstract_state, compile_initial_state, make_mesh
from training.replay.inspect_step import inspect_update
from training.run.checkpoint import restore
from training.run.layout import INITIAL, TOKENIZER, checkpoint_path
from training.run.manifest import read_manifest
from training.state import state_shapes


@pytest.fixture
def second(small_experiment, tmp_path):
    """Configs that begin with a first stage in both directions, whose averages at step 3 are twice its parameters."""
    first = [f"run_dir={tmp_path / 'first'}", "data.direction=both", "training.ema_decay=0.9"]
    config = load_config(small_experiment, first)
    state, run_dir = drawn_state(config.model, config.training, config.tokenizer.vocab_size), save_untrained(config)
    averaged = jax.tree.map(lambda leaf: 2 * leaf, state.params)
    save(run_dir, state._replace(step=state.step + 3, averaged=averaged), {"best_step": 3})

    def second(*overrides, source=run_dir, name="second"):
        begins = [f"training.init_from={source}", f"run_dir={tmp_path / name}", "training.ema_decay=0.5"]
        return load_config(small_experiment, [*begins, *overrides])

    return second


@pytest.mark.parametrize(("checkpoint", "times"), [("", 2), (":best", 2), (":0", 1)])
def test_the_state_before_the_first_step_has_the_averaged_parameters(second, tmp_path, checkpoint, times):
    config = second(source=f"{tmp_path / 'first'}{checkpoint}")
    shape = config.model, config.training, config.tokenizer.vocab_size
    like = abstract_state(make_mesh(MeshConfig(data=1)), *shape)
    state, drawn = compile_initial_state(like, *shape, load_initial(config).params)(), drawn_state(*shape).params
    for params in (state.params, state.averaged):
        jax.tree.map(lambda found, before: np.testing.assert_array_equal(found, times * before), params, drawn)
    assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves((state.step, state.opt_state)))


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (["model.d_ff=48", "tokenizer.type=bpe"], "tokenizer.type: unigram → bpe; model.d_ff: 32 → 48"),
        (["training.init_from=nowhere"], "nowhere is not a run directory"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key_and_nothing_is_written(second, tmp_path, overrides, problem):
    with pytest.raises(UserError) as refusal:
        train(second(*overrides))
    assert problem in str(refusal.value) and "\n" not in str(refusal.value)
    assert not (tmp_path / "second").exists()


def test_a_vocabulary_without_tags_serves_one_direction_only(second, small_experiment, tmp_path):
    plain = save_untrained(load_config(small_experiment, [f"run_dir={tmp_path / 'plain'}"]))
    with pytest.raises(UserError, match=r"does not fit: data\.direction=both, for which its vocabulary has no tags"):
        load_initial(second("data.direction=both", source=plain))


@pytest.mark.slow
def test_a_second_stage_keeps_the_vocabulary_replays_its_first_update_and_goes_on_alone(second, tmp_path):
    short, first = (
        "training.log_every=1 training.save_every=1 training.keep=9 training.eval_every=4",
        tmp_path / "first",
    )
    for name, steps in (("second", 4), ("parts", 2)):
        train(second(*short.split(), f"training.steps={steps}", name=name))
    run, record = load_run(tmp_path / "second"), read_json_object(tmp_path / "second" / INITIAL)
    assert (record["run"], record["checkpoint"]) == (str(first), "3")
    assert record["sha256"] == read_manifest(checkpoint_path(first, 3)).digest
    assert (run.folder / TOKENIZER).read_bytes() == (first / TOKENIZER).read_bytes()
    # Trained with the tag with which it translates, at the beginning of every row.
    assert {*run.recorded.setup(1).stream.batch(0).source_tokens[:, 0]} == {*run.translator.tag}
    assert inspect_update(run.recorded, 1).verified["checkpoint"] == "equal, bit for bit"

    first.rename(tmp_path / "moved")
    train(second(*short.split(), "training.steps=4", name="parts"))
    like = state_shapes(run.config.model, run.config.training, run.config.tokenizer.vocab_size)
    jax.tree.map(np.testing.assert_array_equal, *(restore(tmp_path / name, 4, like) for name in ("second", "parts")))
    with pytest.raises(UserError, match="first has no complete checkpoint yet"):
        inspect_update(load_run(run.folder).recorded, 1)
