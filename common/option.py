"""Fields of config dataclasses: a default, the help that ``--help`` prints, and checks of their values."""

import operator
from collections.abc import Iterable, Sequence
from dataclasses import field, fields
from typing import Any

BOUNDS = {
    "min": ("at least", operator.ge),
    "above": ("above", operator.gt),
    "below": ("below", operator.lt),
    "max": ("at most", operator.le),
}


def option(default: Any, help: str, choices: Iterable[str] = (), **bounds: float) -> Any:
    """A dataclass field with help and with ``BOUNDS``, such as ``min=0, below=1``.

    A field with ``choices`` must be one of them, and its help begins with them. Each object gets a copy of its own of a
    default list.
    """
    choices = tuple(choices)
    help = f"{one_of(choices)}: {help}" if choices else help
    metadata = {"help": help, "bounds": bounds, "choices": choices}
    if isinstance(default, list):
        return field(default_factory=default.copy, hash=False, metadata=metadata)  # a list has no hash
    return field(default=default, metadata=metadata)


def require_in_bounds(section: str, config: Any) -> None:
    """ValueError if a field of the config is out of its bounds, or is none of its choices."""
    for key in fields(config):
        value = getattr(config, key.name)
        for bound, limit in key.metadata["bounds"].items():
            words, holds = BOUNDS[bound]
            if not holds(value, limit):
                raise ValueError(f"{section}.{key.name} must be {words} {limit}, not {value}")
        if choices := key.metadata["choices"]:
            require_choice(f"{section}.{key.name}", value, *choices)


def require_choice(key: str, value: str, *known: str) -> None:
    """ValueError unless ``value`` is one of the known ones."""
    if value not in known:
        raise ValueError(f"{key} must be {one_of(known)}, not {value}")


def one_of(choices: Sequence[str]) -> str:
    """The choices as words: "a, b or c"."""
    return f"{', '.join(choices[:-1])} or {choices[-1]}"
