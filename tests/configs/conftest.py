"""Config files of a test's own, and what is said of one that is refused."""

from pathlib import Path

import pytest

from common.errors import UserError
from configs.load import load_config


@pytest.fixture
def config_file(tmp_path):
    """Write a config file's text and return its path."""

    def write(text: str) -> Path:
        path = tmp_path / "experiment.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def plain(config_file):
    return config_file("training: {steps: 10}\n")


def refused(path: Path | str, *overrides: str) -> str:
    """The one line with which a config is refused."""
    with pytest.raises(UserError) as caught:
        load_config(path, list(overrides))
    assert "\n" not in str(caught.value)
    return str(caught.value)
