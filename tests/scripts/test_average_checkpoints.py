"""python scripts/average_checkpoints.py RUN, as a user calls it."""

import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs.load import load_run_config, save_config
from eval import main as evaluate
from experiment.load_run import load_run
from scripts import average_checkpoints as script
from scripts.translate import main as translate
from tests.saved import save
from training.run.checkpoint import restore
from training.state import state_shapes

BLEU = {0: 1.0, 2: 30.0, 4: 20.0, 6: 25.0}


@pytest.fixture(scope="module")
def original(run_dir, tmp_path_factory):
    """The run with further checkpoints, step s with s times the parameters; step 8 was never validated."""
    run = shutil.copytree(run_dir, tmp_path_factory.mktemp("averages") / "a run")
    loaded = load_run(run)
    shapes = state_shapes(loaded.config.model, loaded.config.training, loaded.tokenizer.vocab_size)
    start = restore(run, 0, shapes)
    for step in (2, 4, 6, 8):
        params = jax.tree.map(lambda leaf, step=step: leaf * step, start.params)
        save(run, start._replace(step=jnp.int32(step), params=params), {"best_step": 2})
    lines = [{"step": step, "kind": "valid", "bleu": bleu} for step, bleu in [(2, 1.0), *BLEU.items()]]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


@pytest.fixture
def run(original, tmp_path):
    return shutil.copytree(original, tmp_path / "a run")


def first_numbers(run, which):
    """The first numbers of the embedding, and the step."""
    loaded = load_run(run, [f"decoding.checkpoint={which}"])
    return np.asarray(jax.tree.leaves(loaded.params)[0]).ravel()[:5], loaded.manifest.step


def test_the_best_checkpoints(run, run_main):
    code, out, err = run_main(script.main, "--best", 2, run)
    assert code == 0
    assert out.startswith(f"step      2  BLEU 30.00\nstep      6  BLEU 25.00\nwritten  {run}/averages/best-2\n")
    assert err == "note: metrics.jsonl has no validation BLEU for step 8, which is left out\n"
    numbers, step = first_numbers(run, "best-2")
    assert step == 6
    np.testing.assert_allclose(numbers, 4 * first_numbers(run, "0")[0], rtol=1e-6)
    manifest = json.loads((run / "averages/best-2/manifest.json").read_text())
    assert manifest["notes"] == {"steps": [2, 6], "by": "best", "bleu": {"2": 30.0, "6": 25.0}}


def test_scores_of_an_earlier_search_do_not_count(run, run_main):
    """Step 2 has the highest BLEU, but with another search."""
    save_config(load_run_config(run, ["decoding.beam_size=1"]), run / "config.until-4.yaml")
    shutil.copy(run / "data.json", run / "data.until-4.json")
    assert run_main(script.main, "--best", 1, run)[1].startswith("step      6  BLEU 25.00\nwritten")


def test_a_damaged_checkpoint_is_told_and_left_out(run, run_main):
    (run / "checkpoints/6/manifest.json").unlink()
    code, out, err = run_main(script.main, run, "--last", 2)
    assert code == 0 and out.startswith("step      4  BLEU 20.00\nstep      8\n")
    assert err == "note: the checkpoint at step 6 is damaged and left out\n"


@pytest.mark.slow
def test_other_programs_take_the_average_by_its_name(run, run_main, refuses):
    run_main(script.main, run, "--last", 2)
    earlier = set((run / "eval").glob("*.json"))
    code, out, _ = run_main(evaluate, run, "decoding.checkpoint=last-2", "decoding.beam_size=1")
    assert code == 0 and f"{run} at step 8 on" in out
    [written] = set((run / "eval").glob("*.json")) - earlier
    assert written.name != "test.json"  # which is for the run's own search
    report = json.loads(written.read_text(encoding="utf-8"))
    assert (report["step"], report["decoding"]["checkpoint"]) == (8, "last-2")
    told = f"{run} has no average last-4; there are best, latest, 0, 2, 4, 6, 8, last-2\n"
    refuses(translate, told, run, "decoding.checkpoint=last-4")


def test_mistakes_end_in_one_line_and_code_2(run, refuses, tmp_path):
    no_run = tmp_path / "nothing"
    mistakes = {
        "one of the arguments --last --best is required": [run],
        "argument --best: not allowed with argument --last": [run, "--last", 2, "--best", 2],
        "--last must be at least 1, not 0": [run, "--last", 0],
        "has 5 good checkpoints, not 6: training.keep=6 keeps enough": [run, "--last", 6],
        "has 4 good checkpoints with a known validation BLEU, not 5": [run, "--best", 5],
        f"{no_run} is not a run directory": [no_run, "--last", 1],
    }
    for message, arguments in mistakes.items():
        refuses(script.main, message, *arguments)
    assert not (run / "averages").exists()
