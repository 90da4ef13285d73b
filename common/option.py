"""Fields of config dataclasses: a default, the help that ``--help`` prints, checks, and what the value affects."""

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import field, fields
from functools import partial
from typing import Any, Literal

import numpy as np

BOUNDS = {
    "min": ("at least", operator.ge),
    "above": ("above", operator.gt),
    "below": ("below", operator.lt),
    "max": ("at most", operator.le),
}

Changes = Literal["nothing", "validation", "training", "model"]


def option(
    default: Any,
    help: str,
    choices: Iterable[str] = (),
    *,
    changes: Changes = "model",
    compared: bool | None = None,
    of_text: bool = True,
    of_file: bool = False,
    **bounds: float,
) -> Any:
    """A dataclass field with help and with ``BOUNDS``, such as ``min=0, below=1``.

    A field with ``choices`` must be one of them, and its help begins with them. A default list is copied for each
    object. The defaults of the other arguments are safe: forgetting them may cost a new run or reading a corpus again,
    but never gives a wrong result.

    - ``changes`` says what differs when a run continues with another value. "nothing": at most the rounding.
      "validation": scores from before and after are not comparable. "training": the following steps, but saved
      checkpoints translate as before, up to rounding. "model": the run cannot continue.
    - ``compared``: a comparison of two runs lists this key if it differs; by default, if it changes something.
    - ``of_text``: the text of a corpus, or its tokens, depend on this key of ``data``.
    - ``of_file``: the pairs read from a single file depend on it too, so a report records this key of ``data``.
    """
    choices = tuple(choices)
    metadata = {
        "help": f"{one_of(choices)}: {help}" if choices else help,
        "bounds": bounds,
        "choices": choices,
        "changes": changes,
        "compared": changes != "nothing" if compared is None else compared,
        "of_text": of_text,
        "of_file": of_file,
    }
    if isinstance(default, list):
        return field(default_factory=default.copy, hash=False, metadata=metadata)  # a list has no hash
    return field(default=default, metadata=metadata)


of_training = partial(option, changes="training")
of_validation = partial(option, changes="validation")
harmless = partial(option, changes="nothing")


def select(config: Any, which: Literal["of_text", "of_file"]) -> dict[str, Any]:
    """The values of a config by key, for the keys that are declared ``which``."""
    return {key.name: getattr(config, key.name) for key in fields(config) if key.metadata[which]}


def require_in_bounds(section: str, config: Any) -> None:
    """ValueError if a field of the config is out of bounds or not one of its choices.

    Computations use 32 bits, where 0.99999999 is 1, 1e-50 is 0, and 1e39 is infinite.
    """
    for key in fields(config):
        value = getattr(config, key.name)
        computed = in_32_bits(value) if isinstance(value, float) else value
        is_lost = isinstance(value, float) and (math.isinf(computed) or (computed == 0) != (value == 0))
        for bound, limit in key.metadata["bounds"].items():
            words, holds = BOUNDS[bound]
            if not holds(value, limit):
                raise ValueError(f"{section}.{key.name} must be {words} {limit}, not {value}")
            if is_lost or not holds(computed, limit):
                raise ValueError(f"{section}.{key.name} must be {words} {limit}; {value} is {computed:g} in 32 bits")
        choices = key.metadata["choices"]
        if choices and value not in choices:
            raise ValueError(f"{section}.{key.name} must be {one_of(choices)}, not {value}")


def in_32_bits(value: float) -> float:
    """The number that processors compute with; they treat numbers below the smallest normal one as 0."""
    with np.errstate(over="ignore"):
        rounded = float(np.float32(value))
    return rounded if abs(rounded) >= np.finfo(np.float32).tiny else 0.0


def one_of(choices: Sequence[str]) -> str:
    """The choices as words: "a, b or c"."""
    return f"{', '.join(choices[:-1])} or {choices[-1]}"
