"""A corpus in two pictures: the lengths of its sentences and a packed training batch.

P sentence pair · B batch row.
"""

import io
import warnings
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int, Int32
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle

from data.batches.packing import Batch
from data.card.tables import summarise_lengths

Lengths = tuple[Int[np.ndarray, " P"], Int[np.ndarray, " P"]]  # tokens of each source and each target
Spell = Callable[[list[int]], list[str]]  # Tokenizer.pieces

GREY, DASHED = "#777777", (0, (4, 3))
SPLIT_COLOURS = {"train": "#2b5c8a", "valid": "#e07b39", "test": "#2f9e77"}
PADDING = "#ececec"
SEGMENT_COLOURS = ["#8fbbdb", "#f7b97f", "#9fd3a5", "#c9b3dc", "#f2a3a3", "#e3d27e", "#98d4d0"]
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


def draw_lengths(title: str, languages: tuple[str, str], splits: dict[str, Lengths]) -> Figure:
    """Draw tokens per sentence in every split, and source against target lengths in training."""
    figure = empty_figure(15.0, 5.0, title)
    left, middle, right = figure.subplots(1, 3, width_ratios=[1, 1, 1.1])
    draw_distributions(left, f"source ({languages[0]})", {split: source for split, (source, _) in splits.items()})
    draw_distributions(middle, f"target ({languages[1]})", {split: target for split, (_, target) in splits.items()})
    draw_joint(right, splits["train"], languages)
    return figure


def empty_figure(width: float, height: float, title: str) -> Figure:
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1))
    figure.suptitle(title, x=0.008, ha="left", weight="bold", fontsize=14, parse_math=False)
    return figure


def draw_distributions(axes: Axes, side: str, splits: dict[str, Int[np.ndarray, " P"]]) -> None:
    """Draw an outline for every split, the first one filled; the longest thousandth of the sentences lies outside."""
    widest = min(WIDEST, max(int(np.quantile(lengths, 0.999)) for lengths in splits.values()) + 1)
    edges, highest = np.arange(widest + 2) - 0.5, 0.0
    for number, (split, lengths) in enumerate(splits.items()):
        shares = 100 * np.bincount(lengths, minlength=widest + 1)[: widest + 1] / len(lengths)
        highest = max(highest, float(shares.max()))
        mean, _, most, longest = summarise_lengths(lengths)
        label = f"{split}: mean {mean:.1f}, 95 % ≤ {most}, longest {longest}"
        colour = SPLIT_COLOURS[split]
        axes.stairs(shares, edges, color=colour, lw=1.5, label=label, zorder=4 - number)
        axes.stairs(shares, edges, color=colour, fill=True, alpha=0.0 if number else 0.2, zorder=1)
    axes.set(xlim=(0.5, widest + 0.5), ylim=(0, 1.32 * highest))  # room for the legend
    axes.set(xlabel="tokens in a sentence, EOS included", ylabel="% of the split's sentences")
    axes.set_title(side.capitalize(), loc="left", fontsize=11, parse_math=False)
    axes.legend(frameon=False, fontsize=9.5, loc="upper right")
    tidy(axes)


def draw_joint(axes: Axes, lengths: Lengths, languages: tuple[str, str]) -> None:
    """Draw how many pairs have each combination of lengths, in colours on a logarithmic scale."""
    source, target = lengths
    widest = max(int(source.max()), int(target.max())) + 1
    edges = np.arange(widest + 1) + 0.5
    counts: Float[np.ndarray, "widest widest"] = np.histogram2d(source, target, bins=(edges, edges))[0]
    seen, scale = np.ma.masked_equal(counts.T, 0), LogNorm(1, max(2.0, float(counts.max())))
    mesh = axes.pcolormesh(edges, edges, seen, cmap="viridis_r", norm=scale)
    axes.plot([0, widest], [0, widest], color=GREY, lw=0.8, ls=DASHED)
    bar = axes.figure.colorbar(mesh, ax=axes, label="pairs", pad=0.02, format="{x:,.0f}")
    bar.outline.set_visible(False)
    axes.set(xlabel=f"source tokens ({languages[0]})", ylabel=f"target tokens ({languages[1]})")
    axes.set(aspect="equal", xlim=(0, widest), ylim=(0, widest))
    axes.set_title(f"{len(source):,} training pairs (dashed: equal lengths)", loc="left", fontsize=11)
    tidy(axes)


def tidy(axes: Axes) -> None:
    """Remove the frame above and on the right, and grey the rest."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(color=GREY)


def draw_batch(title: str, languages: tuple[str, str], batch: Batch, spell: Spell) -> Figure:
    """Draw all rows of a batch, each pair in a colour, and one row again with its pieces."""
    height = min(max(0.11 * len(batch.source_tokens), 1.0), 7.0)
    figure = empty_figure(18.0, height + 6.2, title)
    grid = figure.add_gridspec(3, 2, height_ratios=[height, 1.9, 1.9])
    # The first row with padding; the first of all if there is none.
    row = int(np.argmin((batch.source_segments[:, -1] > 0) & (batch.target_segments[:, -1] > 0)))
    sides = (
        ("source", "tokens", languages[0], batch.source_tokens, batch.source_segments, batch.source_positions),
        ("target", "labels", languages[1], batch.target_labels, batch.target_segments, batch.target_positions),
    )
    for number, (side, kind, language, tokens, segments, positions) in enumerate(sides):
        whole, one = figure.add_subplot(grid[0, number]), figure.add_subplot(grid[1 + number, :])
        draw_rows(whole, segments, row)
        real = f"{np.count_nonzero(segments) / segments.size:.1%} real tokens"
        whole.set_title(f"{side.capitalize()} ({language}): {real}", loc="left", fontsize=12)
        draw_row(one, spell(tokens[row].tolist()), segments[row], positions[row])
        places = segments.shape[1]
        cut = f", the first {SPELLED} of {places} places" if places > SPELLED else ""
        one.set_title(f"Row {row + 1}, framed above: {side} {kind} ({language}){cut}", loc="left", fontsize=12)
    figure.supxlabel(BATCH_CAPTION, x=0.008, ha="left", fontsize=11)
    return figure


def draw_rows(axes: Axes, segments: Int32[np.ndarray, "B positions"], framed: int) -> None:
    """Draw each row as a strip, in which a pair has the same colour on both sides."""
    rows, width = segments.shape
    colours = ListedColormap([PADDING, *SEGMENT_COLOURS])
    cycled = np.where(segments == 0, 0, 1 + (segments - 1) % len(SEGMENT_COLOURS))
    extent = (0, width, rows + 0.5, 0.5)
    axes.imshow(cycled, cmap=colours, vmin=0, vmax=len(SEGMENT_COLOURS), extent=extent, aspect="auto",
                interpolation="nearest")  # fmt: skip
    axes.hlines(np.arange(1.5, rows), 0, width, color="white", lw=0.6)
    axes.add_patch(Rectangle((0, framed + 0.5), width, 1, fill=False, lw=1.6, clip_on=False, zorder=3))
    axes.set(xlabel="position in the row", ylabel="row of the batch")
    axes.spines[:].set_visible(False)


def draw_row(
    axes: Axes, pieces: list[str], segments: Int32[np.ndarray, " row"], positions: Int32[np.ndarray, " row"]
) -> None:
    """Draw the three arrays of a row below each other: tokens as pieces, segments and positions."""
    width = min(len(segments), SPELLED)
    for place in range(width):
        segment, position = int(segments[place]), int(positions[place])
        colour = SEGMENT_COLOURS[(segment - 1) % len(SEGMENT_COLOURS)] if segment else PADDING
        axes.add_patch(Rectangle((place, 0), 1, 4, facecolor=colour, edgecolor="white", lw=0.8))
        piece = pieces[place]
        piece = piece if len(piece) <= LONGEST_PIECE else piece[: LONGEST_PIECE - 1] + "…"
        axes.text(place + 0.5, 3.85, piece, rotation=90, ha="center", va="bottom", fontsize=10,
                  color="black" if segment else GREY, parse_math=False)  # fmt: skip
        axes.text(place + 0.5, 4.55, str(segment), ha="center", va="center", fontsize=9)
        axes.text(place + 0.5, 5.25, str(position), ha="center", va="center", fontsize=9)
    axes.set(xlim=(0, width), ylim=(5.6, 0), xticks=[])
    axes.set_yticks([2, 4.55, 5.25], ["token", "segment", "position"], fontsize=10)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
