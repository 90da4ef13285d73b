"""Signs of a wrong translation that need no knowledge of the language: lost numbers and repeated words."""

import re
from collections import Counter

NUMBER = re.compile(r"\d+(?:[.,:\s]\d+)*")
AGAIN = re.compile(r"\b(\w+(?:\W+\w+){0,5}?)(?:\W+\1\b){2,}", re.IGNORECASE)


def find_doubts(source: str, translation: str) -> list[str]:
    """One line per doubt. Single digits are ignored, as they may be spelled out; so are separators, as they vary."""
    numbers = NUMBER.findall(source)
    lost = Counter(map(digits, numbers)) - Counter(map(digits, NUMBER.findall(translation)))
    spelled = {digits(number): number for number in numbers}
    doubts = [f"the translation lacks the number {spelled[number]}" for number in lost if len(number) > 1]
    repeated = AGAIN.search(translation)
    if repeated and not AGAIN.search(source):
        doubts.append(f'the translation repeats "{repeated[1]}"')
    return doubts


def digits(number: str) -> str:
    return re.sub(r"\D", "", number)
