"""Making untrusted text safe to show in a message or on a page."""


def visible(text: str) -> str:
    """Spell unprintable characters, such as a terminal's control characters, as ``<U+200B>``."""
    return "".join(letter if letter.isprintable() else f"<U+{ord(letter):04X}>" for letter in text)


def in_brief(text: str, longest: int = 100) -> str:
    """Make text visible and cut it to ``longest`` characters."""
    return visible(text if len(text) <= longest else f"{text[:longest]}…")
