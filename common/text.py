"""Making text safe to show in a message or on a page, or to paste into a command."""

import json
import re


def visible(text: str) -> str:
    """Spell out unprintable characters, such as terminal controls, as in ``<U+200B>``."""
    return "".join(letter if letter.isprintable() else f"<U+{ord(letter):04X}>" for letter in text)


STEERING = re.compile("\r(?!\n)|[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def escape_controls(text: str) -> str:
    """Escape characters that control a terminal or the writing direction, as in JSON; tabs and line ends stay."""
    return STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def in_brief(text: str, longest: int = 100) -> str:
    """Make text visible and cut it to ``longest`` characters."""
    return visible(text if len(text) <= longest else f"{text[:longest]}…")


NO_TEXT = r"(?:no|yes|on|off|true|false|null|y|n)$"  # to YAML 1.1
PLAIN = re.compile(rf"(?!{NO_TEXT})([^\W\d]|/)([\w/.+=@ -]|:(?! ))*(?<=[\w/.])", re.IGNORECASE)


def as_list_item(text: str) -> str:
    """A string as an item of a YAML list in brackets, quoted if YAML might read it as something else: no is false."""
    return text if PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def is_encoding(name: str) -> bool:
    """Whether this is an encoding that Python can decode text from."""
    try:
        return bool("a".encode(name))
    except (LookupError, ValueError):
        return False
