"""Reading text that a pipe or a person hands to a program."""

from collections.abc import Iterable, Iterator

from common.errors import UserError


def decoded(lines: Iterable[bytes]) -> Iterator[str]:
    """Lines of standard input, which end at line feeds only, as text; UserError names a line that is not UTF-8."""
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise UserError(f"standard input:{number}: invalid UTF-8 at byte {error.start + 1} of the line") from None
