"""Text that others wrote, as a message or a page can show it."""


def visible(text: str) -> str:
    """What does not print, such as a control character of a terminal, as ``<U+200B>``."""
    return "".join(letter if letter.isprintable() else f"<U+{ord(letter):04X}>" for letter in text)


def in_brief(text: str, longest: int = 100) -> str:
    """The same, cut after so many characters."""
    return visible(text if len(text) <= longest else f"{text[:longest]}…")
