"""The page on attention holds the weights, which a browser draws; hostile tokens and sentences stay text."""

import json
import re

import numpy as np
import pytest

from evaluation.attention_view import sentence
from evaluation.attention_view.sentence import AttendedSentence, Labels, heat_maps, render_attention_page
from model.decoding.forced import AttentionWeights
from tests.payloads import PAYLOADS, Parsed, assert_accessible, assert_harmless, in_browser

SIZE = len(PAYLOADS)
WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(SIZE), size=(3, 2, 2, SIZE)).astype(np.float32)
LABELS = Labels(PAYLOADS, ["<s>", *PAYLOADS[1:]], [*PAYLOADS[1:], "…"])
ATTENDED = AttendedSentence(PAYLOADS[0], " ".join(PAYLOADS), AttentionWeights(*WEIGHTS), LABELS)


@pytest.fixture
def page():
    return render_attention_page(ATTENDED, PAYLOADS[4], f"{PAYLOADS[1]}.npz")


def test_the_json_in_the_page_is_the_weights_in_four_decimals(page):
    parsed = assert_harmless(page, *PAYLOADS, f"{PAYLOADS[1]}.npz")
    assert parsed.texts("title") == [f"Attention: {PAYLOADS[0]}"]
    uses = json.loads(parsed.texts("script")[0])
    for use, maps in zip(uses, heat_maps(ATTENDED), strict=True):
        assert (use["queries"], use["keys"]) == (maps.queries, maps.keys)
        shown = np.array(use["weights"], np.float64)  # null becomes NaN
        np.testing.assert_allclose(shown, maps.weights, atol=0.5e-4 + 1e-7, rtol=0)
        np.testing.assert_array_equal(shown, np.round(shown, 4))
    unseen = np.isnan(np.array(uses[2]["weights"], np.float64))
    np.testing.assert_array_equal(unseen, np.broadcast_to(np.triu(np.ones((SIZE, SIZE), bool), k=1), unseen.shape))


@pytest.mark.slow
def test_a_browser_draws_it_and_tells_the_weight_at_which_a_reader_points(monkeypatch, page, tmp_path):
    """The mean of layer 2 first; then, by keys alone, head 2, and the cell one down and one to the right."""
    assert_harmless(in_browser(page, tmp_path), *PAYLOADS)
    assert_accessible(page, tmp_path)
    script = """
    // A window in the background gives no event of focus.
    const tell = (event) => document.activeElement.dispatchEvent(event), arrive = () => tell(new FocusEvent("focus"));
    const press = (key) => { tell(new KeyboardEvent("keydown", { key, bubbles: true })); arrive(); };
    document.querySelector(".small [tabindex='0']").focus(); arrive();
    press("ArrowLeft");
    document.querySelector(".map [tabindex='0']").focus(); arrive();
    press("ArrowDown"); press("ArrowRight");
    byId("uses").append(element("p", {}, document.querySelector("output").value));
    """
    monkeypatch.setattr(sentence, "SCRIPT", sentence.SCRIPT + script)
    told = Parsed(in_browser(render_attention_page(ATTENDED, "run", "x.npz"), tmp_path)).texts("p")[-1]
    cell, weight, place = re.split(": weight (.*) (?=\\()", told)
    assert (cell, place) == (f"{LABELS.target_labels[1]} → {PAYLOADS[1]}", "(layer 2, head 2)")
    assert float(weight) == pytest.approx(WEIGHTS[2][1, 1, 1, 1], abs=0.56e-3)  # rounded twice
