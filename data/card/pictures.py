"""A corpus in two pictures: the lengths of its sentences and a packed training batch.

P sentence pair · B batch row.
"""

import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Int, Int32
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from data.batches.packing import Batch
from data.card.tables import summarise_lengths

Lengths = tuple[Int[np.ndarray, " P"], Int[np.ndarray, " P"]]  # tokens of each source and each target
Spell = Callable[[list[int]], list[str]]  # Tokenizer.pieces

SPLIT_COLOURS = {"train": "#2b5c8a", "valid": "#e07b39", "test": "#2f9e77"}
COLOURS = ["#ececec", "#8fbbdb", "#f7b97f", "#9fd3a5", "#c9b3dc", "#f2a3a3", "#e3d27e", "#98d4d0"]  # padding, segments
SPELLED = 64  # positions of a row whose pieces are legible side by side
LONGEST_PIECE = 13  # letters that fit in the box of a token
WIDEST = 2000  # tokens along an axis; the legend gives the longest length
BATCH_CAPTION = (
    "A strip is a row, a colour one sentence pair: the same segment of the same row on both sides; grey is padding. "
    "Tokens see only those of their own segment, and positions restart with it."
)


def png(figure: Figure) -> bytes:
    """The figure as the content of a PNG file."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a box replaces what the font lacks
        figure.savefig(file, format="png", dpi=150, facecolor="white")
    return file.getvalue()


def empty_figure(width: float, height: float, title: str) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title, x=0.008, ha="left", weight="bold", fontsize=14, parse_math=False)
    return figure


def draw_lengths(title: str, languages: tuple[str, str], splits: dict[str, Lengths]) -> Figure:
    """Draw tokens per sentence in every split, and source against target lengths in training."""
    figure = empty_figure(15.0, 5.0, title)
    *sides, joint = figure.subplots(1, 3, width_ratios=[1, 1, 1.1])
    for number, (axes, side, language) in enumerate(zip(sides, ("Source", "Target"), languages, strict=True)):
        draw_distributions(axes, {split: lengths[number] for split, lengths in splits.items()})
        axes.set_title(f"{side} ({language})", loc="left", fontsize=11, parse_math=False)
    source, target = splits["train"]
    widest = max(int(source.max()), int(target.max())) + 1
    edges = np.arange(widest + 1) + 0.5
    *_, image = joint.hist2d(source, target, bins=(edges, edges), cmin=1, cmap="viridis_r", norm=LogNorm())
    joint.axline((0, 0), slope=1, color="grey", lw=0.8, ls="--")
    figure.colorbar(image, ax=joint, label="pairs", format="{x:,.0f}")
    joint.set(xlabel=f"source tokens ({languages[0]})", ylabel=f"target tokens ({languages[1]})", aspect="equal")
    joint.set(xlim=(0, widest), ylim=(0, widest))
    joint.set_title(f"{len(source):,} training pairs (dashed: equal lengths)", loc="left", fontsize=11)
    return figure


def draw_distributions(axes: Axes, splits: dict[str, Int[np.ndarray, " P"]]) -> None:
    """Draw an outline for every split; the longest thousandth of the sentences lies outside."""
    widest = min(WIDEST, max(int(np.quantile(lengths, 0.999)) for lengths in splits.values()) + 1)
    for split, lengths in splits.items():
        shares = 100 * np.bincount(lengths, minlength=widest + 1)[: widest + 1] / len(lengths)
        mean, _, most, longest = summarise_lengths(lengths)
        label = f"{split}: mean {mean:.1f}, 95 % ≤ {most}, longest {longest}"
        axes.stairs(shares, np.arange(widest + 2) - 0.5, color=SPLIT_COLOURS[split], lw=1.5, label=label)
    axes.set(xlim=(0.5, widest + 0.5), xlabel="tokens in a sentence, EOS included", ylabel="% of the split's sentences")
    axes.margins(y=0.3)  # room for the legend
    axes.legend(frameon=False, fontsize=9.5, loc="upper right")


def draw_batch(title: str, languages: tuple[str, str], batch: Batch, spell: Spell) -> Figure:
    """Draw all rows of a batch, each pair in a colour, and one row again with its pieces."""
    height = min(max(0.11 * len(batch.source_tokens), 1.0), 7.0)
    figure = empty_figure(18.0, height + 6.2, title)
    grid = figure.add_gridspec(3, 2, height_ratios=[height, 1.9, 1.9])
    # The first row with padding; the first of all if there is none.
    row = int(np.argmin((batch.source_segments[:, -1] > 0) & (batch.target_segments[:, -1] > 0)))
    sides = (
        ("Source", "tokens", batch.source_tokens, batch.source_segments, batch.source_positions),
        ("Target", "labels", batch.target_labels, batch.target_segments, batch.target_positions),
    )
    for number, (side, kind, tokens, segments, positions) in enumerate(sides):
        rows, one = figure.add_subplot(grid[0, number]), figure.add_subplot(grid[1 + number, :])
        draw_rows(rows, segments, row)
        real = np.count_nonzero(segments) / segments.size
        rows.set_title(f"{side} ({languages[number]}): {real:.1%} real tokens", loc="left", fontsize=12)
        draw_row(one, spell(tokens[row].tolist()), segments[row], positions[row])
        cut = f", the first {SPELLED} of {segments.shape[1]} places" if segments.shape[1] > SPELLED else ""
        one.set_title(f"Row {row + 1}, framed above: {side.lower()} {kind}{cut}", loc="left", fontsize=12)
    figure.supxlabel(BATCH_CAPTION, x=0.008, ha="left", fontsize=11)
    return figure


def colour_of(segments: Int32[np.ndarray, "*shape"]) -> Int[np.ndarray, "*shape"]:
    """The index in ``COLOURS`` of each segment."""
    return np.where(segments == 0, 0, 1 + (segments - 1) % (len(COLOURS) - 1))


def draw_rows(axes: Axes, segments: Int32[np.ndarray, "B positions"], framed: int) -> None:
    """Draw each row as a strip, in which a pair has the same colour on both sides."""
    rows, width = segments.shape
    place: dict[str, Any] = {"extent": (0, width, rows + 0.5, 0.5), "aspect": "auto", "interpolation": "nearest"}
    axes.imshow(colour_of(segments), cmap=ListedColormap(COLOURS), vmin=0, vmax=len(COLOURS) - 1, **place)
    axes.hlines(np.arange(1.5, rows), 0, width, color="white", lw=0.6)
    axes.add_patch(Rectangle((0, framed + 0.5), width, 1, fill=False, lw=1.6, clip_on=False, zorder=3))
    axes.set(xlabel="position in the row", ylabel="row of the batch")
    axes.set_frame_on(False)


def draw_row(
    axes: Axes, pieces: list[str], segments: Int32[np.ndarray, " row"], positions: Int32[np.ndarray, " row"]
) -> None:
    """Draw the three arrays of a row below each other: tokens as pieces, segments and positions."""
    width = min(len(segments), SPELLED)
    for place, colour in enumerate(colour_of(segments[:width])):
        axes.add_patch(Rectangle((place, 0), 1, 4, facecolor=COLOURS[colour], edgecolor="white", lw=0.8))
        piece = pieces[place]
        piece = piece if len(piece) <= LONGEST_PIECE else piece[: LONGEST_PIECE - 1] + "…"
        centre: dict[str, Any] = {"x": place + 0.5, "ha": "center", "parse_math": False}
        axes.text(y=3.85, s=piece, rotation=90, va="bottom", fontsize=10, **centre)
        axes.text(y=4.55, s=str(segments[place]), va="center", fontsize=9, **centre)
        axes.text(y=5.25, s=str(positions[place]), va="center", fontsize=9, **centre)
    axes.set(xlim=(0, width), ylim=(5.6, 0), xticks=[])
    axes.set_yticks([2, 4.55, 5.25], ["token", "segment", "position"], fontsize=10)
    axes.tick_params(length=0)
    axes.set_frame_on(False)
