"""Noise as people type: a typo, no capitals or only capitals, no punctuation or too much of it.

A model that is trained on noisy sources beside clean ones learns to read both (Belinkov and Bisk 2018, section 6);
``eval.py --robust`` measures how much noise lowers a model's scores.
"""

import re
import unicodedata
from hashlib import sha256

import numpy as np
from jaxtyping import Float, UInt64

from data.pairs import Pairs, normalise

DRAWS = 5  # uniform numbers that decide a sentence's noise
SEED = 1  # for noised test sets: a score must not depend on the run
WORD = re.compile(r"[^\W\d_]{4,}")  # a typo in a shorter word often gives another word
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def noised(sentence: str, draws: Float[np.ndarray, " 5"]) -> str:
    """Add noise by five numbers in [0, 1): a typo if a word has four letters, and changed case and punctuation."""
    word, place, kind, punctuation, case = draws.tolist()
    return normalise(with_case(with_punctuation(with_typo(sentence, word, place, kind), punctuation), case))


def noised_pairs(pairs: Pairs) -> Pairs:
    """Add noise to the sources of a held-out set. Equal sources stay equal, so each keeps all of its references."""
    return Pairs([noised(source, _draws_of(source)) for source in pairs.sources], pairs.targets)


def _draws_of(sentence: str) -> Float[np.ndarray, " 5"]:
    digest = sha256(sentence.encode(errors="surrogatepass")).digest()
    return uniform(np.random.Philox(key=np.array([SEED, int.from_bytes(digest[:8])], np.uint64)).random_raw(DRAWS))


def uniform(bits: UInt64[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Numbers in [0, 1), each from 64 random bits."""
    return (bits >> np.uint64(11)) / 2.0**53


def with_typo(sentence: str, word: float, place: float, kind: float) -> str:
    """Double a letter of a word, drop it, swap it with the next, or hit the key beside it; never the first letter."""
    words = list(WORD.finditer(sentence))
    if not words:
        return sentence
    start, end = words[int(word * len(words))].span()
    at = start + 1 + int(place * (end - start - 2))  # neither the first letter nor the last
    before, letter, following, after = sentence[:at], sentence[at], sentence[at + 1], sentence[at + 2 :]
    typos = letter + letter + following, following, following + letter, key_beside(letter) + following
    return before + typos[int(kind * len(typos))] + after


def key_beside(letter: str) -> str:
    """The letter on the key to the right, or to the left at the end of a row; accents are removed first."""
    base = unicodedata.normalize("NFD", letter)[0]
    for row in KEYBOARD:
        if (index := row.find(base.lower())) >= 0:
            neighbour = row[index + 1] if index + 1 < len(row) else row[index - 1]
            return neighbour.upper() if base.isupper() else neighbour
    return base


def with_punctuation(sentence: str, draw: float) -> str:
    """Keep a third of sentences, strip all punctuation from a third, and double the last mark of a third."""
    if draw < 1 / 3:
        return sentence
    without = "".join(c for c in sentence if unicodedata.category(c)[0] != "P").strip()
    if draw < 2 / 3:
        return " ".join(without.split()) or sentence
    return sentence + (sentence[-1] if sentence[-1:] in (".", "!", "?") else "!!" if sentence else "")


def with_case(sentence: str, draw: float) -> str:
    """Keep a quarter of sentences, lower-case half of them, and put a quarter in capitals."""
    if draw < 1 / 4:
        return sentence
    return sentence.lower() if draw < 3 / 4 else sentence.upper()
