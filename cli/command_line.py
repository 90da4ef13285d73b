"""Command lines: ``key=value`` overrides of a config, and options."""

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from common.errors import UserError
from configs.keys import describe_keys

AddOptions = Callable[[argparse.ArgumentParser], object]


class Parser(argparse.ArgumentParser):
    """A parser for options alone: it keeps the layout of its texts and raises UserError for mistakes."""

    def __init__(self, description: str | None, epilog: str | None = None, **options: Any) -> None:
        layout = argparse.RawDescriptionHelpFormatter
        super().__init__(description=description, epilog=epilog, formatter_class=layout, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; --help shows an example")


def parse_command_line(
    description: str | None, positionals: dict[str, str], add_options: AddOptions | None = None
) -> argparse.Namespace:
    """Parse ``PROGRAM POSITIONAL … [key=value …]``, with options anywhere in between; ``--help`` lists every key.

    ``positionals`` maps names to help texts; ``add_options`` calls ``add_argument`` for each option. The result has
    every positional under its name (``arguments.RUN``), the options under theirs, and ``overrides``.
    """
    parser = argparse.ArgumentParser(
        description=description,
        epilog=describe_keys(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for name, explanation in positionals.items():
        parser.add_argument(name, help=explanation)
    parser.add_argument("overrides", metavar="key=value", nargs="*", help="override values of the config, keys below")
    if add_options:
        add_options(parser)
    return parser.parse_intermixed_args()  # parse_args rejects an override that follows an option
