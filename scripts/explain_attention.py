"""Compute the numbers and pictures of docs/attention.md again: python scripts/explain_attention.py

That page's prose is written by hand. The text between <!-- begin NAME --> and <!-- end NAME -->, and the pictures
docs/attention-*.png, come from this repository's own attention functions. To try another example, change its arrays
in evaluation/attention_lessons/ and run this script.
"""

import argparse
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax

from benchmarks.machine import processor
from common.errors import UserError, exit_on_user_error
from common.files import write_atomically
from evaluation.attention_lessons import one_head, several_heads
from evaluation.attention_lessons.pictures import PICTURES, png
from training.run.environment import describe_environment

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "attention.md"

Blocks = dict[str, Callable[[], str]]  # the name in the marks, and the function that prints the text between them
BLOCKS: Blocks = {block.__name__.replace("_", "-"): block for block in one_head.BLOCKS + several_heads.BLOCKS}
BLOCKS |= {use: partial(several_heads.weights_of_use, use) for use in ("encoder", "decoder", "encoder-decoder")}
MEASURED: Blocks = {"cost": lambda: several_heads.cost(describe_machine())}


@exit_on_user_error()
def main() -> None:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout, allow_abbrev=False)
    choice = parser.add_mutually_exclusive_group()
    check_help = "write nothing; exit with code 1 if the page's numbers are out of date"
    measure_help = "also measure the time and memory of section 8 on this machine (a minute or two; run nothing else)"
    choice.add_argument("--check", action="store_true", help=check_help)
    choice.add_argument("--measure", action="store_true", help=measure_help)
    arguments = parser.parse_args()
    check() if arguments.check else write(BLOCKS | MEASURED if arguments.measure else BLOCKS)


def check() -> None:
    """Exit with code 1 and the names of the blocks if the page differs from the script; measured ones may."""
    page = PAGE.read_text(encoding="utf-8")
    if stale := [name for name, text in compute(BLOCKS).items() if block_of(page, name) != text]:
        sys.exit(f"{PAGE.name} is not what scripts/explain_attention.py prints: {', '.join(stale)}")
    print(f"{PAGE.name} has the script's numbers")


def write(blocks: Blocks) -> None:
    """Replace the page's blocks, and draw the pictures next to it."""
    page = PAGE.read_text(encoding="utf-8")
    for name, text in compute(blocks).items():
        begin, end = f"<!-- begin {name} -->\n\n", f"\n\n<!-- end {name} -->"
        page = page.replace(f"{begin}{block_of(page, name)}{end}", f"{begin}{text}{end}")
    write_atomically(PAGE, page)
    for name, draw in PICTURES.items():
        write_atomically(DOCS / name, png(draw()))
        print(f"written  docs/{name}")
    print(f"written  docs/{PAGE.name}")


def compute(blocks: Blocks) -> dict[str, str]:
    """The text of each block, computed in float32 on every device."""
    with jax.default_matmul_precision("float32"):
        return {name: block() for name, block in blocks.items()}


def block_of(page: str, name: str) -> str:
    """The page's text between the marks of ``name``; UserError unless each is there once."""
    found = re.findall(rf"<!-- begin {name} -->\n\n(.*?)\n\n<!-- end {name} -->", page, re.DOTALL)
    if len(found) != 1:
        raise UserError(f"docs/{PAGE.name} needs <!-- begin {name} --> and <!-- end {name} --> once, not {len(found)}")
    return found[0]


def describe_machine() -> str:
    facts = describe_environment()
    packages = ", ".join(f"{name} {facts['packages'][name]}" for name in ("jax", "jaxlib"))
    changes = " with uncommitted changes" if facts["uncommitted_changes"] else ""
    device = f"{facts['processors']} cores of {processor()}, JAX on {jax.default_backend()}"
    return f"{device}, Python {facts['python']}, {packages}, commit {facts['commit'][:7]}{changes}"


if __name__ == "__main__":
    main()
