"""Fields of config dataclasses: a default, the help that ``--help`` prints, and checks of their values."""

from dataclasses import field
from typing import Any


def option(default: Any, help: str) -> Any:
    """A dataclass field with help."""
    return field(default=default, metadata={"help": help})


def require_choice(key: str, value: str, *known: str) -> None:
    """ValueError unless ``value`` is one of the known ones."""
    if value not in known:
        raise ValueError(f"{key} must be {', '.join(known[:-1])} or {known[-1]}, not {value}")
