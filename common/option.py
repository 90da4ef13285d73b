"""Fields of config dataclasses: a default, the help that ``--help`` prints, and checks of their values."""

import operator
from dataclasses import field, fields
from typing import Any

BOUNDS = {
    "min": ("at least", operator.ge),
    "above": ("above", operator.gt),
    "below": ("below", operator.lt),
    "max": ("at most", operator.le),
}


def option(default: Any, help: str, **bounds: float) -> Any:
    """A dataclass field with help and with ``BOUNDS``, such as ``min=0, below=1``.

    Each object gets a copy of its own of a default list.
    """
    metadata = {"help": help, "bounds": bounds}
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def require_in_bounds(section: str, config: Any) -> None:
    """ValueError if a field of the config is out of its bounds."""
    for key in fields(config):
        value = getattr(config, key.name)
        for bound, limit in key.metadata["bounds"].items():
            words, holds = BOUNDS[bound]
            if not holds(value, limit):
                raise ValueError(f"{section}.{key.name} must be {words} {limit}, not {value}")


def require_choice(key: str, value: str, *known: str) -> None:
    """ValueError unless ``value`` is one of the known ones."""
    if value not in known:
        raise ValueError(f"{key} must be {', '.join(known[:-1])} or {known[-1]}, not {value}")
