"""Check that an exported model matches the run, by running the other library in a separate process."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.special_tokens import EOS
from data.pairs import normalise
from evaluation.forced_scores import score_tokens
from evaluation.translate import Ensemble, Translator

TIE = 1e-4  # nats; translations with scores that differ by less are equally good


@dataclass(frozen=True)
class Check:
    """A comparison of the other library with the run on some held-out sentences."""

    library: str
    sentences: int
    log_prob_difference: float  # the largest for any token, in nats, under teacher forcing
    same_tokens: int  # sources that both encode to the same tokens
    same_translations: int
    ties: int  # different translations with the same score within TIE

    def lines(self) -> list[str]:
        """The figures as lines of text."""
        others = self.sentences - self.same_translations
        return [
            f"{self.library}, compared with this run in float32, on {self.sentences} held-out sentences:",
            f"log-probabilities of a token differ by at most {self.log_prob_difference:.1e} nats",
            f"{self.same_tokens} sources are encoded to the same tokens",
            f"{self.same_translations} translations are the same"
            + (f"; of the {others} others, {self.ties} are equally good, within {TIE} nats" if others else ""),
        ]


PROGRAM = Path(__file__).parent / "programs" / "check.py"


def check(folder: Path, translator: Translator, params: Ensemble, lines: Sequence[str]) -> Check:
    """Translate non-empty lines, and score the run's translations, with both; UserError if the library fails."""
    vocabulary = translator.tokenizer.vocabulary()
    ids = {piece: index for index, piece in enumerate(vocabulary)}
    sources = translator.encode_sources([normalise(line) for line in lines])
    found = [best for [best, *_] in translator.search(params, sources, 1)]
    pairs = [(source, each.tokens) for source, each in zip(sources, found, strict=True)]
    spelled = [[[vocabulary[token] for token in tokens] for tokens in side] for side in zip(*pairs, strict=True)]
    answers = ask(folder, {"sources": spelled[0], "targets": spelled[1], "lines": list(lines)})
    theirs = [[ids[piece] for piece in pieces if ids[piece] != EOS] for pieces in answers["pieces"]]
    here = [each.token_log_probs for each in score_tokens(translator, params, pairs)]
    tokens = [both for each in zip(here, answers["log_probs"], strict=True) for both in zip(*each, strict=True)]
    there = list(zip(sources, theirs, strict=True))
    texts = translator.spell([each.tokens for each in found])
    differing = [index for index, text in enumerate(texts) if text != answers["translations"][index]]
    scores = [each.score for each in score_tokens(translator, params, [there[index] for index in differing])]
    difference = max(abs(one - other) for one, other in tokens)
    alike = sum(source == encoded for source, encoded in zip(spelled[0], answers["encoded"], strict=True))
    ties = sum(abs(score - found[index].score) < TIE for score, index in zip(scores, differing, strict=True))
    return Check(answers["library"], len(lines), difference, alike, len(lines) - len(differing), ties)


def ask(folder: Path, questions: dict[str, Any]) -> dict[str, Any]:
    """The answers of the exported program, which must be able to import the other library in this environment."""
    command = [sys.executable, str(PROGRAM), str(folder)]
    done = subprocess.run(command, input=json.dumps(questions), capture_output=True, text=True, check=False)
    if done.returncode:
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no message")
        raise UserError(f"the exported model cannot be checked: its program ended with {last}")
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers
