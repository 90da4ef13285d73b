"""How likely a run finds given translations: python scripts/score.py RUN [key=value …] < PAIRS.

Each line of standard input is a source, a tab and a translation. For each, standard output has a line of JSON: the
log-probability of the translation in nats, EOS included, the score that a search would give it (decoding.normalization,
decoding.length_penalty; no coverage), the perplexity per token, and every token with its log-probability.

  {"line": 1, "log_prob": -0.31, "score": -0.23, "perplexity": 1.17, "tokens": ["␣Gracias", ".", "</s>"],
   "token_log_probs": [-0.2, -0.1, -0.01]}

Standard error has the totals. Nothing is cut: a long pair is scored whole.
"""

import json
import math
import signal
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from cli.process import prepare_process

if __name__ == "__main__":
    prepare_process()

import jax.numpy as jnp
from tqdm import tqdm

from cli.command_line import parse_command_line
from cli.load_run import LoadedRun, load_run
from cli.stdin import decode_lines
from common.errors import UserError, exit_on_user_error
from common.special_tokens import EOS
from data.pairs import normalise
from evaluation.forced_scores import Pair, log_probs
from model.decoding.ranking import Ranking

LINES = 512  # read, scored and written together


def main() -> None:
    arguments = parse_command_line(__doc__, {"RUN": "a run directory, such as runs/tatoeba-small"})
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends this as quietly as any filter
    with exit_on_user_error():
        score_lines(load_run(Path(arguments.RUN), arguments.overrides, "scoring"))


def score_lines(trained: LoadedRun) -> None:
    """Score in blocks, then tell the totals."""
    pairs = pairs_of(sys.stdin.buffer)
    lines = tokens = 0
    total = 0.0
    with tqdm(unit="line", leave=False, disable=None) as bar:
        while block := list(islice(pairs, LINES)):
            facts = score_block(trained, block, lines + 1)
            print("\n".join(json.dumps(each, ensure_ascii=False) for each in facts), flush=True)
            lines, tokens = lines + len(block), tokens + sum(len(each["tokens"]) for each in facts)
            total += sum(each["log_prob"] for each in facts)
            bar.update(len(block))
    if lines:
        print(
            f"{lines} translations, {tokens} tokens with EOS: log-probability {total:.2f}, "
            f"perplexity {math.exp(-total / tokens):.4f} per token",
            file=sys.stderr,
        )


def score_block(trained: LoadedRun, block: list[tuple[str, str]], first_number: int) -> list[dict[str, Any]]:
    """What JSON tells of each pair."""
    tokenizer, decoding = trained.translator.tokenizer, trained.config.decoding
    sources, targets = (tokenizer.encode([normalise(text) for text in side]) for side in zip(*block, strict=True))
    pairs: list[Pair] = list(zip(sources, targets, strict=True))
    ranking = Ranking(decoding.normalization, decoding.length_penalty)
    facts = []
    for number, ((_, target), found) in enumerate(
        zip(pairs, log_probs(trained.translator, trained.params, pairs), strict=True), start=first_number
    ):
        total = math.fsum(found)
        facts.append(
            {
                "line": number,
                "log_prob": total,
                "score": total / float(ranking.divisor(jnp.array(len(found)))),
                "perplexity": math.exp(-total / len(found)),
                "tokens": tokenizer.pieces([*target, EOS]),
                "token_log_probs": found,
            }
        )
    return facts


def pairs_of(lines: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Sources and translations; UserError names a line that is not UTF-8 or has not one tab."""
    for number, line in enumerate(decode_lines(lines), start=1):
        columns = line.rstrip("\n").split("\t")
        if len(columns) != 2:
            raise UserError(f"standard input:{number}: {len(columns)} columns, not a source, a tab and a translation")
        yield columns[0], columns[1]


if __name__ == "__main__":
    main()
