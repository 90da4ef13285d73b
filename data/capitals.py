"""Convert lines in all capitals to lower case: edited corpora have hardly any. Exports include this module."""

import re

FEWEST = 5  # capitals, so that lines such as USA and NATO stay as they are
SENTENCE_START = re.compile(r"(?<=[.!?…])\s")


def in_sentence_case(text: str) -> str:
    """Lower-case a text with ``FEWEST`` capitals and no small letters, except the first of each sentence and I."""
    if not text.isupper() or sum(map(str.isupper, text)) < FEWEST:
        return text
    return " ".join(map(_capitalised, SENTENCE_START.split(text)))


def _capitalised(sentence: str) -> str:
    first = next((index for index, letter in enumerate(sentence) if letter.isupper()), 0)
    return sentence[: first + 1] + re.sub(r"\bi\b", "I", sentence[first + 1 :].lower())
