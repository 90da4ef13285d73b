"""Programs of this clone that another program starts."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]  # the clone


def program_environment() -> dict[str, str]:
    """An environment for programs of this clone, so that they find its rooms wherever they start."""
    path = [str(ROOT), os.environ.get("PYTHONPATH")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, path))}
