"""python scripts/replay.py RUN --step S, and RUN OTHER_RUN: a run is reproduced from its directory alone."""

import json
import math
import re
import shutil
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common.errors import UserError
from common.files import read_json_object
from configs.load import load_config, load_run_config, save_config
from data.batches.packing import place
from data.tokens.table import token_table
from experiment.load_run import load_run
from model.transformer import build
from scripts import replay as script
from tests.prepared import fill, prepare_and_save, stream_of
from tests.saved import save
from training.replay.comparison import compare_states
from training.replay.inspect_step import ModuleNorms, PairLoss, module_norms, pair_losses, sort_by_loss
from training.replay.replay import Setup
from training.run.checkpoint import restore
from training.run.config_history import archive_config
from training.run.corpus import load_tokenizer
from training.run.metrics import read_metrics
from training.run.retention import good_steps
from training.state import state_shapes, zero_sums
from training.step import make_loss_step

EVERYTHING_ON = """
model.dropout=0.2 data.subword_sampling=0.3 data.window=64 training.accumulation=2 training.ema_decay=0.9
training.warmup_steps=4 training.learning_rate=0.01 training.save_every=1 training.keep=20 training.log_every=1
training.steps=8 decoding.beam_size=1
""".split()
PLAINER = ["model.dropout=0", "training.accumulation=1", "training.ema_decay=0"]  # is compiled faster
COMPARED = ("loss", "cross_entropy", "gradient_norm", "learning_rate")


def trained(config_file, run_dir, *overrides):
    from train import train

    train(load_config(config_file, [*EVERYTHING_ON, f"run_dir={run_dir}", *overrides]))
    return run_dir


def untrained(config_file, run_dir, *overrides):
    """A run that was stopped in its first update."""
    config = load_config(config_file, [*EVERYTHING_ON, f"run_dir={run_dir}", *overrides])
    prepare_and_save(config.data, config.tokenizer, config.training.seed, run_dir)
    save_config(config, run_dir / "config.yaml")
    return run_dir


@pytest.fixture(scope="module")
def plain(small_experiment, tmp_path_factory):
    """Eight updates with a checkpoint and a line of metrics each."""
    return trained(small_experiment, tmp_path_factory.mktemp("replay") / "plain")


@pytest.fixture(scope="module")
def light(small_experiment, tmp_path_factory):
    """The same of a model that is compiled faster."""
    return trained(small_experiment, tmp_path_factory.mktemp("replay") / "light", *PLAINER)


@pytest.fixture(scope="module")
def again(small_experiment, tmp_path_factory):
    """Those of ``plain``, but with a line of metrics for each two updates."""
    return trained(small_experiment, tmp_path_factory.mktemp("replay") / "again", "training.log_every=2")


@pytest.fixture(scope="module")
def changed(small_experiment, plain):
    """``plain`` with another learning rate from update 5 on, of seven updates."""
    run = without_checkpoints(shutil.copytree(plain, plain.with_name("changed")), 1, 2, 3, 4)
    return trained(small_experiment, run, "training.learning_rate=0.02", "allow_changes=true", "training.steps=7")


def without_checkpoints(run, *kept):
    for step in set(good_steps(run)) - set(kept):
        shutil.rmtree(run / "checkpoints" / str(step))
    return run


@pytest.fixture
def with_checkpoints(tmp_path):
    """``with_checkpoints(run, 4, 8)``: a copy of the run that has these alone."""

    def copy(run, *kept):
        name = f"{run.name} copied {len(list(tmp_path.iterdir()))}"
        return without_checkpoints(shutil.copytree(run, tmp_path / name), *kept)

    return copy


@pytest.fixture
def facts(run_main):
    """What ``--json`` prints, as a dictionary; exit code ``code``."""

    def facts(*arguments, code=0):
        ended, out, err = run_main(script.main, *arguments, "--json")
        assert ended == code, err
        return json.loads(out)

    return facts


def lines(run):
    return {entry["step"]: entry for entry in read_metrics(run) if entry["kind"] == "train"}


def saved(run, step):
    config, vocab_size = load_run_config(run), load_tokenizer(run).vocab_size
    return restore(run, step, state_shapes(config.model, config.training, vocab_size))


def norm(tree):
    return math.sqrt(sum(float(np.square(np.asarray(leaf, np.float64)).sum()) for leaf in jax.tree.leaves(tree)))


@pytest.mark.slow
def test_a_replayed_update_is_the_recorded_one_to_the_last_digit(plain, changed, with_checkpoints, facts):
    """From the start or a checkpoint, and across a change of the learning rate; so is the state, where it was saved."""
    for run, kept, step in ((plain, (), 3), (plain, (2, 8), 8), (changed, (2, 7), 7)):
        found = facts(with_checkpoints(run, *kept), "--step", step)
        assert found["start"] == max(kept[:1], default=0) and not found["skipped"]
        assert {key: found[key] for key in COMPARED} == {key: lines(run)[step][key] for key in COMPARED}
        saved = {"batches": f"equal, 1 to {step}", "checkpoint": "equal, bit for bit"} if step in kept else {}
        assert found["verified"] == {"metrics": "equal, to the last digit"} | saved


@pytest.mark.slow
def test_pairs_and_modules_make_up_the_whole(plain, facts):
    """The losses of the pairs are the recorded loss, and the norms of the modules those of all parameters."""
    found = facts(plain, "--step", 8)
    tokens = [pair["tokens"] for pair in found["pairs"]]
    assert sum(tokens) == found["target_tokens"]
    for key in ("loss", "cross_entropy"):
        mean = np.average([pair[key] for pair in found["pairs"]], weights=tokens)
        assert mean == pytest.approx(lines(plain)[8][key], rel=1e-6)
    before, after = saved(plain, 7).params, saved(plain, 8).params
    assert [module["name"] for module in found["modules"]] == [f"{name}.{i}" for name in before for i in before[name]]
    expected = {"gradient": lines(plain)[8]["gradient_norm"], "parameters": norm(before)}
    expected["update"] = norm(jax.tree.map(lambda old, new: np.subtract(new, old), before, after))
    for key, value in expected.items():
        assert math.hypot(*(module[key] for module in found["modules"])) == pytest.approx(value, rel=1e-5), key
    assert not any(module["not_finite"] for module in found["modules"])


@pytest.mark.slow
def test_a_pair_has_the_loss_that_it_has_alone(plain):
    """Without dropout, what shares its row is invisible."""
    setup = load_run(plain).recorded.setup(1)
    setup = Setup(replace(setup.model, dropout=0.0), setup.training, setup.stream)
    state, tokenizer = setup.initial_state(), setup.stream.tokenizer
    unsampled = replace(setup.stream.config, subword_sampling=0.0)
    stream = stream_of(setup.stream.encoded.texts, tokenizer, unsampled, seed=1)
    setup = replace(setup, stream=stream)
    loss_of = make_loss_step(build(setup.model, tokenizer.vocab_size), setup.training.label_smoothing)
    for pair in pair_losses(setup, state, stream.batch(2)):
        source, target = (token_table(tokenizer.encode([text])) for text in (pair.source, pair.target))
        alone = fill(source, target, place(source.length, target.length, (40, 40)), (40, 40))
        loss = loss_of(state.params, alone)
        assert pair.tokens == loss.tokens
        assert pair.loss == pytest.approx(float(loss.objective / loss.tokens), rel=1e-5)
        assert pair.cross_entropy == pytest.approx(float(loss.cross_entropy / loss.tokens), rel=1e-5)


@pytest.mark.slow
def test_the_sums_are_those_of_the_lines_that_were_written(again, with_checkpoints, facts):
    """Though the config has come to log otherwise, which is harmless and leaves no record."""
    run = with_checkpoints(again, 1, 3)
    save_config(load_config(again / "config.yaml", ["training.log_every=1"]), run / "config.yaml")
    found = facts(run, "--step", 3)["verified"]
    assert found == {"batches": "equal, 1 to 3", "checkpoint": "equal, bit for bit"}


@pytest.mark.slow
def test_a_checkpoint_that_is_one_bit_off_is_reported(plain, with_checkpoints, facts):
    run = with_checkpoints(plain, 7)
    state = saved(plain, 8)
    table = state.params["embedding"]["table"]
    state.params["embedding"]["table"] = table.at[5, 3].set(jnp.nextafter(table[5, 3], jnp.inf))
    save(run, state, {"batches": "0f"})
    found = facts(run, "--step", 8)["verified"]
    assert found["checkpoint"].startswith("differs, first in params.embedding.table, there by up to ")
    assert found["batches"] == "differ, 1 to 8"


@pytest.mark.slow
def test_what_is_printed_for_people(plain, run_main, facts):
    code, out, err = run_main(script.main, plain, "--step", 6, "--sort", "loss")
    found = facts(plain, "--step", 6)
    assert (code, err) == (0, "")
    assert f"loss           {lines(plain)[6]['loss']!r} per target token" in out
    assert f"SHA-256 {found['batch']}" in out
    shown = re.findall(r"^ *(\d+) +(\d+) +([\d.]+) +(\d+)  (.*) → (.*)$", out, re.MULTILINE)
    assert [float(line[2]) for line in shown] == sorted((float(line[2]) for line in shown), reverse=True)
    by_row = [(pair["row"], pair["segment"], pair["source"], pair["target"]) for pair in found["pairs"]]
    assert by_row == sorted((int(row), int(segment), *texts) for row, segment, _, _, *texts in shown)


def test_pairs_without_a_finite_loss_are_the_worst():
    pairs = [PairLoss(0, 1, "a", "b", 1, loss, loss) for loss in (1.0, math.nan, 3.0, math.inf, 2.0)]
    assert [str(pair.loss) for pair in sort_by_loss(pairs)] == ["nan", "inf", "3.0", "2.0", "1.0"]


@pytest.mark.slow
def test_the_command_that_a_diverged_run_names_shows_what_was_not_finite(small_experiment, tmp_path, facts, run_main):
    run = tmp_path / "diverged"
    settings = ["training.learning_rate=1e16", "training.max_skipped=3", "training.warmup_steps=1", *PLAINER]
    with pytest.raises(UserError) as error:
        trained(small_experiment, run, *settings, "training.save_every=0")
    (step,) = map(int, re.findall(r"replay\.py \S+ --step (\d+)", str(error.value)))
    found = facts(run, "--step", step)
    assert found["skipped"]
    assert lines(run)[step]["skipped"] == 1
    assert lines(run)[step - 1]["skipped"] == 0
    assert found["loss"] == "nan"
    assert found["verified"]["metrics"] == "equal, to the last digit"
    assert all(module["not_finite"] > 0 and module["update"] == 0 for module in found["modules"])
    code, out, _ = run_main(script.main, run, "--step", step)
    assert code == 0
    assert "update         skipped: loss, gradient or update is not finite" in out
    assert re.search(r"^encoder\.0 +nan .*  \d+$", out, re.MULTILINE)


def test_norms_by_hand():
    before = {"encoder": {0: {"kernel": jnp.array([[1.0, 2.0]]), "bias": jnp.array(2.0)}}}
    after = {"encoder": {0: {"kernel": jnp.array([[1.0, 5.0]]), "bias": jnp.array(6.0)}}}

    def norms(kernel):
        gradients = {"encoder": {0: {"kernel": jnp.array([kernel]), "bias": jnp.array(12.0)}}}
        return module_norms(gradients, before, after)[0]

    assert norms([3.0, 4.0]) == ModuleNorms("encoder.0", gradient=13.0, parameters=3.0, update=5.0, not_finite=0)
    assert norms([1e30, 1e30]).gradient == pytest.approx(2**0.5 * 1e30)  # whose square is too large for float32
    assert norms([jnp.nan, -jnp.inf]).not_finite == 2


# Two runs


@pytest.mark.slow
def test_equal_runs_have_no_difference(plain, again, with_checkpoints, run_main, facts):
    code, out, _ = run_main(script.main, plain, again)
    assert (code, out.splitlines()[-1]) == (0, "no difference up to step 8")
    assert "replayed     from the checkpoints at step 8, which are equal\n" in out
    found = facts(with_checkpoints(plain), with_checkpoints(again))
    assert (found["start"], found["until"], found["divergence"]) == (0, 8, None)
    assert [[each["step"] for each in update] for update in found["updates"]] == [[7, 7], [8, 8]]


@pytest.mark.slow
@pytest.mark.parametrize("kept", [(4, 6), ()])
def test_another_learning_rate_from_step_4_on_is_found_at_step_5(plain, changed, with_checkpoints, facts, kept):
    found = facts(with_checkpoints(plain, *kept), with_checkpoints(changed, *kept), code=1)
    assert "training.learning_rate: 0.01 → 0.02" in found["config"]
    assert found["changed_at"] == [[], [4]]
    assert found["start"] == (4 if kept else 0)
    assert found["line"] == 5  # for its learning rate
    assert (found["divergence"]["step"], found["divergence"]["what"]) == (5, "parameters")
    moved = found["divergence"]["difference"]
    leaves = [jax.tree.leaves_with_path(saved(run, 5).params)[0] for run in (plain, changed)]
    assert moved["leaf"] == jax.tree_util.keystr(leaves[0][0], simple=True, separator=".")
    assert moved["largest"] == np.abs(np.subtract(*(leaf for _, leaf in leaves))).max()
    assert found["updates"][-1][0]["loss"] == found["updates"][-1][1]["loss"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("override", "step", "what"),
    [
        ("training.seed=2", 0, "initial parameters"),
        ("data.window=32", 1, "batch"),
        ("training.label_smoothing=0.2", 1, "loss"),
    ],
)
def test_what_differs_first(light, small_experiment, tmp_path, facts, override, step, what):
    found = facts(light, untrained(small_experiment, tmp_path / "other", *PLAINER, override), "--step", 2, code=1)
    assert (found["divergence"]["step"], found["divergence"]["what"]) == (step, what)
    assert [line.partition(":")[0] for line in found["config"]] == [override.partition("=")[0]]
    assert bool(found["data"]) == (override.startswith("data") or "seed" in override)


def test_states_that_differ_in_one_place(light):
    state = saved(light, 2)
    state = state._replace(averaged=state.params)
    moved = {name: jax.tree.map(lambda leaf: leaf * 2, getattr(state, name)) for name in ("params", "opt_state")}

    def found(step, **other):
        divergence = compare_states(step, state, state._replace(**other))
        return divergence and divergence.what

    assert found(2, params=moved["params"]) == "parameters"
    assert found(0, params=moved["params"]) == "initial parameters"
    assert found(2, opt_state=moved["opt_state"]) == "optimizer state"
    assert found(2, averaged=moved["params"]) == "averaged parameters"
    assert found(2) is found(2, sums=zero_sums()) is found(2, averaged=None) is None


def test_another_model_differs_from_the_start(light, small_experiment, tmp_path, run_main):
    other = untrained(small_experiment, tmp_path / "other", *PLAINER, "model.d_ff=64")
    code, out, _ = run_main(script.main, light, other)
    assert code == 1
    assert "config       model.d_ff: 32 → 64\n" in out
    assert re.search(r"^first difference: step 0, parameters: decoder\.0\.\S+ is \(\d", out.splitlines()[-1])


@pytest.mark.slow
def test_other_machines_and_lines_are_reported(light, with_checkpoints, run_main):
    other = with_checkpoints(light, 7, 8)
    entries = read_metrics(other)
    loss, entries[7]["loss"] = entries[7]["loss"], 3.25
    (other / "metrics.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    there = json.loads((other / "environment.json").read_text())
    there["packages"]["jax"], jax_version = "0.1", there["packages"]["jax"]
    (other / "environment.json").write_text(json.dumps(there | {"devices": ["abacus"]}))
    code, out, _ = run_main(script.main, light, other)
    assert code == 1
    assert f"environment  packages.jax: {jax_version} → 0.1\n" in out and "devices: ['cpu'] → ['abacus']" in out
    assert f"metrics      differ first at step 8: loss {loss!r}, 3.25\n" in out
    assert "the records differ at step 8, but both replays are equal" in out.splitlines()[-1]


# Mistakes


def test_mistakes_end_in_one_line(light, small_experiment, tmp_path, refuses):
    refuses(script.main, "name the update to inspect with --step S, or a second run", light)
    refuses(script.main, "--step must be at least 1, not 0", light, "--step", "0")
    refuses(script.main, f"{light}/eval is not a run directory", light, f"{light}/eval")
    for runs in ([light], [light, light]):
        refuses(script.main, f"--step 9 lies beyond the end of {light}, training.steps=8", *runs, "--step", "9")
    run = untrained(small_experiment, tmp_path / "by epochs", "training.steps=0", "training.epochs=1")
    last = load_run(run).recorded.setup(1).stream.steps_in(0)
    load_run(run).recorded.check_step(last)
    refuses(script.main, f"--step {last + 1} lies beyond the end of {run}, training.epochs=1", run, "--step", last + 1)


def test_another_corpus_is_refused(small_experiment, tmp_path, refuses, monkeypatch):
    run = untrained(small_experiment, tmp_path / "run")
    (run / "data.json").write_text('{"fingerprint": "0123456789"}')
    refuses(script.main, "the corpus has changed since ", run, "--step", 3)
    (run / "data.json").write_text("[]")
    refuses(script.main, "is missing or damaged", run, "--step", 3)
    monkeypatch.setenv("PUENTE_CORPUS", str(tmp_path))
    refuses(script.main, f"no train file at {tmp_path}", run, "--step", 3)


def test_a_checkpoint_that_is_needed_is_named(light, with_checkpoints, refuses):
    """A run whose batches changed after step 4: those before cannot be made any more."""
    run = with_checkpoints(light, 2, 8)
    archive_config(run, 4)
    record = run / "data.until-4.json"
    record.write_text(json.dumps(read_json_object(record) | {"fingerprint": "f" * 64}))
    needed = f"update 7 of {run} needs a good checkpoint between steps 4 and 6, and there is none (a larger"
    refuses(script.main, needed, run, "--step", 7)
    refuses(script.main, "the corpus has changed since", run, "--step", 4)


@pytest.mark.slow
def test_a_damaged_checkpoint_is_left_out_with_a_note(plain, with_checkpoints, run_main):
    run = with_checkpoints(plain, 4, 6)
    (run / "checkpoints" / "6" / "manifest.json").write_text("{}")
    code, out, err = run_main(script.main, run, "--step", 7)
    assert code == 0
    assert "rebuilt from   checkpoint 4, 2 updates repeated" in out
    assert err.splitlines() == [
        f"note: the checkpoint at step 6 of {run} is damaged and left out",
        f"{run}: repeating 2 updates from the checkpoint at step 4",
    ]
