"""Translate standard input to standard output, line by line: python scripts/translate.py RUN [key=value …].

Every line of input gives one line of output, in order, while later lines are still being read; an empty line stays
empty. A line is translated sentence by sentence, unless the model was trained on lines like it; a sentence that is too
long for it is cut, with a note on standard error. At a terminal, or with --interactive, each line is translated as soon
as it is typed; :help and :quit work at a terminal. With --nbest, --scores or --alignment, each line of output is JSON:

  {"line": 1, "source": "Thank you.", "translations": [{"text": "Gracias.", "log_prob": -0.31, "score": -0.23, …}, …]}

Numbers missing from a translation, and words that it repeats, are reported on standard error, and as "doubts" in JSON.

With --format=text, markdown, html or csv, standard input is a document. Its text is translated, and everything else
stays as it is: paragraphs, tags, links, addresses, code, tables, entities. In CSV, --columns names the columns of text.

At a line that cannot be translated, such as one that is not UTF-8, the program writes the lines before it and stops.
With --on-error=blank, the line's number and the reason go to standard error, its line of output is blank (as JSON, it
has "line" and "error"), the other lines are translated, and the exit code is 2.

Config keys control the search: decoding.beam_size=1 is greedy, decoding.search=sample draws at random,
decoding.mbr=chrf chooses by minimum Bayes risk, decoding.ensemble=[RUN,…] combines several runs, and
decoding.checkpoint=NAME selects another checkpoint.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH
    from cli.process import prepare_process

    prepare_process()

import jax
from tqdm import tqdm

from cli.command_line import parse_command_line
from cli.standard_input import LINES, InputLine, blocks, input_lines, read_lines, read_terminal
from common.errors import UserError, exit_on_user_error, write_note
from common.text import in_brief
from data.long_lines import split_sentences
from data.pairs import normalise
from evaluation.documents.table import translate_table
from evaluation.documents.translate import FORMATS, translate_document
from evaluation.doubts import find_doubts
from evaluation.forced_scores import align
from evaluation.n_best import check_count, n_best
from evaluation.translate import Translation, Translator, read
from experiment.load_run import MAY_CHANGE, LoadedRun, load_run

CSV = "csv"
GREETING = "{} translates from {} to {}: type a sentence and Enter. :help says more, :quit or Ctrl-D ends."
HELP = """Each line is translated as soon as you press Enter. It may have several sentences; an empty line stays empty.
The arrow keys bring earlier lines back. :help shows this, :quit or Ctrl-D ends.
To translate a file, leave: scripts/translate.py RUN < FILE. Its --help lists what else it does, such as --nbest 3."""

Found = list[list[Translation]]  # for each line: several with --nbest, none if it cannot be translated


@exit_on_user_error()
def main() -> None:
    run = {"RUN": "a run directory, such as runs/tatoeba-small"}
    arguments = parse_command_line(__doc__, run, add_options, MAY_CHANGE)
    if arguments.columns and arguments.format != CSV:
        raise UserError("--columns names the columns of a table: add --format csv")
    translate_file(arguments) if arguments.format else translate_lines(arguments)


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--interactive", action="store_true", help="translate each line at once, as at a terminal")
    help = "list the N best translations (at most decoding.beam_size), or N samples"
    add("--nbest", type=int, metavar="N", help=help)
    add("--scores", action="store_true", help="add each translation's log-probability and score")
    add("--alignment", action="store_true", help="add the words of both sides, and each target word's source word")
    help = "standard input is a document: translate its text, and keep everything else"
    add("--format", choices=(*FORMATS, CSV), help=help)
    help = "the columns to translate with --format csv, by name in the header"
    add("--columns", metavar="NAME,…", default="", help=help)
    add("--prefix", metavar="TEXT", default="", help="begin every translation with this text")
    help = "at a line that cannot be translated: stop (the default), or leave it blank and continue"
    add("--on-error", choices=["stop", "blank"], default="stop", help=help)


def translate_file(arguments: argparse.Namespace) -> None:
    """Translate standard input as one document, and write it whole."""
    given = vars(arguments) | {"on-error": arguments.on_error == "blank", "nbest": arguments.nbest is not None}
    for option in ("nbest", "scores", "alignment", "prefix", "interactive", "on-error"):
        if given[option]:
            raise UserError(f"--format is for a whole document, and --{option} is for lines: leave one of them out")
    run = load_run(Path(arguments.RUN), arguments.overrides, "translating")
    translator = run.translator
    lines = list(input_lines())
    if bad := next((line for line in lines if line.problem), None):
        raise UserError(f"line {bad.number} of the document: {bad.problem}")
    document = "".join(line.text for line in lines)
    with tqdm(unit="sentence", leave=False, disable=None) as bar:
        if arguments.format == CSV:
            columns = list(filter(None, arguments.columns.split(",")))
            found, texts = translate_table(translator, run.params, document, columns, bar.update)
        else:
            found, texts = translate_document(translator, run.params, document, arguments.format, bar.update)
    for source, translation in texts:
        for doubt in find_doubts(source, translation):
            write_note(f'"{in_brief(" ".join(source.split()), 60)}": {doubt}')
    write_result(found)


def translate_lines(arguments: argparse.Namespace) -> None:
    """Translate standard input in blocks, or line by line if someone is typing."""
    run = load_run(Path(arguments.RUN), arguments.overrides, "translating")
    check_options(arguments, run)
    translator = run.translator  # loaded before the first line is read
    typing, number, failed = sys.stdin.isatty(), 0, 0
    at_once = arguments.interactive or typing
    longest = 1 if at_once else LINES * jax.local_device_count()
    if typing:
        write_note(GREETING.format(run.folder, run.config.data.source, run.config.data.target))
    with tqdm(unit="line", leave=False, disable=True if at_once else None) as bar:
        for block in blocks(read_lines(read_terminal(HELP)) if typing else input_lines(), longest):
            problems = translator.find_problems([line.text for line in block], arguments.prefix)
            checked = [line._replace(problem=line.problem or each) for line, each in zip(block, problems, strict=True)]
            bad = [line for line in checked if line.problem]
            if bad and arguments.on_error == "stop":
                translate_block(checked[: checked.index(bad[0])], run, arguments, bar)
                raise UserError(f"line {bad[0].number}: {bad[0].problem}")
            translate_block(checked, run, arguments, bar)
            number, failed = number + len(block), failed + len(bad)
    if failed:
        raise UserError(f"{failed} of {number} lines could not be translated; they are blank, or have an error as JSON")


def check_options(arguments: argparse.Namespace, run: LoadedRun) -> None:
    if arguments.nbest is not None:
        check_count(arguments.nbest, run.config.decoding, "--nbest")
    if any("\ud800" <= letter <= "\udfff" for letter in arguments.prefix):
        raise UserError(f"--prefix must be UTF-8, not {in_brief(arguments.prefix)}")


def translate_block(block: list[InputLine], run: LoadedRun, arguments: argparse.Namespace, bar: Any) -> None:
    """Write a line of output for each line, and notes on standard error."""
    good = iter(search([line.text for line in block if not line.problem], run, arguments, bar))
    found = [[] if line.problem else next(good) for line in block]
    for line, translations in zip(block, found, strict=True):
        for doubt in find_doubts(line.text, translations[0].text) if translations else []:
            write_note(f"line {line.number}: {doubt}")
        if line.problem:
            write_note(f"line {line.number}: {line.problem}")
        elif has_cut(translations[0], line.text, run.translator):
            write_note(f"line {line.number} has a sentence that is too long for the model, which was cut")
    write_result("".join(f"{line}\n" for line in format_lines(block, found, run, arguments)))


def write_result(text: str) -> None:
    """Write the text unchanged, in UTF-8, to a file or a pipe; escape control characters for a terminal."""
    if sys.stdout.isatty():
        print(text, end="", flush=True)
    else:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()


def has_cut(translation: Translation, text: str, translator: Translator) -> bool:
    """Whether the line was translated in more pieces than it has sentences."""
    pieces = len(translation.sources)
    return pieces > 1 and pieces > len(split_sentences(read(text), translator.source))


def search(lines: list[str], run: LoadedRun, arguments: argparse.Namespace, bar: Any) -> Found:
    """The best translation of each line, or several with different texts."""
    translator, prefix = run.translator, arguments.prefix
    if arguments.nbest is None:
        return [[best] for best in translator.translate(run.params, lines, prefix=prefix, on_progress=bar.update)]
    candidates = partial(translator.candidates, run.params, prefix=prefix, on_progress=bar.update)
    if translator.decoding.draws:
        return candidates(lines, arguments.nbest)
    return n_best(candidates, lines, arguments.nbest)


def format_lines(block: list[InputLine], found: Found, run: LoadedRun, arguments: argparse.Namespace) -> Iterator[str]:
    """A line of output for each line: its text, or JSON if an option asks for more."""
    as_text = arguments.nbest is None and not arguments.scores and not arguments.alignment
    for line, translations in zip(block, found, strict=True):
        if as_text:
            yield translations[0].text if translations else ""
            continue
        facts: dict[str, Any] = {"error": line.problem}
        if translations:
            facts = {"source": normalise(line.text)} | describe(translations, run, arguments.alignment)
            for each in facts["translations"]:
                each |= {"doubts": doubts} if (doubts := find_doubts(line.text, each["text"])) else {}
        yield json.dumps({"line": line.number} | facts, ensure_ascii=False)


def describe(translations: list[Translation], run: LoadedRun, with_alignment: bool) -> dict[str, Any]:
    names = "text", "log_prob", "score", "ended"
    facts: list[dict[str, Any]] = [{name: vars(each)[name] for name in names} for each in translations]
    if not with_alignment:
        return {"translations": facts}
    aligned = align(run.translator, run.params, translations)
    for each, words in zip(facts, aligned, strict=True):
        each |= {"words": words.target_words, "alignment": words.alignment}
    return {"source_words": aligned[0].source_words, "translations": facts}


if __name__ == "__main__":
    main()
