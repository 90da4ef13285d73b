"""Lines typed in capitals are read in small letters: edited corpora have hardly any. Exports take this module along."""

import re

FEWEST = 5  # capitals: USA and NATO are words of their own
SENTENCE_START = re.compile(r"(?<=[.!?…])\s")


def in_sentence_case(text: str) -> str:
    """A text without small letters and with ``FEWEST`` capitals keeps the first of each sentence, and the word I."""
    if not text.isupper() or sum(map(str.isupper, text)) < FEWEST:
        return text
    return " ".join(map(_capitalised, SENTENCE_START.split(text)))


def _capitalised(sentence: str) -> str:
    first = next((index for index, letter in enumerate(sentence) if letter.isupper()), 0)
    return sentence[: first + 1] + re.sub(r"\bi\b", "I", sentence[first + 1 :].lower())
