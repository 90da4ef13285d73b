"""Text from standard input."""

from collections.abc import Iterable, Iterator

from common.errors import UserError


def decode_lines(lines: Iterable[bytes]) -> Iterator[str]:
    """Decode lines that end at line feeds only; UserError names a line that is not UTF-8."""
    for number, line in enumerate(lines, start=1):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise UserError(f"standard input:{number}: invalid UTF-8 at byte {error.start + 1} of the line") from None
