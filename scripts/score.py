"""Score existing translations with a trained run: python scripts/score.py RUN [key=value …] < PAIRS.

Each line of standard input is a source, a tab and a translation. Standard output has a line of JSON for each, with the
translation's log-probability in nats, including EOS; the score that a search would give it (decoding.normalization,
decoding.length_penalty; no coverage); the perplexity per token; and every token with its log-probability.

  {"line": 1, "log_prob": -0.31, "score": -0.23, "perplexity": 1.17, "tokens": ["␣Gracias", ".", "</s>"],
   "token_log_probs": [-0.2, -0.1, -0.01]}

Standard error has the totals. If translate.py would translate a source sentence by sentence, and both sides have the
same number of sentences, each sentence is scored by itself; every other pair is scored as a whole.
"""

import json
import math
import sys
from dataclasses import asdict
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH
    from cli.process import prepare_process

    prepare_process()

import jax
from tqdm import tqdm

from cli.command_line import parse_command_line
from cli.standard_input import LINES, InputLine, blocks, input_lines
from common.errors import UserError, exit_on_user_error, write_note
from data.corpus.language import describe_languages
from data.pairs import Pairs
from data.sources.table import count_separators
from evaluation.forced_scores import score_translations
from experiment.load_run import MAY_CHANGE, load_run


@exit_on_user_error()
def main() -> None:
    arguments = parse_command_line(__doc__, {"RUN": "a run directory, such as runs/tatoeba-small"}, accepted=MAY_CHANGE)
    run = load_run(Path(arguments.RUN), arguments.overrides, "scoring")
    translator, params = run.translator, run.params  # before any input is read
    lines, tokens, total = 0, 0, 0.0
    with tqdm(unit="line", leave=False, disable=None) as bar:
        for block in blocks(input_lines(), LINES * jax.local_device_count()):
            pairs, problem = read_pairs(block)
            if lines == 0:
                sides = Pairs([source for source, _ in pairs], [target for _, target in pairs])
                for line in describe_languages(run.config.data, sides, "standard input", "exchange its columns"):
                    write_note(f"warning: {line}")
            scores = score_translations(translator, params, pairs, lines + 1) if pairs else []
            for number, score in enumerate(scores, start=lines + 1):
                print(json.dumps({"line": number} | asdict(score), ensure_ascii=False))
            sys.stdout.flush()
            lines, tokens = lines + len(pairs), tokens + sum(len(score.tokens) for score in scores)
            total += sum(score.log_prob for score in scores)
            bar.update(len(pairs))
            if problem:
                raise UserError(f"standard input:{lines + 1}: {problem}")
    if lines:
        sums = f"log-probability {total:.2f}, perplexity {math.exp(-total / tokens):.4f} per token"
        write_note(f"{lines} translations, {tokens} tokens with EOS: {sums}")


def read_pairs(block: list[InputLine]) -> tuple[list[tuple[str, str]], str]:
    """The pairs before the first line that is not a pair, and what is wrong with that line."""
    pairs: list[tuple[str, str]] = []
    for line in block:
        columns = line.text.rstrip("\n").split("\t")
        if line.problem or len(columns) != 2:
            return pairs, line.problem or f"{count_separators(columns)}, not a source, one tab and a translation"
        pairs.append((columns[0], columns[1]))
    return pairs, ""


if __name__ == "__main__":
    main()
