"""Programs of this clone that another program starts."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]  # the clone


def program_environment() -> dict[str, str]:
    """The environment for programs of this clone, which find its rooms wherever they start."""
    path = [str(ROOT), os.environ.get("PYTHONPATH")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, path))}
