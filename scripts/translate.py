"""Translate standard input to standard output, a line for a line: python scripts/translate.py RUN [key=value …].

Lines come out in their order while others are still being read; empty ones stay empty. A line that is too long for the
model is translated in pieces, cut at sentence ends, and standard error says so. At a terminal, or with --interactive,
each line is translated as soon as it is typed. With --nbest, --scores or --alignment, a line of output is JSON:

  {"line": 1, "source": "Thank you.", "translations": [{"text": "Gracias.", "log_prob": -0.31, "score": -0.23, …}, …]}

How translations are searched is config: decoding.beam_size=1 is greedy, decoding.search=sample draws at random,
decoding.mbr=chrf chooses by minimum Bayes risk, decoding.ensemble=[RUN,…] asks several runs, decoding.checkpoint=NAME
takes another checkpoint.
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

from cli.command_line import parse_command_line
from cli.load_run import LoadedRun, load_run
from cli.stdin import decode_lines
from common.errors import UserError, exit_on_user_error
from data.pairs import normalise
from evaluation.forced_scores import align
from evaluation.translate import Translation

LINES, CHARACTERS = 512, 100_000  # read, translated and written together: memory does not grow with the input


def main() -> None:
    run = {"RUN": "a run directory, such as runs/tatoeba-small"}
    arguments = parse_command_line(__doc__, run, add_options)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends this as quietly as any filter
    with exit_on_user_error():
        translate_lines(arguments)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--interactive", action="store_true", help="translate each line at once, as at a terminal")
    parser.add_argument(
        "--nbest", type=int, metavar="N", help="the N best translations (at most decoding.beam_size), or samples"
    )
    parser.add_argument(
        "--scores", action="store_true", help="log-probability (EOS included) and score of each translation"
    )
    parser.add_argument(
        "--alignment", action="store_true", help="the words of both sides, and from which source word each takes most"
    )
    parser.add_argument("--prefix", metavar="TEXT", default="", help="how every translation begins")


def translate_lines(arguments: argparse.Namespace) -> None:
    """Translate in blocks, or each line at once for someone who is typing."""
    trained = load_run(Path(arguments.RUN), arguments.overrides, "translating")
    refuse_impossible(arguments, trained)
    at_once = arguments.interactive or sys.stdin.isatty()
    number = 1
    with tqdm(unit="line", leave=False, disable=True if at_once else None) as bar:
        for block in blocks(decode_lines(typed() if sys.stdin.isatty() else sys.stdin.buffer), 1 if at_once else LINES):
            found = translate_block(trained, block, arguments, bar)
            tell_of_pieces(found, number)
            write(found, block, number, trained, arguments)
            number += len(block)


def refuse_impossible(arguments: argparse.Namespace, trained: LoadedRun) -> None:
    """UserError for options that the run's search settings cannot serve."""
    decoding = trained.config.decoding
    if arguments.nbest is None:
        return
    if arguments.nbest < 1 or (decoding.search == "beam" and arguments.nbest > decoding.beam_size):
        raise UserError(f"--nbest {arguments.nbest} must be from 1 to decoding.beam_size, {decoding.beam_size}")
    if decoding.mbr != "none":
        raise UserError("--nbest lists what a search finds, and decoding.mbr chooses one of it: leave one of them out")


def translate_block(
    trained: LoadedRun, block: list[str], arguments: argparse.Namespace, bar: Any
) -> list[list[Translation]]:
    """Of each line, its best translation, or several that read differently."""
    translator, options = trained.translator, {"prefix": arguments.prefix, "advance": bar.update}
    if arguments.nbest is None:
        return [[best] for best in translator.translate(trained.params, block, **options)]
    found = translator.candidates(trained.params, block, arguments.nbest, **options)
    return found if translator.decoding.search == "sample" else [distinct(of_line) for of_line in found]


def distinct(translations: list[Translation]) -> list[Translation]:
    """The best of those that read alike: the same text can be spelled by different tokens."""
    best: dict[str, Translation] = {}
    for each in translations:
        best.setdefault(each.text, each)
    return list(best.values())


def tell_of_pieces(found: list[list[Translation]], first_number: int) -> None:
    for number, (best, *_) in enumerate(found, start=first_number):
        if len(best.sources) > 1:
            tqdm.write(f"line {number} is too long and was translated in {len(best.sources)} pieces", file=sys.stderr)


def write(
    found: list[list[Translation]],
    block: list[str],
    first_number: int,
    trained: LoadedRun,
    arguments: argparse.Namespace,
) -> None:
    """A line for a line: text, or JSON if more than the text was asked for."""
    if arguments.nbest is None and not arguments.scores and not arguments.alignment:
        lines = [best.text for best, *_ in found]
    else:
        facts = (facts_of(each, trained, arguments.alignment) for each in found)
        head = ({"line": number, "source": normalise(line)} for number, line in enumerate(block, start=first_number))
        lines = [json.dumps(each | more, ensure_ascii=False) for each, more in zip(head, facts, strict=True)]
    sys.stdout.buffer.write("".join(f"{line}\n" for line in lines).encode())
    sys.stdout.buffer.flush()


def facts_of(translations: list[Translation], trained: LoadedRun, with_alignment: bool) -> dict[str, Any]:
    """What JSON tells of a line."""
    told: list[dict[str, Any]] = [
        {"text": each.text, "log_prob": each.log_prob, "score": each.score, "ended": each.ended}
        for each in translations
    ]
    if not with_alignment:
        return {"translations": told}
    aligned = align(trained.translator, trained.params, translations)
    for each, words in zip(told, aligned, strict=True):
        each |= {"words": words.target_words, "alignment": words.alignment}
    return {"source_words": aligned[0].source_words, "translations": told}


def typed() -> Iterator[bytes]:
    """Lines from a terminal, with a prompt where that does not go into a file; Ctrl-D ends them."""
    import readline  # noqa: F401  (input() then knows the arrow keys and what was typed before)

    while True:
        try:
            yield input("> " if sys.stdout.isatty() else "").encode(errors="surrogateescape")
        except EOFError:
            return


def blocks(lines: Iterator[str], longest: int) -> Iterator[list[str]]:
    """The lines in blocks of so many, fewer if they are long; those before one that cannot be read come first."""
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
