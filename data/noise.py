"""Sentences as people type them: a typo, no capitals or nothing but capitals, no punctuation or too much of it.

With such sources beside the clean ones, a model learns to read them (Belinkov and Bisk 2018, section 6); ``eval.py
--robust`` shows what they cost a model.
"""

import re
import unicodedata
from hashlib import sha256

import numpy as np
from jaxtyping import Float, UInt64

from data.pairs import Pairs, normalise

DRAWS = 5  # uniform numbers that decide a sentence's noise
SEED = 1  # of noised test sets: a score must not depend on the run
WORD = re.compile(r"[^\W\d_]{4,}")  # in shorter words a typo is often another word
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def noised(sentence: str, draws: Float[np.ndarray, " 5"]) -> str:
    """The sentence with a typo if a word has four letters, other case and punctuation, by five numbers in [0, 1)."""
    word, place, kind, punctuation, case = draws.tolist()
    return normalise(with_case(with_punctuation(with_typo(sentence, word, place, kind), punctuation), case))


def noised_pairs(pairs: Pairs) -> Pairs:
    """A held-out set with noise in its sources. Equal sources stay equal, so each keeps all of its references."""
    return Pairs([noised(source, _draws_of(source)) for source in pairs.sources], pairs.targets)


def _draws_of(sentence: str) -> Float[np.ndarray, " 5"]:
    digest = sha256(sentence.encode(errors="surrogatepass")).digest()
    return uniform(np.random.Philox(key=np.array([SEED, int.from_bytes(digest[:8])], np.uint64)).random_raw(DRAWS))


def uniform(bits: UInt64[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Numbers in [0, 1) from 64 random bits each."""
    return (bits >> np.uint64(11)) / 2.0**53


def with_typo(sentence: str, word: float, place: float, kind: float) -> str:
    """A letter of a word, never its first, is doubled, left out, exchanged with the next, or hit on the key beside."""
    words = list(WORD.finditer(sentence))
    if not words:
        return sentence
    start, end = words[int(word * len(words))].span()
    at = start + 1 + int(place * (end - start - 2))  # neither the first letter nor the last
    before, letter, following, after = sentence[:at], sentence[at], sentence[at + 1], sentence[at + 2 :]
    typos = letter + letter + following, following, following + letter, key_beside(letter) + following
    return before + typos[int(kind * len(typos))] + after


def key_beside(letter: str) -> str:
    """The letter on the key to the right, or to the left at the end of a row; without its accent first."""
    base = unicodedata.normalize("NFD", letter)[0]
    for row in KEYBOARD:
        if (index := row.find(base.lower())) >= 0:
            neighbour = row[index + 1] if index + 1 < len(row) else row[index - 1]
            return neighbour.upper() if base.isupper() else neighbour
    return base


def with_punctuation(sentence: str, draw: float) -> str:
    """A third of sentences as they are, a third without any punctuation, a third with the last mark doubled."""
    if draw < 1 / 3:
        return sentence
    without = "".join(c for c in sentence if unicodedata.category(c)[0] != "P").strip()
    if draw < 2 / 3:
        return " ".join(without.split()) or sentence
    return sentence + (sentence[-1] if sentence[-1:] in (".", "!", "?") else "!!" if sentence else "")


def with_case(sentence: str, draw: float) -> str:
    """A quarter of sentences as they are, half without capitals, a quarter in capitals."""
    if draw < 1 / 4:
        return sentence
    return sentence.lower() if draw < 3 / 4 else sentence.upper()
