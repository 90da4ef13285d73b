"""Assemble the page: scripts, runs, and the HTML around them.

A web worker runs the model. The page holds the worker's scripts as data, and makes a Blob of them to start it.
"""

from collections.abc import Sequence
from pathlib import Path

from common.page.page import embed, embed_bytes, fill, render_page
from evaluation.page.pack import PackedRun

FOLDER = Path(__file__).parent
WORKER = "shared tensors unpack text positions attention model search attribution worker"
VIEW = "shared state buttons words maps cell tree sentences changes panel view"


def render_live_page(runs: Sequence[PackedRun]) -> str:
    """The page of one run, or of two side by side."""
    names = " and ".join(run.facts["name"] for run in runs)
    weights = [embed_bytes(f"weights{number}", run.content) for number, run in enumerate(runs)]
    data = [embed("runs", [run.facts for run in runs]), embed("worker", "".join(scripts(WORKER))), *weights]
    body = fill(read("page.html"), runs=names)
    return render_page(names, body, read("page.css"), scripts(VIEW), data, ["worker-src blob:"])


def scripts(names: str) -> list[str]:
    return [read(f"{name}.js") for name in names.split()]


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
