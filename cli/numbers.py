"""Numbers on the command line, as types of argparse: their errors say what is allowed."""

import argparse


def positive_integer(text: str) -> int:
    """Parse a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} must be a whole number from 1")
    return int(text)


def positive_integers(text: str) -> list[int]:
    """Parse whole numbers from 1, separated by commas."""
    return [positive_integer(part) for part in text.split(",")]


def positive(text: str) -> float:
    """Parse a finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} must be a number above 0")
    return number


def share(text: str) -> float:
    """Parse a number above 0 and up to 1."""
    number = positive(text)
    if number > 1:
        raise argparse.ArgumentTypeError(f"{text} is above 1")
    return number
