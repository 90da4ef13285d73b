"""Making text safe to show in a message or on a page, or to paste into a command."""

import json
import re


def visible(text: str) -> str:
    """Spell unprintable characters, such as a terminal's control characters, as ``<U+200B>``."""
    return "".join(letter if letter.isprintable() else f"<U+{ord(letter):04X}>" for letter in text)


STEERING = re.compile("\r(?!\n)|[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def escape_controls(text: str) -> str:
    """Escape, as JSON does, what steers a terminal or the direction of writing; tabs and line ends stay."""
    return STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def in_brief(text: str, longest: int = 100) -> str:
    """Make text visible and cut it to ``longest`` characters."""
    return visible(text if len(text) <= longest else f"{text[:longest]}…")


NO_TEXT = r"(?:no|yes|on|off|true|false|null|y|n)$"  # to YAML 1.1
PLAIN = re.compile(rf"(?!{NO_TEXT})([^\W\d]|/)([\w/.+=@ -]|:(?! ))*(?<=[\w/.])", re.IGNORECASE)


def as_list_item(text: str) -> str:
    """A string as an item of a YAML list in brackets, in quotes where YAML might read something else: no is false."""
    return text if PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def is_encoding(name: str) -> bool:
    """Whether Python can decode text in it."""
    try:
        return bool("a".encode(name))
    except (LookupError, ValueError):
        return False
