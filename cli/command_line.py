"""Command lines: ``key=value`` overrides of a config, options and their numbers."""

import argparse
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from common.errors import UserError, exit_on_user_error
from common.files import write_atomically
from configs.keys import KEYS, describe_keys

LAYOUT = argparse.RawDescriptionHelpFormatter


class Parser(argparse.ArgumentParser):
    """A parser for options without overrides; it keeps the layout of its texts and raises UserError for mistakes."""

    def __init__(self, description: str | None, epilog: str | None = None, **options: Any) -> None:
        super().__init__(description=description, epilog=epilog, formatter_class=LAYOUT, allow_abbrev=False, **options)
        self.color = False  # Python 3.14 would colour the help, in codes that common/streams.py escapes

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; --help shows an example")


def parse_command_line(
    description: str | None,
    positionals: dict[str, str],
    add_options: Callable[[argparse.ArgumentParser], object] | None = None,
    accepted: Collection[str] = KEYS.keys(),
) -> argparse.Namespace:
    """Parse ``PROGRAM POSITIONAL … [key=value …]``, with options anywhere in between; exit with 2 for a mistake.

    ``positionals`` maps names to help texts; ``add_options`` calls ``add_argument`` for each option. ``--help`` lists
    the ``accepted`` keys. The result has every positional (``arguments.RUN``) and every option under its name, and
    ``overrides``.
    """
    usage = " ".join(["%(prog)s", *positionals, "[key=value …]", "[options]"])
    parser = Parser(description, describe_keys(accepted), usage=usage)
    for name, explanation in positionals.items():
        parser.add_argument(name, nargs="?", help=explanation)
    parser.add_argument("overrides", metavar="key=value", nargs="*", help="override values of the config; keys below")
    if add_options:
        add_options(parser)
    with exit_on_user_error():
        arguments = parser.parse_intermixed_args()  # parse_args rejects an override that follows an option
        for name, explanation in positionals.items():
            value = vars(arguments)[name]
            if value is None or value.partition("=")[0] in KEYS:
                parser.error(f"{name} is missing: {explanation}")
    return arguments


@contextmanager
def offer_output(folder: Path) -> Iterator[None]:
    """If files cannot be written to ``folder``, say that the printed results are complete, and suggest ``--output``."""
    try:
        yield
    except (UserError, OSError) as error:
        cause = error.__cause__ if isinstance(error, UserError) else error
        if not isinstance(cause, OSError):
            raise
        reason = cause.strerror or str(cause)
        problem = f"the results above are complete, but cannot be written to {folder}: {reason}"
        raise UserError(f"{problem}; --output FOLDER chooses another place") from error


def write_and_print(path: Path | None, content: str, text: str) -> None:
    """Write a file if ``path`` is given, and print the text even if that fails; then print where the file is."""
    try:
        if path:
            write_atomically(path, content)
    finally:
        print(text)
    if path:
        print(f"\nwritten  {path}")


def add_output(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the option that ``offer_output`` suggests."""
    help = f"folder for the files (default: {default}), for example if the run is read-only"
    parser.add_argument("--output", type=path, metavar="FOLDER", help=help)


def path(text: str) -> Path:
    """The path, with the ``~`` expanded that shells leave in ``--option=~/name``."""
    return Path(os.path.expanduser(text))


def output_file(text: str) -> Path:
    if path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a folder; name a file")
    return path(text)


def positive_integer(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} must be a whole number from 1")
    return int(text)


def positive_integers(text: str) -> list[int]:
    return [positive_integer(part) for part in text.split(",")]


def names_among(known: Sequence[str], text: str) -> list[str]:
    """Parse names separated by commas."""
    if unknown := [name for name in text.split(",") if name not in known]:
        raise argparse.ArgumentTypeError(f"there is no {unknown[0]} here; choose from {','.join(known)}")
    return text.split(",")
