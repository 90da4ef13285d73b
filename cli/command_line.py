"""The command line that every program here shares: what to work on, options, and ``key=value`` overrides."""

import argparse
from collections.abc import Callable
from typing import NoReturn

from common.errors import UserError
from configs.keys import describe_keys

AddOptions = Callable[[argparse.ArgumentParser], object]  # what it returns is not used


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as the user's other mistakes are."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; --help shows an example")


def command_line(description: str, positional: str, positional_help: str) -> tuple[str, list[str]]:
    """Parse ``PROGRAM POSITIONAL [key=value …]``; ``--help`` lists every key."""
    (value,), overrides = command_line_of_several(description, {positional: positional_help})
    return value, overrides


def command_line_of_several(description: str, positionals: dict[str, str]) -> tuple[list[str], list[str]]:
    """Parse ``PROGRAM POSITIONAL … [key=value …]``; ``positionals`` has the help of each by its name."""
    arguments = vars(command_line_with_options(description, positionals, lambda _: None))
    return [arguments[name] for name in positionals], arguments["overrides"]


def command_line_with_options(
    description: str, positionals: dict[str, str], add_options: AddOptions
) -> argparse.Namespace:
    """Parse ``PROGRAM POSITIONAL … [key=value …]`` with options of the program's own anywhere between.

    ``add_options`` calls ``add_argument`` for each of them. The namespace has every positional under its name
    (``arguments.RUN``), the options under theirs, and ``overrides``.
    """
    parser = argparse.ArgumentParser(
        description=description,
        epilog=describe_keys(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for name, explanation in positionals.items():
        parser.add_argument(name, help=explanation)
    parser.add_argument("overrides", metavar="key=value", nargs="*", help="values put over the config's, keys below")
    add_options(parser)
    return parser.parse_intermixed_args()  # plain parsing refuses an override that stands behind an option
