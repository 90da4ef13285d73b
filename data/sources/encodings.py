"""Guess the encoding of a text file, and advise what to do if it is not the configured one."""

import codecs
import gzip
import io
import re
from pathlib import Path

from common.errors import UserError

BinaryFile = gzip.GzipFile | io.BufferedReader
SAMPLE = 2**20  # bytes to guess an encoding from
MARKS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
# Letters and signs of western text in cp1252; latin-1 has the same from A0 on.
WESTERN = {*range(0xC0, 0x100), *range(0x91, 0x98), *b"\x80\x85\xa1\xaa\xab\xb0\xb4\xb7\xba\xbb\xbf"}
ACCENTS = re.compile(b"[\x80-\xff]+")


def is_utf8(name: str) -> bool:
    return codecs.lookup(name).name == "utf-8"


def advise_encoding(file: BinaryFile) -> str:
    """How to read a file that is not UTF-8; empty if it is UTF-8 except for a few lines."""
    encoding = guess_encoding(first_lines(file))
    if encoding == "utf-8":
        return ""
    seen = f"The file looks like {encoding}, not UTF-8" if encoding else "The file is not UTF-8"
    return f"{seen}: set data.encoding={encoding or 'ENCODING'}, or convert it to UTF-8"


def first_lines(file: BinaryFile) -> bytes:
    """The first ``SAMPLE`` bytes of a file, cut after a whole line if the file is longer and has one."""
    content = file.read(SAMPLE)
    return (content[: content.rfind(b"\n") + 1] if len(content) == SAMPLE else b"") or content


def guess_encoding(content: bytes) -> str:
    """The probable encoding of most of the content; empty if it is unknown, but not UTF-8."""
    for mark, encoding in MARKS.items():
        if content.startswith(mark):
            return encoding
    zeros = [content[start::2].count(0) for start in (0, 1)]
    if sum(zeros) * 5 > len(content):
        return "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
    lines = [line for line in content.split(b"\n") if not line.isascii()]
    others = [line for line in lines if not decodes(line)]
    if 2 * len(others) <= len(lines):
        return "utf-8"
    accents = ACCENTS.findall(b"\n".join(others))
    if sum(len(accent) == 1 for accent in accents) < 0.7 * len(accents):
        return ""  # not Western European letters among ASCII ones
    foreign = [byte for byte in b"".join(accents) if byte not in WESTERN]
    if 5 * len(foreign) > sum(map(len, accents)):
        return ""  # other letters, as in Mac OS Roman and MS-DOS
    return "cp1252" if any(byte < 0xA0 for accent in accents for byte in accent) else "latin-1"


def decodes(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def refuse_utf8(path: Path, encoding: str, file: BinaryFile) -> None:
    """UserError if the file is UTF-8: most other encodings would decode its bytes as other letters."""
    content = first_lines(file)
    shows = len("a".encode(encoding)) > 1 or not content.isascii()  # UTF-16 has two bytes even for a letter of ASCII
    if shows and b"\0" not in content and decodes(content):
        advice = "set data.encoding=utf-8, and convert any files in another encoding to UTF-8"
        raise UserError(f"{path} is UTF-8, not data.encoding={encoding}: {advice}")
