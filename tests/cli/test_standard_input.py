"""Lines of standard input, unchanged, in blocks; one that is not UTF-8 has a problem and does not end the others."""

import io

import pytest

from cli import standard_input
from cli.standard_input import InputLine, blocks, input_lines, read_lines
from common.files import LONGEST_LINE


def test_lines_are_read_as_they_stand():
    lines = ["a\0b\n", "a\rb\r\n", "\ufeffa\n", "a\u2028b\u2029c\x85d\x0be\x0cf\n", "\n", "no end"]
    read = list(read_lines(line.encode() for line in lines))
    assert read == [InputLine(number, line) for number, line in enumerate(lines, start=1)]


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_of_many_megabytes_has_a_problem_is_never_held_as_a_whole_and_costs_no_other(monkeypatch, end):
    longest, problem = b"x" * LONGEST_LINE + b"\n", "more than 10,000,000 bytes in the line; break it into several"
    text = longest + b"x" * 3 * LONGEST_LINE + b"\ngood\n" + b"x" * (LONGEST_LINE + 1) + end
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    first, *others = input_lines()
    assert first == InputLine(1, longest.decode())
    assert others == [InputLine(2, "", problem), InputLine(3, "good\n"), InputLine(4, "", problem)]


@pytest.mark.parametrize("bad", [b"\xff\n", b"\xed\xa0\x80\n", b"\xc3"])
def test_a_line_that_is_not_utf_8_has_a_problem_and_costs_no_other(bad):
    problem = "invalid UTF-8 at byte 1 of the line"
    expected = [InputLine(1, "good\n"), InputLine(2, "", problem), InputLine(3, "good\n")]
    assert list(read_lines([b"good\n", bad, b"good\n"])) == expected


def test_blocks_are_bounded_by_lines_and_by_characters():
    lines = [InputLine(number, text) for number, text in enumerate("abcde", start=1)]
    assert list(blocks(iter(lines), 2)) == [lines[:2], lines[2:4], lines[4:]]
    long = InputLine(2, "x" * standard_input.CHARACTERS)
    assert list(map(len, blocks([lines[0], long, lines[2]], 9))) == [2, 1]
    assert list(blocks(iter([]))) == []
