"""Translate standard input to standard output, line by line: python scripts/translate.py RUN [key=value …].

Every line of input gives one line of output, in order, while later lines are still being read; an empty line stays
empty. A line too long for the model is translated in pieces, cut at sentence ends, with a note on standard error. At a
terminal, or with --interactive, each line is translated as soon as it is typed. With --nbest, --scores or --alignment,
each line of output is JSON:

  {"line": 1, "source": "Thank you.", "translations": [{"text": "Gracias.", "log_prob": -0.31, "score": -0.23, …}, …]}

The search is set by config keys: decoding.beam_size=1 is greedy, decoding.search=sample draws at random,
decoding.mbr=chrf chooses by minimum Bayes risk, decoding.ensemble=[RUN,…] combines several runs,
decoding.checkpoint=NAME selects another checkpoint.
"""

import argparse
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cli.process import prepare_process

if __name__ == "__main__":
    prepare_process()

from tqdm import tqdm

from cli.command_line import decode_lines, parse_command_line
from cli.load_run import LoadedRun, load_run
from common.errors import UserError, exit_on_user_error
from data.pairs import normalise
from evaluation.forced_scores import align
from evaluation.translate import Translation

LINES, CHARACTERS = 512, 100_000  # of a block, translated and written together: memory does not grow with the input


def main() -> None:
    run = {"RUN": "a run directory, such as runs/tatoeba-small"}
    arguments = parse_command_line(__doc__, run, add_options)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends this as quietly as any filter
    with exit_on_user_error():
        translate_lines(arguments)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--interactive", action="store_true", help="translate each line at once, as at a terminal")
    parser.add_argument(
        "--nbest", type=int, metavar="N", help="list the N best translations (at most decoding.beam_size), or N samples"
    )
    parser.add_argument("--scores", action="store_true", help="add each translation's log-probability and score")
    parser.add_argument(
        "--alignment", action="store_true", help="add the words of both sides, and each target word's source word"
    )
    parser.add_argument("--prefix", metavar="TEXT", default="", help="begin every translation with this text")


def translate_lines(arguments: argparse.Namespace) -> None:
    """Translate standard input in blocks, or line by line for somebody who is typing."""
    run = load_run(Path(arguments.RUN), arguments.overrides, "translating")
    check_options(arguments, run)
    typing, number = sys.stdin.isatty(), 1
    at_once = arguments.interactive or typing
    with tqdm(unit="line", leave=False, disable=True if at_once else None) as bar:
        for block in blocks(decode_lines(typed() if typing else sys.stdin.buffer), 1 if at_once else LINES):
            found = translate_block(run, block, arguments, bar)
            for line, (best, *_) in enumerate(found, start=number):
                if len(best.sources) > 1:
                    tqdm.write(f"line {line} is too long and was translated in {len(best.sources)} pieces", sys.stderr)
            output = "".join(f"{line}\n" for line in format_lines(found, block, number, run, arguments))
            sys.stdout.buffer.write(output.encode())
            sys.stdout.buffer.flush()
            number += len(block)


def check_options(arguments: argparse.Namespace, run: LoadedRun) -> None:
    nbest, decoding = arguments.nbest, run.config.decoding
    if nbest is not None and (nbest < 1 or (not decoding.draws and nbest > decoding.beam_size)):
        raise UserError(f"--nbest {nbest} must be from 1 to decoding.beam_size, {decoding.beam_size}")
    if nbest is not None and decoding.mbr != "none":
        raise UserError("--nbest lists all candidates, decoding.mbr chooses one of them: leave one of them out")


def translate_block(
    run: LoadedRun, block: list[str], arguments: argparse.Namespace, bar: Any
) -> list[list[Translation]]:
    """The best translation of each line, or several with different texts."""
    translator, options = run.translator, {"prefix": arguments.prefix, "on_progress": bar.update}
    if arguments.nbest is None:
        return [[best] for best in translator.translate(run.params, block, **options)]
    found = translator.candidates(run.params, block, arguments.nbest, **options)
    return found if translator.decoding.draws else list(map(distinct, found))


def distinct(translations: list[Translation]) -> list[Translation]:
    """The best translation of each text: different tokens can spell the same text."""
    best: dict[str, Translation] = {}
    for translation in translations:
        best.setdefault(translation.text, translation)
    return list(best.values())


def format_lines(
    found: list[list[Translation]], block: list[str], first: int, run: LoadedRun, arguments: argparse.Namespace
) -> Iterator[str]:
    """A line of output for each line: its text, or JSON if an option asks for more. ``first`` is the first's number."""
    for number, (line, translations) in enumerate(zip(block, found, strict=True), start=first):
        if arguments.nbest is None and not arguments.scores and not arguments.alignment:
            yield translations[0].text
        else:
            facts = {"line": number, "source": normalise(line)} | describe(translations, run, arguments.alignment)
            yield json.dumps(facts, ensure_ascii=False)


def describe(translations: list[Translation], run: LoadedRun, with_alignment: bool) -> dict[str, Any]:
    facts: list[dict[str, Any]] = [
        {"text": each.text, "log_prob": each.log_prob, "score": each.score, "ended": each.ended}
        for each in translations
    ]
    if not with_alignment:
        return {"translations": facts}
    aligned = align(run.translator, run.params, translations)
    for each, words in zip(facts, aligned, strict=True):
        each |= {"words": words.target_words, "alignment": words.alignment}
    return {"source_words": aligned[0].source_words, "translations": facts}


def typed() -> Iterator[bytes]:
    """Lines from a terminal until Ctrl-D, with a prompt unless the output goes into a file."""
    import readline  # noqa: F401  (gives input() the arrow keys and a history)

    while True:
        try:
            yield input("> " if sys.stdout.isatty() else "").encode(errors="surrogateescape")
        except EOFError:
            return


def blocks(lines: Iterator[str], longest: int) -> Iterator[list[str]]:
    """Blocks of ``longest`` lines, fewer if they are long; the lines before an unreadable one are still yielded."""
    block: list[str] = []
    try:
        for line in lines:
            block.append(line)
            if len(block) == longest or sum(map(len, block)) >= CHARACTERS:
                yield block
                block = []
    except UserError:
        yield block
        raise
    yield block


if __name__ == "__main__":
    main()
