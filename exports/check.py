"""Whether an exported model is the run's: the other library is asked in a process of its own."""

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

TIE = 1e-4  # nats; translations whose scores differ by less are equally good


@dataclass(frozen=True)
class Check:
    """What the other library computes of some held-out sentences, beside what the run computes."""

    library: str
    sentences: int
    log_prob_difference: float  # the greatest of a token, in nats, under teacher forcing
    same_tokens: int  # sources that both encode alike
    same_translations: int
    ties: int  # other translations with a score that is the same within TIE

    def lines(self) -> list[str]:
        """The figures for a reader."""
        others = self.sentences - self.same_translations
        return [
            f"{self.library}, beside this run in float32, on {self.sentences} held-out sentences:",
            f"log-probabilities of a token differ by at most {self.log_prob_difference:.1e} nats",
            f"{self.same_tokens} sources are encoded alike",
            f"{self.same_translations} translations are the same"
            + (f", and of the {others} others {self.ties} are as good, within {TIE} nats" if others else ""),
        ]


PROGRAM = Path(__file__).parent / "programs" / "check.py"


def check(folder: Path, translator: Translator, params: Ensemble, lines: Sequence[str]) -> Check:
    """Translate lines, none empty, here and there, and score those of here in both; UserError if the library fails."""
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
    """The answers of the exported program, which must find the other library where this process runs."""
    command = [sys.executable, str(PROGRAM), str(folder)]
    done = subprocess.run(command, input=json.dumps(questions), capture_output=True, text=True, check=False)
    if done.returncode:
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no message")
        raise UserError(f"the exported model cannot be checked: its program ended with {last}")
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers
