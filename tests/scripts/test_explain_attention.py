"""docs/attention.md: its numbers are the script's, and plain float64 NumPy, written apart from both, finds the same."""

import io
import re
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from common.pictures import picture
from evaluation.attention_lessons import one_head, pictures, text
from scripts import explain_attention as script

PAGE = script.PAGE.read_text(encoding="utf-8")
PRINTED = {name: text for _, name, text, _ in script.BLOCK.findall(PAGE)}
Array = np.ndarray[Any, np.dtype[np.float64]]


@pytest.fixture(scope="module")
def printing():
    """The blocks as the script prints them now, and every number in them before it was rounded."""
    unrounded: list[tuple[float, int]] = []

    def recording_round(value, digits):
        unrounded.append((value, digits))
        return round(value, digits)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "round", recording_round, raising=False)
        return script.compute(), unrounded


def decimals(name: str) -> list[float]:
    """The numbers with a decimal point that a block has, in the order of reading."""
    return [float(word) for word in re.findall(r"-?\d+\.\d+|nan", PRINTED[name])]


def whole(line: str) -> list[int]:
    return [int(word) for word in re.findall(r"(?<!\S)-?\d+(?!\S)", re.sub(r"head \d", "", line))]


def line_by_line(*tables: Array) -> list[float]:
    """Tables that stand side by side, in the order of reading."""
    return [number for lines in zip(*tables, strict=True) for line in lines for number in line]


def assert_on_page(name: str, expected: list[float], digits: int = 3) -> None:
    np.testing.assert_allclose(decimals(name), expected, rtol=0, atol=0.5001 * 10**-digits)


def softmax(scores: Any) -> Array:
    exponentials = np.exp(np.asarray(scores, float))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


@pytest.mark.slow
def test_the_page_has_what_the_script_prints_here_and_on_other_machines(printing):
    """No number is so near to a rounding boundary that another machine could print its neighbour."""
    blocks, unrounded = printing
    for name, printed in blocks.items():
        assert PRINTED[name] == printed, f"{name}: run python scripts/explain_attention.py"
    assert len(unrounded) > 300
    for value, digits in unrounded:
        to_the_next = abs(value * 10**digits % 1 - 0.5) / 10**digits
        assert np.isnan(value) or to_the_next > 3e-6 * max(1, abs(value)), (value, digits)


def test_every_mark_on_the_page_has_its_function_and_every_function_its_marks():
    for mark in ("begin", "end"):
        assert sorted(re.findall(rf"<!-- {mark} (\S+) -->", PAGE)) == sorted(script.BLOCKS) == sorted(PRINTED)
    assert sorted(re.findall(r"\((attention-\S+\.png)\)", PAGE)) == sorted(pictures.PICTURES)


# Sections 1 to 3.

QUERY, KEY = np.array([[1, 0, 2, 1], [0, 2, 0, 1], [-2, 1, 1, 2]]), np.array([[2, 1, 1, 0], [0, 1, 1, 0]])
VALUE = np.array([[10, 0], [0, 20]])


def test_one_query_by_hand():
    """q·k is 4 and 2; halved 2 and 1; so the weights are e / (e + 1) and 1 / (e + 1)."""
    e = np.e
    weights = [e / (e + 1), 1 / (e + 1)]
    steps = [4, 2, 2, 1, e**2, e, *weights, 10 * weights[0], 0, 0, 20 * weights[1], 10 * weights[0], 20 * weights[1]]
    assert_on_page("one-query", steps)


# Section 4.


def jacobian_norms(weights: Array, inner: Array) -> Array:
    """Frobenius norms of (diag(w) - w wᵀ) A, for each query's weights w and matrix A."""
    jacobians = (np.eye(weights.shape[1]) - weights[:, None, :]) * weights[:, :, None]
    return np.linalg.norm(jacobians @ inner, axis=(1, 2))


@pytest.mark.slow
def test_why_the_scale():
    """The gradients in closed form: ∂w/∂s is diag(w) - w wᵀ, and ∂s/∂q the keys, divided as the scores are."""
    queries, keys = (np.asarray(rows, np.float64) for rows in one_head.random_rows(4096, 16, 256))
    expected: list[Any] = []
    for scaled in (False, True):
        for width in (4, 16, 64, 256):
            divisor = np.sqrt(width) if scaled else 1
            query, key = queries[:, 0, :width], keys[:, :, :width] / divisor
            scores = np.einsum("qd,qkd->qk", query, key)
            weights = softmax(scores)
            by_scores, by_query = jacobian_norms(weights, np.eye(16)), jacobian_norms(weights, key)
            gradients = [average(norms) for norms in (by_scores, by_query) for average in (np.mean, np.median)]
            expected += [scores.var(), weights.max(axis=1).mean(), *gradients]
            assert scores.var() == pytest.approx(width / divisor**2, rel=0.03)
    allowed = [0.00501, *[0.000501] * 5]
    assert (np.abs(np.array(decimals("scale")) - expected).reshape(-1, 6) < allowed).all()


def test_dividing_by_the_number_of_keys():
    """exp(entropy) of many weights exp(s), s normal with deviation σ, is exp(-σ²/2) of their number."""
    rows = [line.split("|")[1:-1] for line in PRINTED["number-of-keys"].splitlines()[2:]]
    table = np.array([[float(cell.strip(" %")) for cell in row] for row in rows])
    query, key = (np.asarray(rows, np.float64) for rows in one_head.random_rows(128, 1024, 64))
    products = np.einsum("qd,qkd->qk", query[:, 0], key)
    for keys, *cells in table:
        for divisor, (deviation, in_use) in zip((8, np.sqrt(keys)), (cells[:2], cells[2:]), strict=True):
            scores = products[:, : int(keys)] / divisor
            weights = softmax(scores)
            entropy = -(weights * np.log(weights)).sum(axis=1)
            assert deviation == pytest.approx(scores.std(), abs=0.00501)
            assert in_use == pytest.approx(100 * np.exp(entropy).mean() / keys, abs=0.501)
    assert table[-1, 2] == pytest.approx(100 * np.exp(-1 / 2), abs=1.5)
    assert table[-1, 4] == pytest.approx(100 * np.exp(-1 / 32), abs=1.5)


# Section 5.


def test_a_finite_mask_is_not_the_same_before_and_after_scaling():
    products = 64 * np.array([1 / 4, 1 / 8, 1 / 4])
    expected: list[float] = []
    for mask in (-10, -100, -1e9, -np.inf):
        third = np.array([0, 0, mask])
        before, after = softmax((products + third) / 8), softmax(products / 8 + third)
        assert np.allclose(before, after, atol=5e-4) == (mask < -10)
        expected += [*before, *after]
    assert_on_page("finite-mask", expected)


# Section 6: out of the matrices that stand on the page.


def tables_of_words() -> list[Array]:
    """x, W^Q, W^K, W^V and W^O as the page has them."""
    x, *projections, output = PRINTED["words"].removeprefix("```text\n").removesuffix("\n```").split("\n\n")
    return [np.array([whole(line) for line in part.splitlines()[1:]], float) for part in (x, *projections, output)]


def heads_of(x: Array, tables: list[Array]) -> list[dict[str, Array]]:
    """Every head's steps; a head has the columns of its own, in as many equal parts as there are heads."""
    halves = zip(*(np.split(table, 2, axis=1) for table in tables), strict=True)
    steps = []
    for to_query, to_key, to_value in halves:
        query, key, value = x @ to_query, x @ to_key, x @ to_value
        scores = query @ key.T / np.sqrt(key.shape[1])
        steps.append({"scores": scores, "weights": softmax(scores), "output": softmax(scores) @ value})
    return steps


def test_two_words_through_two_heads_of_their_own_width():
    x, *projections, output = tables_of_words()
    assert [table.shape for table in (x, *projections, output)] == [(2, 4), *[(4, 8)] * 3, (8, 4)]
    heads = heads_of(x, projections)
    assert_on_page("head-by-head", [number for head in heads for number in line_by_line(*head.values())])
    side_by_side = np.hstack([head["output"] for head in heads])
    parts = [head["output"] @ rows for head, rows in zip(heads, np.split(output, 2), strict=True)]
    assert_on_page("heads-together", [*side_by_side.flat, *(parts[0] + parts[1]).flat, 0])


def test_heads_read_the_whole_vector_and_parts_do_not():
    x, *projections, _ = tables_of_words()

    def whole_vector(x: Array) -> list[Array]:
        return [head["output"] for head in heads_of(x, projections)]

    def its_part(x: Array) -> list[Array]:
        corners = ([table[:2, :2] for table in projections], [table[2:, 4:6] for table in projections])
        parts = zip(np.split(x, 2, axis=1), corners, strict=True)
        return [heads_of(part, [np.hstack([table] * 2) for table in corner])[0]["output"] for part, corner in parts]

    changes = []
    for step in np.eye(4):
        changed = x + np.outer([1, 0], step)
        for heads in (whole_vector, its_part):
            changes += [np.abs(new - old).max() for new, old in zip(heads(changed), heads(x), strict=True)]
    assert_on_page("dimensions", changes)
    table = np.array(changes).reshape(4, 4)
    assert (table[:, :2] > 0.1).all()
    np.testing.assert_array_equal(table[:, 2:] > 0, [[1, 0], [1, 0], [0, 1], [0, 1]])


# The pictures, and the program.


@pytest.mark.slow
@pytest.mark.parametrize("name", pictures.PICTURES)
def test_pictures_show_what_the_script_draws(name):
    """Up to what another processor's last digit does to a line's edge."""
    committed = (script.DOCS / name).read_bytes()
    assert len(committed) < 150_000
    drawn = imread(io.BytesIO(picture(pictures.PICTURES[name], "png", dpi=130, facecolor="white")))
    shown = imread(io.BytesIO(committed))
    assert drawn.shape == shown.shape
    assert np.abs(drawn - shown).mean() < 1e-3


@pytest.fixture
def run(tmp_path, monkeypatch, run_main):
    """``run(page, argument …)``: the program in this process, with a page of one block; returns code and page."""
    monkeypatch.setattr(script, "DOCS", tmp_path)
    monkeypatch.setattr(script, "PAGE", tmp_path / "attention.md")
    monkeypatch.setattr(script, "BLOCKS", {"one-query": one_head.one_query})
    monkeypatch.setattr(script, "PICTURES", {"visible.png": pictures.draw_masks})

    def run(page: str, *arguments: str) -> tuple[Any, str, str]:
        script.PAGE.write_text(page, encoding="utf-8")
        code, _, err = run_main(script.main, *arguments)
        return code, script.PAGE.read_text(encoding="utf-8"), err

    return run


@pytest.mark.slow
def test_the_program_writes_blocks_and_leaves_the_prose(run, tmp_path):
    page = "# Prose\n\n<!-- begin one-query -->\n\n{}\n\n<!-- end one-query -->\n\nMore \\1 prose.\n"
    stale, fresh = page.format("old"), page.format(PRINTED["one-query"])
    assert run(stale)[:2] == (0, fresh)
    first = (tmp_path / "visible.png").read_bytes()
    assert run(fresh)[:2] == (0, fresh)
    assert (tmp_path / "visible.png").read_bytes() == first
