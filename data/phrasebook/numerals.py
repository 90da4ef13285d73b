"""Cardinal numbers in words, up to 99."""

import functools

from data.phrasebook.lexicon import table


@functools.cache
def _words() -> dict[int, tuple[str, str]]:
    return {int(number): (english, spanish) for number, english, spanish in table("numbers")}


def number(count: int, feminine: bool = False) -> tuple[str, str]:
    """In English and Spanish, as before a noun, where *uno* agrees: veintiún libros, veintiuna sillas."""
    if count in _words():
        in_english, in_spanish = _words()[count]
    else:
        tens, units = _words()[count - count % 10], _words()[count % 10]
        in_english, in_spanish = f"{tens[0]}-{units[0]}", f"{tens[1]} y {units[1]}"
    return in_english, _agreeing(in_spanish, feminine)


def _agreeing(in_spanish: str, feminine: bool) -> str:
    if not in_spanish.endswith("uno"):
        return in_spanish
    if feminine:
        return in_spanish[:-1] + "a"
    return "veintiún" if in_spanish == "veintiuno" else in_spanish[:-1]
