"""The three pictures of docs/attention.md."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from attention.masks import visible_keys
from attention.scores import dot_product, scaled_dot_product
from common.pictures import Axes, Figure, ListedColormap
from evaluation.attention_lessons.one_head import DRAWN_KEYS, WIDTHS, softmax_statistics
from evaluation.attention_lessons.several_heads import HEADS, SOURCE, TARGET, uses
from evaluation.attention_lessons.text import number
from evaluation.attention_view.heatmaps import COLOURS

# Two sentence pairs packed into one row on each side, and padding.
PACKED_SOURCE = [*SOURCE, "Thanks", "</s>", "pad", "pad"], jnp.array([1, 1, 1, 1, 2, 2, 0, 0])
PACKED_TARGET = [*TARGET, "<s>", "Gracias", "pad"], jnp.array([1, 1, 1, 2, 2, 0])

BLUE, ORANGE, LIGHT = "#2b5c8a", "#e07b39", "#ececec"
SEGMENT_COLOURS = ListedColormap([LIGHT, "#8fbbdb", "#f7b97f"])  # invisible, and the two sentences


def draw_scale() -> Figure:
    """Variance, largest weight and gradient of the softmax against d_k."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for score, colour, name in ((dot_product, ORANGE, "$q·k$"), (scaled_dot_product, BLUE, r"$q·k\;/\sqrt{d_k}$")):
        variances, largest, gradients, _ = zip(*(softmax_statistics(width, score) for width in WIDTHS), strict=True)
        style: dict[str, Any] = {"color": colour, "marker": "o", "markersize": 5}
        left.plot(WIDTHS, variances, label=name, **style)
        middle.plot(WIDTHS, largest, **style)
        right.plot(WIDTHS, [gradient.mean() for gradient in gradients], **style)
        right.plot(WIDTHS, [np.median(gradient) for gradient in gradients], linestyle="--", **style)
    for line, name in (("-", "mean of the queries"), ("--", "median")):
        right.plot([], [], color="0.3", linestyle=line, label=name)
    format_panel(left, "Variance of a score", ["1", "4", "16", "64", "256"])
    format_panel(middle, f"Largest of {DRAWN_KEYS} weights, mean", [])
    format_panel(right, "Norm of the softmax's Jacobian", ["0.01", "0.03", "0.1", "0.3"])
    middle.set_ylim(0, 1)
    left.legend(frameon=False, fontsize=11)
    right.legend(frameon=False, loc="lower left")
    return figure


def format_panel(axes: Axes, title: str, ticks: list[str]) -> None:
    """A panel over d_k; with ticks, its other axis is logarithmic as well."""
    axes.set_title(title, fontsize=11)
    axes.set_xscale("log", base=2)
    axes.set_xticks(WIDTHS, map(str, WIDTHS))
    axes.set(xlim=(3.2, 320), xlabel="$d_k$, the width of a key")
    if ticks:
        axes.set_yscale("log")
        axes.set_yticks(list(map(float, ticks)), ticks)
        axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def draw_masks() -> Figure:
    """Which keys each query of a row with two sentence pairs sees, in the three uses."""
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    sides = [(PACKED_SOURCE, PACKED_SOURCE), (PACKED_TARGET, PACKED_TARGET), (PACKED_TARGET, PACKED_SOURCE)]
    panels = figure.subplots(1, 3, width_ratios=[8, 6, 8])
    for axes, use, ((queries, rows), (keys, columns)) in zip(panels, uses().values(), sides, strict=True):
        visible = visible_keys(rows, columns, causal=use.causal)
        axes.imshow(jnp.where(visible, rows[:, None], 0), cmap=SEGMENT_COLOURS, vmin=0, vmax=2)
        label(axes, use.title, queries, keys)
        axes.set(xlabel="key", ylabel="query", anchor="N")
        axes.set_xticks(np.arange(len(keys) - 1) + 0.5, minor=True)
        axes.set_yticks(np.arange(len(queries) - 1) + 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=1.5)
    return figure


def label(axes: Axes, title: str, queries: list[str], keys: list[str]) -> None:
    axes.set_title(title, fontsize=11)
    axes.set_xticks(range(len(keys)), keys, rotation=90)
    axes.set_yticks(range(len(queries)), queries)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)


def draw_uses() -> Figure:
    """Heat maps of both heads in the three uses; grey where a query cannot see a key."""
    figure = Figure(figsize=(10, 6), layout="constrained")
    panels = figure.subplots(HEADS, 3, width_ratios=[4, 3, 4])
    for (head, column), axes in np.ndenumerate(panels):
        use = list(uses().values())[column]
        weights = np.array(use.steps.weights[0, head])
        visible = np.tri(*weights.shape, dtype=np.bool_) if use.causal else np.ones(weights.shape, np.bool_)
        axes.imshow(np.where(visible, weights, np.nan), cmap=COLOURS, vmin=0, vmax=1)
        label(axes, f"head {head + 1}" if head else f"{use.title}\nhead 1", use.queries, use.keys)
        axes.set(ylabel="query", xlabel="key" if head else "", anchor="N")
        for row, key in np.argwhere(visible):
            colour = "white" if weights[row, key] > 0.4 else "black"
            axes.text(key, row, number(weights[row, key], 2), ha="center", va="center", color=colour)
    return figure


PICTURES = {"attention-scale.png": draw_scale, "attention-visible.png": draw_masks, "attention-welcome.png": draw_uses}
