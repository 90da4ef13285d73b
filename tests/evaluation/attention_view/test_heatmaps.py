"""Every panel of the picture shows the weights that its title names, under the right labels."""

from xml.etree import ElementTree

import numpy as np
import pytest

from evaluation.attention_view.heatmaps import HeatMaps, draw, render

WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 3, 4)).astype(np.float32)


def maps(queries, subtitle="a → b"):
    return HeatMaps("Title", subtitle, WEIGHTS, queries, ["␣a", "b", "</s>"], "predicting", "source token")


def texts(labels):
    return [label.get_text() for label in labels]


def test_panels_hold_the_weights_of_their_layer_and_head():
    panels = {axes.get_title(): axes for axes in draw(maps(["w", "x", "y", "z"])).axes if axes.get_title()}
    assert len(panels) == 7
    shown = {title: np.asarray(axes.images[0].get_array()) for title, axes in panels.items()}
    np.testing.assert_array_equal(shown["Layer 1, head 3"], WEIGHTS[0, 2])
    np.testing.assert_allclose(shown["Layer 2, mean of 3 heads"], WEIGHTS[1].mean(axis=0))
    assert all(axes.images[0].get_clim() == (0, 1) for axes in panels.values())
    outer = panels["Layer 2, head 1"]
    assert (texts(outer.get_yticklabels()), outer.get_ylabel()) == (["w", "x", "y", "z"], "predicting")
    assert (texts(outer.get_xticklabels()), outer.get_xlabel()) == (["␣a", "b", "</s>"], "source token")


@pytest.mark.filterwarnings("error")
def test_labels_are_never_read_as_formulas_and_a_missing_letter_is_no_warning():
    assert render(maps(["$\\x$", "$", "漢", "<0xC3>"]), "png").startswith(b"\x89PNG")


@pytest.mark.filterwarnings("error")
def test_svg_is_well_formed_with_its_labels_as_text_and_the_same_bytes_every_time():
    odd = ["$\\x$", '<script>alert("&")</script>', "漢-->", "]]>\x01"]
    content = render(maps(odd, subtitle="<b> \x02 → &"), "svg")
    assert content == render(maps(odd, subtitle="<b> \x02 → &"), "svg") and b"<dc:date>" not in content
    elements = list(ElementTree.fromstring(content).iter())
    shown = ["".join(element.itertext()) for element in elements if element.tag.endswith("}text")]
    labels = [label.replace("\x01", "\ufffd") for label in odd]
    assert [shown.count(label) for label in labels] == [3, 3, 3, 3]  # the overview and the first head of each layer
    assert {"Title", "<b> \ufffd → &", "Layer 1, head 3", "predicting", "attention weight"} <= set(shown)
    assert not [element for element in elements if element.tag.endswith("}script")]
