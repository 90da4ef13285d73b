"""Attention weights as a picture: a heat map of each head of each layer, and a larger one of the last layer's mean.

Rows are queries and columns are keys, both labelled with tokens; all maps share one colour scale from 0 to 1.

L layer · N query head · T query position · S key position
"""

import re
import textwrap
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from common.pictures import Axes, AxesImage, Figure, colormaps, picture

COLOURS = colormaps["magma_r"].with_extremes(bad="0.88")  # perceptually uniform; weak weights stay visible
CELL, GAP, TYPE = 0.15, 0.15, 7.5  # of the heads' maps: inches of a cell and between panels, and points of the type
NOT_IN_XML = "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]"  # matplotlib writes these to SVG unescaped
LONGEST_SIDE = 10_000  # pixels: viewers still open a picture of 48 heads of 60 tokens


@dataclass(frozen=True)
class HeatMaps:
    """What to draw: weights, NaN (grey) where a query cannot see a key, and the tokens of rows and columns."""

    title: str
    subtitle: str
    weights: Float[np.ndarray, "L N T S"]
    queries: list[str]
    keys: list[str]
    queries_are: str
    keys_are: str


def render(maps: HeatMaps, file_format: str) -> bytes:
    """The picture as a ``png`` or ``svg`` file."""
    text = "".join([maps.title, maps.subtitle, *maps.queries, *maps.keys])
    content = picture(partial(draw, maps), file_format, text, bbox_inches="tight", pad_inches=0.3)
    return content if file_format == "png" else re.sub(NOT_IN_XML, "\ufffd", content.decode()).encode()


def draw(maps: HeatMaps) -> Figure:
    """The overview, the heads layer by layer, and a colour bar, as a figure to save with ``bbox_inches="tight"``."""
    layers, heads, rows, columns = maps.weights.shape
    width, height = CELL * max(columns, 10), CELL * max(rows, 8)  # a title fits above few tokens
    # The heads fill the figure. All else is drawn outside of it, and saving "tight" fits the paper to the drawing.
    right, top = heads * (width + GAP), layers * (height + 2 * GAP)
    figure = Figure(figsize=(right, top))
    space = {"left": 0, "right": 1, "bottom": 0, "top": 1, "wspace": GAP / width, "hspace": 2 * GAP / height}
    panels = figure.subplots(layers, heads, squeeze=False, gridspec_kw=space)
    for (layer, head), axes in np.ndenumerate(panels):
        title, outer = f"Layer {layer + 1}, head {head + 1}", (head == 0, layer == layers - 1)
        draw_map(axes, maps, maps.weights[layer, head], title, TYPE, *outer)
    # The overview is about two thirds as high as all layers: legible when the picture is fitted to a screen.
    scale, labels = max(2, 0.65 * layers), (0.65 * max(map(len, maps.queries)) + 5) * TYPE / 72
    left, large = -labels - scale * width, TYPE * scale**0.5
    overview = figure.add_axes((left / right, 1 - scale * height / top, scale * width / right, scale * height / top))
    title = f"Layer {layers}, mean of {heads} heads" if heads > 1 else f"Layer {layers}"
    image = draw_map(overview, maps, maps.weights[-1].mean(axis=0), title, large)
    bar = figure.colorbar(image, cax=figure.add_axes((1 + GAP / right, 1 - 3 / top, 0.2 / right, 3 / top)))
    bar.set_label("attention weight", fontsize=large)
    lines, line = textwrap.wrap(maps.subtitle, int((right - left) * 72 / (0.55 * large))), large / 72 / top
    style: dict[str, Any] = {"va": "bottom", "parse_math": False}
    figure.text(left / right, 1 + 3 * line, "\n".join(lines), fontsize=large, **style)
    above = 1 + (4 + 1.3 * len(lines)) * line
    figure.text(left / right, above, maps.title, fontsize=1.4 * large, weight="bold", **style)
    figure.set_dpi(min(150, LONGEST_SIDE / max(right - left, top)))
    return figure


def draw_map(
    axes: Axes,
    maps: HeatMaps,
    weights: Float[np.ndarray, "T S"],
    title: str,
    size: float,
    rows: bool = True,
    columns: bool = True,
) -> AxesImage:
    """One heat map, with the tokens of its rows and columns, in type of ``size`` points."""
    axes.set_title(title, fontsize=size + 1.5)
    axes.set(xticks=[], yticks=[])
    image = axes.imshow(weights, cmap=COLOURS, vmin=0, vmax=1, aspect="auto", interpolation="none")
    if rows:
        axes.set_yticks(range(len(maps.queries)), maps.queries, fontsize=size, parse_math=False)
        axes.set_ylabel(maps.queries_are, fontsize=size + 1)
    if columns:
        axes.set_xticks(range(len(maps.keys)), maps.keys, rotation=90, fontsize=size, parse_math=False)
        axes.set_xlabel(maps.keys_are, fontsize=size + 1)
    return image
