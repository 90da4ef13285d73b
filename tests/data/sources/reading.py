"""How the tests of sources read one, and what it is refused with."""

from pathlib import Path
from typing import Any

import pytest

from common.errors import UserError
from data.config import DataConfig
from data.pairs import Pairs
from data.sources.report import SourceReport
from data.sources.source import load_source

SKIPPING: dict[str, Any] = {"malformed": "skip", "max_malformed": 1.0}


def load(folder: Path, name: str = "a.tsv", split: str = "train", /, **changes: Any) -> tuple[Pairs, SourceReport]:
    return load_source(DataConfig(root=str(folder), **changes), name, split)


def refused(folder: Path, name: str = "a.tsv", split: str = "train", /, **changes: Any) -> str:
    """The one line with which a source is refused, without the folder."""
    with pytest.raises(UserError) as caught:
        load(folder, name, split, **changes)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(f"{folder}/", "")
