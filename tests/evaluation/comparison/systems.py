"""Test sets whose translations are references with words replaced at random."""

from dataclasses import replace

import numpy as np

from evaluation.sentences import Sentence

WORDS = "uno dos tres cuatro cinco seis siete ocho nueve diez once doce".split()


def sentence(source, references, translation):
    return Sentence(source, references, translation, translation.split(), -1.0, -0.5, True, 1)


def drawn_set(size, seed=0):
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, rng.integers(4, 12))) for _ in range(size)]
    return [sentence(f"{number} {text}", [text], text) for number, text in enumerate(texts)]


def noisy(sentences, rate, seed):
    """Each word of each translation is another one with this probability."""
    rng = np.random.default_rng(seed)

    def spoil(text):
        return " ".join(str(rng.choice(WORDS)) if rng.random() < rate else word for word in text.split())

    return [replace(each, translation=spoil(each.references[0])) for each in sentences]
