"""Every key of an experiment by its dotted name, with its type, default and one line of help."""

import dataclasses
import textwrap
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import GenericAlias
from typing import Any, get_type_hints

from common.text import as_list_item
from configs.schema import RunConfig


@dataclass(frozen=True)
class Key:
    """A configurable value; ``type`` is one of the types in ``EXPECTED`` (configs/load.py).

    ``metadata`` holds the arguments of ``common.option.option``.
    """

    name: str
    type: type | GenericAlias
    default: object
    metadata: Mapping[str, Any]


def sections(config: RunConfig) -> dict[str, object]:
    """The sections of a run's config by name: data, tokenizer, model, …"""
    return {name: value for name, value in vars(config).items() if dataclasses.is_dataclass(value)}


def _keys(config: object, prefix: str = "") -> list[Key]:
    types = get_type_hints(type(config))
    fields = dataclasses.fields(config)  # type: ignore[arg-type]  # RunConfig or one of its sections
    return [
        Key(prefix + field.name, types[field.name], getattr(config, field.name), field.metadata)
        for field in fields
        if field.metadata
    ]


NEAR = 0.7  # by difflib's ratio; unrelated words easily reach 0.6
DEFAULTS = RunConfig()
SECTIONS = {name: _keys(section, f"{name}.") for name, section in sections(DEFAULTS).items()}
RUN_KEYS = _keys(DEFAULTS)
KEYS = {key.name: key for keys in (*SECTIONS.values(), RUN_KEYS) for key in keys}


def find_nearest_key(name: str) -> str | None:
    """The valid key closest to ``name``, which may lack its section; None if no key is close.

    Sections are compared separately: training.foo and training.epochs have nothing else in common.
    """
    section, dot, last = name.rpartition(".")
    meant = get_close_matches(section, SECTIONS, n=1, cutoff=NEAR)
    inside = [key.name for key in SECTIONS[meant[0]]] if meant else []
    return _nearest(last, inside) or _nearest(last, [*KEYS, *([] if dot else SECTIONS)])


def _nearest(last: str, names: list[str]) -> str | None:
    """The name whose last part starts or ends with ``last``, is similar, or has these initials (lr: learning_rate)."""
    by_last = {name.rpartition(".")[2]: name for name in reversed(names)}
    initials = {"".join(word[:1] for word in each.split("_")): each for each in by_last if "_" in each}
    parts = [each for each in reversed(by_last) if each.startswith(f"{last}_") or each.endswith(f"_{last}")]
    found = get_close_matches(last, by_last, n=1, cutoff=NEAR) + parts
    return by_last[initials.get(last) or found[0]] if last in initials or found else None


def format_value(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(as_list_item(item) if isinstance(item, str) else str(item) for item in value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def describe_keys(accepted: Collection[str] = KEYS.keys()) -> str:
    """The ``accepted`` keys with their default, type and help, by section, for ``--help``."""
    groups = {f"{name}: {section.__doc__}": SECTIONS[name] for name, section in sections(DEFAULTS).items()}
    groups["run:"] = RUN_KEYS
    chosen = {heading: [key for key in keys if key.name in accepted] for heading, keys in groups.items()}
    return "\n\n".join("\n".join([heading, *map(_describe, keys)]) for heading, keys in chosen.items() if keys)


def _describe(key: Key) -> str:
    kind = key.type.__name__ if isinstance(key.type, type) else str(key.type)
    left = f"  {key.name}={format_value(key.default)}  ({kind})".ljust(46)
    text = key.metadata["help"]
    return textwrap.fill(text, 100, initial_indent=left, subsequent_indent=" " * 46, break_on_hyphens=False)
