"""Compute the numbers and pictures of docs/attention.md again: python scripts/explain_attention.py

That page's prose is written by hand. The text between <!-- begin NAME --> and <!-- end NAME -->, and the pictures
docs/attention-*.png, come from this repository's own attention functions. To try another example, change its arrays
in evaluation/attention_lessons/ and run this script.
"""

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # this clone's rooms, whatever PYTHONPATH has

from cli.command_line import Parser
from common.errors import exit_on_user_error
from common.files import write_atomically
from common.pictures import picture
from evaluation.attention_lessons import one_head, several_heads
from evaluation.attention_lessons.pictures import PICTURES

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "attention.md"
BLOCK = re.compile(r"(<!-- begin (\S+) -->\n\n)(.*?)(\n\n<!-- end \2 -->)", re.DOTALL)

# The names in the marks, and the functions that print the text between them.
BLOCKS: dict[str, Callable[[], str]] = {
    block.__name__.replace("_", "-"): block for block in one_head.BLOCKS + several_heads.BLOCKS
}
BLOCKS |= {use: partial(several_heads.weights_of_use, use) for use in ("encoder", "decoder", "encoder-decoder")}


@exit_on_user_error()
def main() -> None:
    """Replace the page's blocks, and draw the pictures next to it."""
    Parser(__doc__).parse_args()
    blocks, page = compute(), PAGE.read_text(encoding="utf-8")
    write_atomically(PAGE, BLOCK.sub(lambda found: f"{found[1]}{blocks[found[2]]}{found[4]}", page))
    for name, draw in PICTURES.items():
        write_atomically(DOCS / name, picture(draw, "png", dpi=130, facecolor="white"))
        print(f"written  docs/{name}")
    print(f"written  docs/{PAGE.name}")


def compute() -> dict[str, str]:
    """The text of each block, computed in float32 on every device."""
    with jax.default_matmul_precision("float32"):
        return {name: block() for name, block in BLOCKS.items()}


if __name__ == "__main__":
    main()
