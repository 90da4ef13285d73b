"""The experiments in configs/: each loads, states only what it changes, and opens with what a reader wants to know."""

from dataclasses import asdict
from pathlib import Path

import jax
import pytest
from omegaconf import OmegaConf

from configs.keys import KEYS
from configs.load import load_config
from training.state import init_state

CONFIGS = sorted(Path(__file__).parents[2].glob("configs/*.yaml"))
each_config = pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)


@each_config
def test_it_states_only_what_differs_from_the_defaults_or_from_the_config_that_it_extends(path):
    stated = OmegaConf.to_container(OmegaConf.load(path))
    assert isinstance(stated, dict)
    extended = asdict(load_config(path.with_name(stated["extends"]), [])) if "extends" in stated else {}
    for key, default in ((key, KEYS[key].default) for key in KEYS):
        section, _, name = key.rpartition(".")
        values, before = (each.get(section, {}) if section else each for each in (stated, extended))
        assert name not in values or values[name] != before.get(name, default), f"{key} changes nothing"


@each_config
def test_it_opens_with_what_hardware_time_bleu_and_command(path):
    text = path.read_text(encoding="utf-8")
    header = text[: text.index("\n\n")]
    assert all(line.startswith("#") for line in header.splitlines())
    for title in ("What it shows", "Hardware", "Time", "Test BLEU", "Command"):
        assert f"# {title}  " in header, title
    assert f"python train.py configs/{path.name}" in header
    assert f"python eval.py runs/{path.stem}" in header


@pytest.mark.parametrize(("name", "millions"), [("transformer-base", 65), ("transformer-big", 213)])
def test_the_papers_models_have_the_papers_number_of_parameters(name, millions):
    """Vaswani et al. 2017, table 3, whose vocabulary of about 37,000 is known to the thousand only."""
    config = load_config(next(path for path in CONFIGS if path.stem == name))
    params = jax.eval_shape(lambda: init_state(config.model, config.training, config.tokenizer.vocab_size)).params
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) / 1e6 == pytest.approx(millions, rel=0.04)
