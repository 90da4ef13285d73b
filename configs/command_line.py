"""The command line that every program here shares: one thing to work on, then ``key=value`` overrides."""

import argparse

from configs.keys import describe_keys


def command_line(description: str, positional: str, positional_help: str) -> tuple[str, list[str]]:
    """Parse ``PROGRAM POSITIONAL [key=value …]``; ``--help`` lists every key."""
    parser = argparse.ArgumentParser(
        description=description,
        epilog=describe_keys(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("positional", metavar=positional, help=positional_help)
    parser.add_argument("overrides", metavar="key=value", nargs="*", help="values put over the config's, keys below")
    arguments = parser.parse_args()
    return arguments.positional, arguments.overrides
