"""Invisible characters, such as soft hyphens and zero-width spaces: Unicode's Default_Ignorable_Code_Point.

Sentences are compared without them, and a model reads its input without the meaningless ones. Joiners and variation
selectors have a meaning after a letter or symbol that they can shape, as in Persian and in emoji, but never after a
Latin letter. Training text is left as it is. Exports include this module.
"""

import re

DIRECTIONS_AND_SPACES = "\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
SHAPERS = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c\u200d\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
INVISIBLE = re.compile(f"[{DIRECTIONS_AND_SPACES}{SHAPERS}\ufeff]")
BLANK = re.compile(rf"[\s{DIRECTIONS_AND_SPACES}{SHAPERS}\ufeff]*")
WITHOUT_MEANING = re.compile(f"[{DIRECTIONS_AND_SPACES}]+")
SHAPING_NOTHING = re.compile(f"(?<![^\\0-\u024f\u1e00-\u1eff\u2000-\u206f])[{SHAPERS}]+")


def is_blank(text: str) -> bool:
    """Whether a text has no visible characters."""
    return BLANK.fullmatch(text) is not None


def without_invisible(text: str) -> str:
    """The text without invisible characters that have no meaning in their context."""
    return text if text.isascii() else SHAPING_NOTHING.sub("", WITHOUT_MEANING.sub("", text))
