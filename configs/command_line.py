"""The command line that every program here shares: what to work on, then ``key=value`` overrides."""

import argparse

from configs.keys import describe_keys


def command_line(description: str, positional: str, positional_help: str) -> tuple[str, list[str]]:
    """Parse ``PROGRAM POSITIONAL [key=value …]``; ``--help`` lists every key."""
    (value,), overrides = command_line_of_several(description, {positional: positional_help})
    return value, overrides


def command_line_of_several(description: str, positionals: dict[str, str]) -> tuple[list[str], list[str]]:
    """Parse ``PROGRAM POSITIONAL … [key=value …]``; ``positionals`` has the help of each by its name."""
    parser = argparse.ArgumentParser(
        description=description,
        epilog=describe_keys(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for name, explanation in positionals.items():
        parser.add_argument(name, help=explanation)
    parser.add_argument("overrides", metavar="key=value", nargs="*", help="values put over the config's, keys below")
    arguments = vars(parser.parse_args())
    return [arguments[name] for name in positionals], arguments["overrides"]
