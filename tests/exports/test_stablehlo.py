"""The exported programs beside the model's own functions, for every kind of model."""

from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import jax
import jaxtyping
import numpy as np
import pytest
from jax import export

from common.special_tokens import BOS, EOS
from evaluation.translate import Translator
from exports.stablehlo import PLATFORMS, buckets, save_model
from model.config import DecodingConfig
from tests.drawn import drawn_params
from tests.exports.test_ctranslate2 import BASE, CHANGES, ours


@contextmanager
def without_types():
    """A symbolic number of sentences is no int, so that shapes are checked in all other tests alone."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="module")
def save(mine, tmp_path_factory):
    """Export a model with changes, each once; returns its folder, translator, parameters and programs."""

    @cache
    def save(name, beam_size=3, row_length=8):
        config, folder = replace(BASE, **CHANGES.get(name, {})), tmp_path_factory.mktemp("exported")
        translator = Translator((config,), mine, DecodingConfig(beam_size=beam_size), row_length)
        params = drawn_params(config, mine.vocab_size)
        with without_types():
            save_model(folder, translator, params)
        with np.load(folder / "weights.npz") as arrays:
            weights = dict(arrays)
        programs = {path.stem: jax.jit(load(folder, path.stem).call) for path in folder.glob("*.stablehlo")}
        return folder, translator, params, lambda name, *arguments: programs[name](weights, *arguments)

    return save


def load(folder, name):
    return export.deserialize(bytearray((folder / f"{name}.stablehlo").read_bytes()))


@pytest.mark.parametrize(
    "name", [name if name == "much" else pytest.param(name, marks=pytest.mark.slow) for name in CHANGES]
)
def test_log_probabilities_are_ours(name, mine, save):
    _, translator, params, run = save(name)
    rng = np.random.default_rng(2)
    source, target = (rng.integers(4, mine.vocab_size, length).tolist() for length in (11, 20))
    cache = run("encode", np.array([[*source, EOS]], np.int32), np.zeros(21, np.int32))
    found = []
    for position, (token, following) in enumerate(zip([BOS, *target], [*target, EOS], strict=True)):
        log_probs, cache = run("step", np.array([token], np.int32), np.int32(position), cache)
        found.append(float(log_probs[0, following]))
    np.testing.assert_allclose(found, ours(translator.models[0], params, source, target, mine.vocab_size), atol=2e-5)


@pytest.mark.parametrize("name", ["much", pytest.param("positions=learned", marks=pytest.mark.slow)])
def test_translations_are_ours(name, mine, save):
    _, translator, params, run = save(name)
    rng = np.random.default_rng(3)
    sources = [rng.integers(4, mine.vocab_size, length).tolist() for length in (3, 5, 7)]
    rows = np.array([[*each, EOS, *[0] * (7 - len(each))] for each in sources], np.int32)
    limits = np.array([translator.limit(len(each) + 1) for each in sources], np.int32)
    for kind, size in (("greedy", 1), ("beam", 3)):
        there = run(f"{kind}-8", rows, limits)
        here = replace(translator, decoding=DecodingConfig(beam_size=size)).search((params,), sources, 1)
        for index, [best] in enumerate(here):
            tokens = there["tokens"][index][: int(there["lengths"][index])].tolist()
            assert tokens == best.tokens + [EOS] * best.ended
            assert float(there["scores"][index]) == pytest.approx(best.score, abs=1e-5)


@pytest.mark.slow
def test_programs_are_for_all_platforms_and_any_number_of_sentences(save):
    folder, translator, _, run = save("", beam_size=1, row_length=14)
    assert buckets(translator) == [8, 16]
    names = {"encode", "step", "greedy-8", "greedy-16"}  # a beam of one is greedy
    assert {path.stem for path in folder.glob("*.stablehlo")} == names
    assert all(load(folder, name).platforms == PLATFORMS for name in names)
    source = np.full((1, 8), 5, np.int32)
    first = run("greedy-8", source, np.array([9], np.int32))
    for count in (2, 7):
        found = run("greedy-8", np.repeat(source, count, axis=0), np.full(count, 9, np.int32))
        for one, many in zip(first.values(), found.values(), strict=True):
            np.testing.assert_allclose(many, np.repeat(one, count, axis=0), rtol=1e-6)
    assert np.all(first["lengths"] <= 9)
