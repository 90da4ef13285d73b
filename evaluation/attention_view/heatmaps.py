"""Attention weights as a picture: a heat map of each head of each layer, and a larger one of the last layer's mean.

Rows are queries and columns are keys, both labelled with tokens; all maps share one colour scale from 0 to 1.

L layer · N query head · T query position · S key position
"""

import io
import re
import textwrap
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib import colormaps, rc_context
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

COLOURS = colormaps["magma_r"].with_extremes(bad="0.88")  # perceptually uniform; weak weights stay visible
GAP = 0.15  # inches between panels
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


@dataclass(frozen=True)
class Scale:
    """The side of a cell in inches, and the type size in points."""

    cell: float
    type: float

    def panel(self, maps: HeatMaps) -> tuple[float, float]:
        """Width and height in inches. Panels have a minimum size, so that a title fits above few tokens."""
        return self.cell * max(len(maps.keys), 10), self.cell * max(len(maps.queries), 8)

    def label_width(self, labels: list[str]) -> float:
        """Inches for labels, whose letters are about 0.65 of the type size wide, and the title of their axis."""
        return self.lines(0.65 * max(map(len, labels)) + 4)

    def lines(self, count: float) -> float:
        return count * self.type / 72


SMALL = Scale(cell=0.15, type=7.5)


def render(maps: HeatMaps, file_format: str) -> bytes:
    """The picture as a ``png`` or ``svg`` file, reproducible byte for byte; labels of an SVG are searchable text."""
    file, figure = io.BytesIO(), draw(maps)
    with rc_context({"svg.hashsalt": "puente", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a box replaces what the font lacks
        options: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": 0.3, "dpi": figure.dpi}
        figure.savefig(file, format=file_format, metadata={"Date": None}, **options)
    content = file.getvalue()
    return content if file_format == "png" else re.sub(NOT_IN_XML, "\ufffd", content.decode()).encode()


def draw(maps: HeatMaps) -> Figure:
    """The overview, the heads layer by layer, and a colour bar, as a figure to save with ``bbox_inches="tight"``."""
    # On a figure of one square inch, positions are in inches. Everything is drawn outside of it: (0, 0) is the upper
    # left corner of the first panel, and saving "tight" fits the paper to the drawing.
    figure = Figure(figsize=(1, 1))
    layers, heads, *tokens = maps.weights.shape
    row_height = SMALL.panel(maps)[1] + SMALL.lines(3.0)  # a layer's panels and their titles
    height = layers * row_height
    # The overview is about two thirds as high as all layers: legible when the picture is fitted to a screen.
    cell = min(max(0.65 * height / max(*tokens, 10), 0.28), 0.6)
    large = Scale(cell, type=32 * cell)
    title = f"Layer {layers}, mean of {heads} heads" if heads > 1 else f"Layer {layers}"
    overview = draw_panel(figure, maps, large, (0.0, 0.0), maps.weights[-1].mean(axis=0), title)
    left = large.panel(maps)[0] + GAP + SMALL.label_width(maps.queries)
    column_width = SMALL.panel(maps)[0] + GAP
    for layer, head in np.ndindex(layers, heads):
        corner, title = (left + head * column_width, layer * row_height), f"Layer {layer + 1}, head {head + 1}"
        labelled = {"rows": head == 0, "columns": layer == layers - 1}
        draw_panel(figure, maps, SMALL, corner, maps.weights[layer, head], title, **labelled)
    right = left + heads * column_width
    bar = figure.colorbar(overview, cax=figure.add_axes((right + GAP, -10 * cell, cell / 2, 10 * cell)))
    bar.set_label("attention weight", fontsize=large.type)
    bar.ax.tick_params(labelsize=large.type - 1)
    write_titles(figure, maps, right, large)
    figure.set_dpi(min(150, LONGEST_SIDE / max(right, height)))
    return figure


def draw_panel(
    figure: Figure,
    maps: HeatMaps,
    scale: Scale,
    corner: tuple[float, float],
    weights: Float[np.ndarray, "T S"],
    title: str,
    *,
    rows: bool = True,
    columns: bool = True,
) -> AxesImage:
    """One heat map with labels; ``corner`` is its upper left corner, in inches to the right and down."""
    (left, top), (width, height) = corner, scale.panel(maps)
    axes = figure.add_axes((left, -top - height, width, height))
    axes.set_title(title, fontsize=scale.type + 1.5)
    axes.set(xticks=[], yticks=[])
    axes.tick_params(length=2, width=0.5)
    axes.spines[:].set_linewidth(0.5)
    image = axes.imshow(weights, cmap=COLOURS, vmin=0, vmax=1, aspect="auto", interpolation="none")
    style: dict[str, Any] = {"fontsize": scale.type, "parse_math": False}
    if rows:
        axes.set_yticks(range(len(maps.queries)), maps.queries, **style)
        axes.set_ylabel(maps.queries_are, fontsize=scale.type + 1)
    if columns:
        axes.set_xticks(range(len(maps.keys)), maps.keys, rotation=90, **style)
        axes.set_xlabel(maps.keys_are, fontsize=scale.type + 1)
    return image


def write_titles(figure: Figure, maps: HeatMaps, right: float, scale: Scale) -> None:
    """The title and the wrapped subtitle above all panels, from the left edge of the labels."""
    left = -scale.label_width(maps.queries)
    lines = textwrap.wrap(maps.subtitle, int((right - left) / scale.lines(0.55)))
    bottom = scale.lines(3.0)  # above the first panel's own title
    figure.text(left, bottom, "\n".join(lines), fontsize=scale.type, va="bottom", parse_math=False)
    bottom += scale.lines(1.3 * len(lines) + 0.8)
    figure.text(left, bottom, maps.title, fontsize=1.4 * scale.type, va="bottom", weight="bold")
