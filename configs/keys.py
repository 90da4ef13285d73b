"""Every key of an experiment by its dotted name, with its type, default and one line of help."""

import dataclasses
import textwrap
import typing
from dataclasses import dataclass
from difflib import get_close_matches
from types import GenericAlias

from configs.schema import RunConfig


@dataclass(frozen=True)
class Key:
    """A configurable value; ``type`` is int, float, bool, str, list[str] or list[float]."""

    name: str
    type: type | GenericAlias
    default: object
    help: str


def sections(config: RunConfig) -> dict[str, object]:
    """The sections of a run's config by name: data, tokenizer, model, …"""
    return {name: value for name, value in vars(config).items() if dataclasses.is_dataclass(value)}


def _keys(config: object, prefix: str = "") -> list[Key]:
    types = typing.get_type_hints(type(config))
    fields = dataclasses.fields(config)  # type: ignore[arg-type]  # RunConfig or one of its sections
    return [
        Key(prefix + field.name, types[field.name], getattr(config, field.name), field.metadata.get("help", ""))
        for field in fields
        if not dataclasses.is_dataclass(types[field.name])
    ]


DEFAULTS = RunConfig()
SECTIONS = {name: _keys(section, f"{name}.") for name, section in sections(DEFAULTS).items()}
RUN_KEYS = _keys(DEFAULTS)
KEYS = {key.name: key for keys in (*SECTIONS.values(), RUN_KEYS) for key in keys}


def find_nearest_key(name: str) -> str:
    """The valid name most like ``name``, which may lack its section or be initials, such as lr for learning_rate."""
    spellings = {spelling: key for key in KEYS for spelling in _spellings(key)} | {key: key for key in SECTIONS}
    return spellings[get_close_matches(name, spellings, n=1, cutoff=0.0)[0]]


def _spellings(key: str) -> list[str]:
    section, dot, last = key.rpartition(".")
    initials = "".join(word[0] for word in last.split("_"))
    return [key, last, *([initials, f"{section}{dot}{initials}"] if "_" in last else [])]


def format_value(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(format_value, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def describe_keys() -> str:
    """List every key with its default, type and help, by section, for ``--help``."""
    groups = {f"{name}: {section.__doc__}": SECTIONS[name] for name, section in sections(DEFAULTS).items()}
    groups["run:"] = RUN_KEYS
    return "\n\n".join("\n".join([heading, *map(_describe, keys)]) for heading, keys in groups.items())


def _describe(key: Key) -> str:
    kind = key.type.__name__ if isinstance(key.type, type) else str(key.type)
    left = f"  {key.name}={format_value(key.default)}  ({kind})".ljust(46)
    return textwrap.fill(key.help, 100, initial_indent=left, subsequent_indent=" " * 46, break_on_hyphens=False)
