"""Score existing translations with a trained run: python scripts/score.py RUN [key=value …] < PAIRS.

Each line of standard input is a source, a tab and a translation. Standard output has a line of JSON for each: the
log-probability of the translation in nats, EOS included; the score that a search would give it (decoding.normalization,
decoding.length_penalty; no coverage); the perplexity per token; and every token with its log-probability.

  {"line": 1, "log_prob": -0.31, "score": -0.23, "perplexity": 1.17, "tokens": ["␣Gracias", ".", "</s>"],
   "token_log_probs": [-0.2, -0.1, -0.01]}

Standard error has the totals. Long pairs are scored whole.
"""

import json
import math
import signal
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from cli.process import prepare_process

if __name__ == "__main__":
    prepare_process()

from tqdm import tqdm

from cli.command_line import decode_lines, parse_command_line
from cli.load_run import load_run
from common.errors import UserError, exit_on_user_error
from evaluation.forced_scores import score_translations

LINES = 512  # read, scored and written together


@exit_on_user_error()
def main() -> None:
    arguments = parse_command_line(__doc__, {"RUN": "a run directory, such as runs/tatoeba-small"})
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends this as quietly as any filter
    run = load_run(Path(arguments.RUN), arguments.overrides, "scoring")
    pairs = read_pairs(sys.stdin.buffer)
    lines, tokens, total = 0, 0, 0.0
    with tqdm(unit="line", leave=False, disable=None) as bar:
        while block := list(islice(pairs, LINES)):
            scores = score_translations(run.translator, run.params, block)
            facts = [{"line": number} | asdict(score) for number, score in enumerate(scores, start=lines + 1)]
            print("\n".join(json.dumps(each, ensure_ascii=False) for each in facts), flush=True)
            lines, tokens = lines + len(block), tokens + sum(len(score.tokens) for score in scores)
            total += sum(score.log_prob for score in scores)
            bar.update(len(block))
    if lines:
        sums = f"log-probability {total:.2f}, perplexity {math.exp(-total / tokens):.4f} per token"
        print(f"{lines} translations, {tokens} tokens with EOS: {sums}", file=sys.stderr)


def read_pairs(lines: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Sources and translations; UserError for a line that is not UTF-8 or does not have exactly one tab."""
    for number, line in enumerate(decode_lines(lines), start=1):
        columns = line.rstrip("\n").split("\t")
        if len(columns) != 2:
            raise UserError(f"standard input:{number}: {len(columns)} columns, not a source, a tab and a translation")
        yield columns[0], columns[1]


if __name__ == "__main__":
    main()
