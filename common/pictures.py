"""Pictures by matplotlib, the same whatever settings a user has for other work, with letters of any alphabet.

Matplotlib's names are imported from here. Notebooks export the backend of theirs to all programs, and where it is not
installed, that ends the import of matplotlib.
"""

import io
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

BACKEND = os.environ.pop("MPLBACKEND", None)

import matplotlib as mpl  # noqa: E402
from matplotlib import colormaps as colormaps  # noqa: E402
from matplotlib import style  # noqa: E402
from matplotlib.axes import Axes as Axes  # noqa: E402
from matplotlib.colors import to_hex as to_hex  # noqa: E402
from matplotlib.figure import Figure as Figure  # noqa: E402
from matplotlib.font_manager import findfont, fontManager, get_font  # noqa: E402
from matplotlib.image import AxesImage as AxesImage  # noqa: E402

from common.errors import write_note  # noqa: E402
from common.text import in_brief  # noqa: E402

if BACKEND is not None:
    os.environ["MPLBACKEND"] = BACKEND
    with suppress(ValueError):
        mpl.rcParams["backend"] = BACKEND

USUAL = "DejaVu Sans"  # comes with matplotlib
# What would make the files of equal figures differ.
LEFT_OUT = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def picture(draw: Callable[[], Figure], form: str, text: str = "", **options: Any) -> bytes:
    """The figure as a ``png``, ``svg`` or ``pdf`` file, reproducible byte for byte; the text in an SVG is searchable.

    ``text`` is what may need other letters than Latin, Greek and Cyrillic ones; ``options`` are those of ``savefig``.
    """
    file, settings = io.BytesIO(), {"svg.hashsalt": "puente", "svg.fonttype": "none", "font.family": fonts_for(text)}
    with style.context(["default", settings]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a box replaces what no font has
        figure = draw()
        figure.savefig(file, format=form, metadata=LEFT_OUT[form], **{"dpi": figure.dpi} | options)
    return file.getvalue()


def fonts_for(text: str) -> list[str]:
    """The usual font, and those of this machine that have what it lacks; a note says what no font has."""
    fonts, missing = [USUAL], lacking(findfont(USUAL), {letter for letter in text if letter.isprintable()})
    for font in fontManager.ttflist:
        if missing and not font.name.startswith("Last Resort") and (rest := lacking(font.fname, missing)) != missing:
            fonts, missing = [*fonts, font.name], rest
    if missing:
        write_note(f"note: no font here has {in_brief(''.join(sorted(missing)), 60)}: the picture has boxes instead")
    return fonts


def lacking(file: str, letters: set[str]) -> set[str]:
    font = get_font(file)
    return {letter for letter in letters if not font.get_char_index(ord(letter))}
