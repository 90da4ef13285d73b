"""python scripts/plot_attention.py RUN SENTENCE, as a user calls it."""

import json
import os
import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from common.special_tokens import BOS, EOS
from configs.load import load_config
from evaluation.attention_view.sentence import heat_maps, translate_and_attend
from experiment.load_run import load_run
from model.decoding.forced import compute_attention_weights
from scripts import plot_attention
from tests.prepared import save_untrained

GREEDY = "decoding.beam_size=1"
NAME = "tom-runs-here-53995d"


@pytest.fixture
def look(run_main, run_dir):
    """The program in this process; returns the lines that it prints, and the files by the ends of their names."""

    def look(*arguments):
        code, out, err = run_main(plot_attention.main, run_dir, *arguments)
        assert (code, err) == (0, "")
        lines = out.splitlines()
        paths = [line for line in lines if line.startswith(f"{run_dir}/attention/")]
        assert lines[-len(paths) :] == paths and all(map(os.path.exists, paths))
        return lines[: -len(paths)], {path.split("/")[-1].partition(".")[2]: path for path in paths}

    return look


def parts_of(run_dir, *overrides):
    """Translator and parameters of the run, as the program has them."""
    run = load_run(run_dir, list(overrides), "a test")
    return run.translator, run.params


@pytest.mark.slow
def test_a_page_and_an_archive_have_the_models_weights(run_dir, look):
    """And the translation is the search's, whatever the white space."""
    (translation,), files = look("  Tom runs   here.", GREEDY)
    assert [Path(path).name for path in files.values()] == [f"{NAME}.{end}" for end in ("html", "npz")]
    translator, params = parts_of(run_dir, GREEDY)
    assert translation == translator.translate(params, ["Tom runs here."])[0].text
    source = translator.tokenizer.encode(["Tom runs here."])[0]
    target = translator.search(params, [source], 1)[0][0].tokens
    model = nnx.merge(translator.graphdefs[0], params[0])
    expected = compute_attention_weights(model, jnp.array([*source, EOS]), jnp.array([BOS, *target]))._asdict()
    with np.load(files["npz"], allow_pickle=False) as held:
        assert set(held) == {*expected, "source_tokens", "target_inputs", "target_labels"}
        for name, weights in expected.items():
            assert held[name].dtype == np.float32
            np.testing.assert_array_equal(held[name], weights)
        spell = translator.tokenizer.pieces
        assert held["source_tokens"].tolist() == [*spell(source), "</s>"]
        assert held["target_inputs"].tolist() == ["<s>", *spell(target)]
        assert held["target_labels"].tolist()[:-1] == spell(target)
    page = Path(files["html"]).read_text(encoding="utf-8")
    assert "<h1>Tom runs here.</h1>" in page and f"{NAME}.npz" in page and str(run_dir) in page
    (embedded,) = re.findall(r'id="weights">(.*?)</script>', page)
    across, encoder, _ = (use["weights"] for use in json.loads(embedded))
    np.testing.assert_allclose(across, expected["encoder_decoder"], atol=0.51e-4, rtol=0)
    np.testing.assert_allclose(encoder, expected["encoder"], atol=0.51e-4, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize(("beam_size", "limit"), [(1, 1), (1, 9), (297, 1), (297, 3)])
def test_the_last_row_is_eos_only_if_the_search_chose_it(run_dir, beam_size, limit):
    """A beam of all tokens has EOS among them, whereas greedy search of this untrained model does not come to it."""
    limits = "decoding.max_length_factor=0", f"decoding.max_length_extra={limit}"
    translator, params = parts_of(run_dir, f"decoding.beam_size={beam_size}", *limits)
    (source,) = translator.tokenizer.encode(["Tom runs here."])
    found = translator.search(params, [source], 1)[0][0]
    target = found.tokens
    assert found.ended == (beam_size > 1)
    attended = translate_and_attend(translator, params[0], "Tom runs here.")
    labels = [*translator.tokenizer.pieces(target), "</s>" if found.ended else "…"]
    assert attended.labels.target_labels == labels
    decoder = heat_maps(attended)[2]
    assert ("cut at the length limit" in decoder.queries_are) == (not found.ended)
    assert np.isnan(decoder.weights).sum() == attended.weights.decoder[:, :, 0].size * len(target) / 2


@pytest.mark.slow
def test_a_run_that_chooses_by_risk_shows_what_its_search_finds(run_dir, small_experiment, tmp_path, run_main):
    by_risk = save_untrained(load_config(small_experiment, [f"run_dir={tmp_path / 'run'}", "decoding.mbr=chrf"]))
    code, out, err = run_main(plot_attention.main, by_risk, "Tom runs here.", GREEDY)
    assert (code, err) == (0, "")
    translator, params = parts_of(run_dir, GREEDY)
    assert out.splitlines()[0] == translator.translate(params, ["Tom runs here."])[0].text


def test_mistakes_end_in_one_line_and_code_2(run_dir, refuses, tmp_path):
    mistakes = {
        "the sentence is empty": [run_dir, " \n"],
        "the sentence is not UTF-8": [run_dir, "Tom\udce9"],
        "the sentence has 81 tokens, too long to draw: choose one of at most 60": [run_dir, "漢字" * 13 + " 0"],
        "the translation has ": [run_dir, "Tom", GREEDY, "decoding.max_length_extra=70"],
        "is not a run directory": [tmp_path, "Tom runs here."],
        "cannot change model.d_ff": [run_dir, "Tom runs here.", "model.d_ff=8"],
        "unknown key beam": [run_dir, "Tom runs here.", "beam=1"],
        "SENTENCE": [run_dir],
    }
    for message, arguments in mistakes.items():
        refuses(plot_attention.main, message, *arguments)
