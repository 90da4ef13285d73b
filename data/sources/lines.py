"""Read the lines of a text file strictly: a line that is not text is reported with its number, never repaired."""

import codecs
import contextlib
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from common.errors import UserError
from common.files import LONGEST_LINE, TOO_LONG, bounded_lines
from data.sources.encodings import BinaryFile, advise_encoding, is_utf8, refuse_utf8

IsOpen = Callable[[str], bool]  # whether a record continues after this text
MOST_LINES = 100  # in one record
GZIP = b"\x1f\x8b\x08"  # the first bytes of a gzip file


class Malformed(Exception):
    """A row without a sentence pair; the message says why.

    ``advice`` says what to do about it, if there is anything better than fixing or dropping such rows, and ``for_all``
    what to do about a file in which most rows are like that. ``not_text`` is the file of a line with bytes that are not
    text in the configured encoding.
    """

    def __init__(self, message: str, advice: str = "", for_all: str = "", not_text: Path | None = None) -> None:
        super().__init__(message)
        self._advice, self.for_all, self._not_text = advice, for_all, not_text

    def advice(self) -> str:
        """The advice; advice on an encoding is found only now, because that reads the file."""
        if self._not_text:
            with contextlib.suppress(OSError, EOFError, zlib.error), open_bytes(self._not_text) as file:
                return advise_encoding(file)
        return self._advice


@contextlib.contextmanager
def explain_read_errors(path: Path) -> Iterator[None]:
    """Turn errors in reading a file into UserErrors."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"cannot read {path}: not a whole gzip file ({error})") from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeError as error:  # not of single characters, such as UTF-16 without a byte order mark
        raise UserError(f"cannot read {path} in data.encoding: {error}") from error


def read_byte_lines(path: Path, encoding: str = "utf-8") -> Iterator[bytes]:
    """The lines of a file as UTF-8 without a byte order mark, split at line feeds; .gz files are decompressed."""
    with explain_read_errors(path), open_bytes(path) as file:
        if path.suffix.lower() != ".gz" and file.peek(3).startswith(GZIP):
            raise UserError(f"{path}:1: this is gzip; its name must end in .gz")
        lines = bounded_lines(file.readline, b"\n") if is_utf8(encoding) else transcode(path, encoding, file)
        if first := next(iter(lines), b"").removeprefix(codecs.BOM_UTF8):
            yield first
        yield from lines


def join_lines(lines: Iterable[bytes], first: int, is_open: IsOpen) -> Iterator[tuple[int, bytes]]:
    """The number of the first line of each record, and its lines; a record continues while its text ``is_open``.

    A record that stays open for MOST_LINES lines becomes just its first, so that a stray quotation mark loses no lines.
    """
    rest, ahead, number = iter(lines), list[bytes](), first

    def is_whole(size: int) -> bool:
        ahead.extend(islice(rest, max(0, size - len(ahead))))
        record = b"".join(ahead[:size])
        return len(record) > LONGEST_LINE or not is_open(record.decode(errors="replace").rstrip("\r\n"))

    while ahead or (ahead := [*islice(rest, 1)]):
        size = next(filter(is_whole, range(1, MOST_LINES + 1)), 1)
        yield number, b"".join(without_end(line) + b"\n" for line in ahead[:size])
        del ahead[:size]
        number += size


def without_end(line: bytes) -> bytes:
    """A line without its LF or CRLF; the last line of a file may have neither."""
    return line.removesuffix(b"\n").removesuffix(b"\r")


def open_bytes(path: Path) -> BinaryFile:
    return gzip.open(path) if path.suffix.lower() == ".gz" else open(path, "rb")


def transcode(path: Path, encoding: str, file: BinaryFile) -> Iterator[bytes]:
    """The file's lines as UTF-8; bytes that do not encode text become U+FFFD, which ``decode_line`` finds."""
    refuse_utf8(path, encoding, file)
    file.seek(0)
    for line in bounded_lines(io.TextIOWrapper(file, encoding, errors="replace", newline="\n").readline, "\n"):
        yield line.encode(errors="surrogatepass")


def decode_line(line: bytes, path: Path, number: int, encoding: str) -> str:
    """The text of a line, without its end; Malformed if it is not text in the encoding."""
    body, place = without_end(line), f"{path}:{number}"
    if len(body) > LONGEST_LINE:
        raise Malformed(f"{place}: {TOO_LONG}")
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"{place}: invalid UTF-8 at byte {error.start + 1} of the line", not_text=path) from None
    if "\0" in text:
        raise Malformed(f"{place}: a NUL character in the line; remove it", not_text=path)
    if "\r" in text:
        problem = f"{place}: a carriage return inside the line; end lines with LF or CRLF"
        raise Malformed(problem, for_all="If it ends all lines, save the file with other line endings")
    if "\ufffd" in text and not is_utf8(encoding):
        character = text.index("\ufffd") + 1
        raise Malformed(f"{place}: invalid {encoding} at character {character} of the line", not_text=path)
    return text
