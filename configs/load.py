"""A YAML file and ``key=value`` overrides become one checked RunConfig; a run's config is saved and read back.

OmegaConf parses YAML (safely: no Python tags, no duplicate keys) and builds the frozen dataclasses. Three of its
habits are not wanted in an experiment; each value is checked here before they apply: it lets NaN and infinities
through, ``${…}`` reads the environment, and its conversions guess, such as 3 to true or ``no`` to "False". And text
that is no config, such as ten thousand brackets, is refused before it parses it: the parser would take the whole
process down.
"""

import dataclasses
import io
import math
import os
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import GenericAlias

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import CollectionEndEvent, CollectionStartEvent, MarkedYAMLError, SafeLoader, ScalarEvent, YAMLError, parse

from common.errors import UserError
from common.files import write_atomically
from common.text import in_brief
from configs.keys import KEYS, SECTIONS, nearest, sections, spell
from configs.schema import RunConfig

try:
    from yaml import CSafeLoader as Syntax
except ImportError:  # PyYAML was built without its library in C
    Syntax = SafeLoader  # type: ignore[assignment, misc]

LAST_KEY = "dry_run"  # of every config that save_config has ever written
MOST_BYTES, MOST_LEVELS, MOST_VALUES = 2**20, 20, 10_000  # of a config, far above any that trains a model
EXPECTED: dict[type | GenericAlias, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a string (quote what YAML would read as something else)",
    list[str]: "a list of strings such as [en, es]",
    list[float]: "a list of numbers such as [1, 0.5]",
}


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Read an experiment's YAML file, put the ``key=value`` overrides over it, and check the whole.

    A file may stand on another: ``extends: FILE``, beside it, gives what the file itself does not set. The environment
    variable PUENTE_CORPUS comes between file and overrides, as ``data.root``.
    """
    path = Path(path)
    _check("run_dir", str(path), "the config file's name")  # it may name the run
    values = OmegaConf.create()
    for key, value in [*_read_file(path), *_read_environment(), *map(_read_override, overrides)]:
        OmegaConf.update(values, key, value)
    try:
        loaded = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(RunConfig), values))
    except (ValueError, OverflowError) as error:  # mostly a rule between keys, from a dataclass's __post_init__
        raise UserError(f"{' '.join([str(path), *map(in_brief, overrides)])}: {_one_line(error)}") from None
    assert isinstance(loaded, RunConfig)
    return dataclasses.replace(loaded, run_dir=loaded.run_dir or str(Path("runs") / path.stem))


def load_run_config(run_dir: str | Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Read the config saved in a run directory, wherever that directory has been moved."""
    path = Path(run_dir) / "config.yaml"
    if not os.path.isfile(path):
        raise UserError(f"{run_dir} is not a run directory: it has no config.yaml")
    if LAST_KEY not in dict(_read_file(path)):
        raise UserError(f"{path} is cut short: {LAST_KEY}, its last key, is missing. Bring the whole file back")
    return load_config(path, [f"run_dir={run_dir}", *overrides])


def save_config(config: RunConfig, path: str | Path) -> None:
    """Write every key, defaults included, so that the file alone gives back an equal config."""
    write_atomically(path, to_yaml(config))


def to_yaml(config: RunConfig) -> str:
    """Every key and value of a config, as ``save_config`` writes it and a dry run prints it."""
    return str(OmegaConf.to_yaml(OmegaConf.structured(config)))


def differences(old: RunConfig, new: RunConfig) -> list[str]:
    """Lines ``key: old → new`` for keys of the experiment; where a run lives and whether it is dry do not count."""
    before, after = _values(old), _values(new)
    return [f"{key}: {spell(before[key])} → {spell(after[key])}" for key in before if before[key] != after[key]]


def _values(config: RunConfig) -> dict[str, object]:
    return {f"{name}.{key}": value for name, part in sections(config).items() for key, value in vars(part).items()}


def _read_file(path: Path, above: tuple[Path, ...] = ()) -> Iterator[tuple[str, object]]:
    if path.resolve() in above:
        raise UserError(f"{above[-1]}: extends goes in a circle, back to {path}")
    tree = _parse_file(path)
    if not isinstance(tree, dict) or not tree:
        raise UserError(f"{path}: a config is a YAML mapping of sections to keys and values; this file has none")
    if "extends" in tree:
        yield from _read_file(_base_of(path, tree.pop("extends")), (*above, path.resolve()))
    for name, value in tree.items():
        if "." in str(name):  # were it accepted, one key could be set twice
            raise UserError(f"{path}: write {in_brief(str(name))} as a key inside its section")
        inside = value if name in SECTIONS and isinstance(value, dict) else None
        leaves = {str(name): value} if inside is None else {f"{name}.{key}": inside[key] for key in inside}
        for key, leaf in leaves.items():
            yield key, _check(key, leaf, str(path))


def _base_of(path: Path, name: object) -> Path:
    if not isinstance(name, str) or not os.path.isfile(path.parent / name):
        raise UserError(f"{path}: extends must be another config file, relative to this one, not {_spelled(name)}")
    return path.parent / name


def _read_environment() -> Iterator[tuple[str, object]]:
    if root := os.environ.get("PUENTE_CORPUS"):
        yield "data.root", _check("data.root", root, "environment variable PUENTE_CORPUS")


def _parse_file(path: Path) -> object:
    if not os.path.isfile(path):
        folder = path.parent if os.path.isdir(path.parent) and any(path.parent.glob("*.yaml")) else Path("configs")
        known = ", ".join(map(str, sorted(folder.glob("*.yaml")))) or "no config files"
        raise UserError(f"there is no config file {path}; {folder}/ has {known}")
    try:
        with open(path, "rb") as file:
            text = file.read(MOST_BYTES + 1).decode()
        _refuse_monster(text)
        return OmegaConf.to_container(
            OmegaConf.load(io.StringIO(text), max_yaml_expanded_nodes=MOST_VALUES), resolve=False
        )
    except (YAMLError, OmegaConfBaseException, ValueError, OSError) as error:
        raise UserError(f"{_place(path, error)}: {_one_line(error)}") from None


def _refuse_monster(text: str) -> None:
    """ValueError for text on which the parser would spend minutes, or the whole stack."""
    if len(text) > MOST_BYTES:
        raise ValueError(f"no config is above {MOST_BYTES:,} bytes; is it another file?")
    level = 0
    for event in parse(text, Loader=Syntax):  # pieces of syntax, one by one: nothing is built of them
        level += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if level > MOST_LEVELS:
            raise ValueError(f"nested above {MOST_LEVELS} levels; a config has sections, keys and lists")
        if isinstance(event, ScalarEvent) and event.value.count("${") > MOST_LEVELS:
            raise ValueError(f"{in_brief(event.value)}: configs do not interpolate")


def _read_override(override: str) -> tuple[str, object]:
    key, equals, text = override.partition("=")
    if not equals:
        raise UserError(f"command line: {_spelled(override)} is not of the form key=value")
    if key not in KEYS or KEYS[key].type is str or "${" in text:  # text is text: run_dir=007 needs no quotes
        return key, _check(key, text, "command line")
    try:
        _refuse_monster(text)
        parsed = OmegaConf.to_container(OmegaConf.from_dotlist([f"value={text}"]), resolve=False)
    except (YAMLError, OmegaConfBaseException, ValueError) as error:
        raise UserError(f"command line: {key}={in_brief(text)}: {_one_line(error)}") from None
    assert isinstance(parsed, dict)
    return key, _check(key, parsed["value"], "command line")


def _check(key: str, value: object, origin: str) -> object:
    if key in KEYS and KEYS[key].type == list[str] and isinstance(value, str):
        value = [value]  # data.train=mine.tsv
    if key in SECTIONS:
        raise UserError(f"{origin}: {key} is a section; set its keys, such as {SECTIONS[key][0].name}")
    if key not in KEYS:
        raise UserError(f"{origin}: unknown key {in_brief(key)}; the nearest valid name is {nearest(key[:100])}")
    leaves = value if isinstance(value, list) else [value]
    for text in filter(lambda leaf: isinstance(leaf, str), leaves):
        if "${" in text or text == "???":
            raise UserError(f"{origin}: {key} must be a value, not {in_brief(text)}: configs do not interpolate")
    if not _fits(value, KEYS[key].type):
        raise UserError(f"{origin}: {key} must be {EXPECTED[KEYS[key].type]}, not {_spelled(value)}")
    for leaf in leaves:
        if problem := _flaw(leaf, 2**31 if KEYS[key].type is int and key != "training.seed" else 2**63):
            raise UserError(f"{origin}: {key} {problem}")
    return value


def _flaw(leaf: object, too_large: int) -> str | None:
    """Why a value of the right type cannot be used, or None. Sizes and counts end up in 32 bits."""
    if isinstance(leaf, str) and any(unicodedata.category(letter) in ("Cc", "Cs") for letter in leaf):
        return f"must be text without control characters or bytes that are not UTF-8, not {in_brief(leaf)}"
    if isinstance(leaf, float) and not math.isfinite(leaf):
        return f"must be finite, not {leaf}"
    if isinstance(leaf, int) and abs(leaf) >= too_large:
        return f"is too large: it must be below {too_large:,}"
    return None


def _spelled(value: object) -> str:
    """Any value as an error tells it."""
    try:
        return in_brief(repr(value))
    except ValueError:  # Python spells no number of thousands of digits
        return "a number of thousands of digits"


def _fits(value: object, expected: type | GenericAlias) -> bool:
    if isinstance(expected, GenericAlias):
        return isinstance(value, list) and all(_fits(item, expected.__args__[0]) for item in value)
    return type(value) is expected or (expected is float and type(value) is int)


def _place(path: Path, error: Exception) -> str:
    mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
    return f"{path}:{mark.line + 1}" if mark else str(path)


def _one_line(error: Exception) -> str:
    told = str(error.problem if isinstance(error, MarkedYAMLError) else error).partition("\n")[0]
    if told.startswith(("YAML node expansion", "YAML aliases expand")):
        return f"above {MOST_VALUES:,} values, or aliases that stand for so many; write fewer"
    return in_brief(told, 300)
