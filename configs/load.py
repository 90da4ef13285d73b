"""Read a YAML file and ``key=value`` overrides into one checked RunConfig; save a run's config and read it back.

OmegaConf parses the YAML (safely: no Python tags, no duplicate keys) and builds the frozen dataclasses. Three of its
habits do not suit experiments, so we check every value first: it accepts NaN and infinities, ``${…}`` reads the
environment, and it guesses conversions, such as 3 to true or ``no`` to "False". Text that would exhaust the parser,
such as ten thousand brackets, is rejected before parsing.
"""

import dataclasses
import io
import math
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import GenericAlias
from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import CollectionEndEvent, CollectionStartEvent, MarkedYAMLError, ScalarEvent, YAMLError, parse

from common.errors import UserError
from common.files import sha256, write_atomically
from common.text import in_brief
from configs.keys import KEYS, NEAR, RUN_KEYS, SECTIONS, find_nearest_key, format_value, sections
from configs.schema import RunConfig
from training.run.layout import CONFIG

YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML may have been built without its C library
SHIPPED = Path(__file__).resolve().parent
# Octal, and hours and minutes: YAML 1.1 reads 0100 as 64, and 2:30 as 150. Write such a number in decimal instead.
MISREAD = re.compile(r"[-+]?(0[0-9_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)")
OF_ONE_RUN = {key.name for key in RUN_KEYS}
DIGEST = "# SHA-256 of the lines above:"  # absent from files saved by older versions or written by hand
LAST_KEY = "dry_run"  # present in every file that save_config has ever written
MAX_BYTES, MAX_LEVELS, MAX_VALUES = 2**20, 20, 10_000  # far above any real config
EXPECTED: dict[type | GenericAlias, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a string (quote what YAML would read as something else)",
    list[str]: "a list of strings such as [en, es] (quote what YAML would read as something else)",
    list[int]: "a list of whole numbers such as [21, 30]",
    list[float]: "a list of numbers such as [1, 0.5]",
    list[list[float]]: "a list of points such as [[0, 0], [1000, 1]]",
}


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Read an experiment's YAML file, apply the ``key=value`` overrides, and check the result.

    ``extends: FILE``, relative to the file, provides the keys that the file itself does not set. It never provides
    run_dir, because two experiments must not share one. The environment variable PUENTE_CORPUS sets ``data.root``: it
    takes precedence over the file, and the overrides over it. Raises UserError for any mistake.
    """
    path = Path(path)
    check_value("run_dir", str(path), "the config file's name")  # the run may get the same name
    values = OmegaConf.create()
    pairs = list(_read_file(path))
    if root := os.environ.get("PUENTE_CORPUS"):
        pairs.append(("data.root", check_value("data.root", root, "environment variable PUENTE_CORPUS")))
    for key, value in [*pairs, *map(_parse_override, overrides)]:
        OmegaConf.update(values, key, value)
    try:
        loaded = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(RunConfig), values))
    except (ValueError, OverflowError) as error:  # mostly a rule between keys, from a dataclass's __post_init__
        message = _first_line(error)
        blamed = [override for override in _blame(error, overrides) if not message.startswith(override)]
        raise UserError(f"{' '.join([str(path), *blamed])}: {message}") from None
    assert isinstance(loaded, RunConfig)
    return dataclasses.replace(loaded, run_dir=loaded.run_dir or str(Path("runs") / path.stem))


def _blame(error: Exception, overrides: Sequence[str]) -> list[str]:
    """The last override of each key that the error names; if there is none, the overrides in the same sections."""
    named = set(re.findall(r"[\w.]*\w", str(error))) & KEYS.keys()
    last = {override.partition("=")[0]: override for override in overrides}
    blamed = [key for key in last if key in named]
    near = {key.partition(".")[0] for key in named}
    return [in_brief(last[key]) for key in blamed or last if blamed or key.partition(".")[0] in near]


def load_run_config(run_dir: str | Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Read the config saved in a run directory, even if the directory has moved."""
    path = Path(run_dir) / CONFIG
    if not os.path.isfile(path):
        raise UserError(f"{run_dir} is not a run directory: {_suggest_run(Path(run_dir))}")
    if LAST_KEY not in dict(_read_file(path)):
        raise UserError(f"{path} is cut short: {LAST_KEY}, its last key, is missing. Bring the whole file back")
    return load_config(path, [f"run_dir={run_dir}", *overrides])


def save_config(config: RunConfig, path: str | Path) -> None:
    """Write every key, including defaults, so that the file alone reproduces the config, and a digest of the lines."""
    text = to_yaml(config)
    write_atomically(path, f"{text}{DIGEST} {sha256(text)}\n")


def to_yaml(config: RunConfig) -> str:
    return str(OmegaConf.to_yaml(OmegaConf.structured(config)))


def find_differences(old: RunConfig, new: RunConfig) -> dict[str, str]:
    """The keys inside sections whose values differ, each with the line "key: old → new"."""
    before, after = flatten(old), flatten(new)
    changed = (key for key in before if before[key] != after[key])
    return {key: f"{key}: {format_value(before[key])} → {format_value(after[key])}" for key in changed}


def flatten(config: RunConfig) -> dict[str, object]:
    """The values of all sections, by key."""
    return {f"{name}.{key}": value for name, part in sections(config).items() for key, value in vars(part).items()}


def _read_file(path: Path, extended_by: tuple[Path, ...] = ()) -> Iterator[tuple[str, object]]:
    if path.resolve() in extended_by:
        raise UserError(f"{extended_by[-1]}: extends goes in a circle, back to {path}")
    tree = parse_file(path)
    if not isinstance(tree, dict) or not tree:
        raise UserError(f"{path}: a config is a YAML mapping of sections to keys and values; this file has none")
    if "extends" in tree:
        base = _expand_home(tree.pop("extends"))
        if not isinstance(base, str) or not os.path.isfile(path.parent / base):
            raise UserError(f"{path}: extends must be another config file, relative to this one, not {_describe(base)}")
        inherited = _read_file(path.parent / base, (*extended_by, path.resolve()))
        yield from ((key, value) for key, value in inherited if key not in OF_ONE_RUN)
    for name, value in tree.items():
        if "." in str(name):  # a dotted name could set the same key twice
            raise UserError(f"{path}: write {in_brief(str(name))} as a key inside its section")
        inside = value if name in SECTIONS and isinstance(value, dict) else None
        leaves = {str(name): value} if inside is None else {f"{name}.{key}": inside[key] for key in inside}
        for key, leaf in leaves.items():
            yield key, check_value(key, leaf, str(path))


def parse_file(path: Path) -> object:
    """The tree of a YAML file. UserError if the file does not exist or cannot be parsed."""
    if not os.path.isfile(path):
        raise UserError(f"there is no config file {path}; {_suggest_config(path)}")
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_BYTES + 1).decode()
        _check_digest(text)
        _check_syntax(text)
        return OmegaConf.to_container(
            OmegaConf.load(io.StringIO(text), max_yaml_expanded_nodes=MAX_VALUES), resolve=False
        )
    except (YAMLError, OmegaConfBaseException, ValueError, OSError) as error:
        mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
        place = f"{path}:{mark.line + 1}" if mark else path
        raise UserError(f"{place}: {_first_line(error)}") from None


def _suggest_config(path: Path) -> str:
    """The probable intention: a run's config, or a file with a similar name; otherwise the files in the folder."""
    if os.path.isfile(path / CONFIG):
        return f"it is a run directory, whose config is {path / CONFIG}"
    here = path.parent if os.path.isdir(path.parent) and any(path.parent.glob("*.yaml")) else SHIPPED
    files = {file.stem: file for folder in (SHIPPED, here) for file in sorted(folder.glob("*.yaml"))}
    if nearest := get_close_matches(path.stem, files, n=1, cutoff=NEAR):
        return f"the nearest is {_shorten(files[nearest[0]])}"
    return f"{_shorten(here)}/ has {', '.join(sorted(file.name for file in here.glob('*.yaml')))}"


def _suggest_run(path: Path) -> str:
    """Why this is not a run directory, and which one was probably meant."""
    if path.name == CONFIG and os.path.isfile(path):
        return f"it is the config of the run {path.parent}"
    if path.suffix == ".yaml":
        return "it is a config file, which train.py takes"
    runs = [str(each.parent) for each in sorted(path.glob(f"*/{CONFIG}"))[:5]] if os.path.isdir(path) else []
    return f"it has no {CONFIG}" + f"; in it are {', '.join(runs)}" * bool(runs)


def _shorten(folder: Path) -> Path:
    """The path relative to the working directory, if it is inside it."""
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _check_digest(text: str) -> None:
    """ValueError if lines were changed after ``save_config``: a damaged value may still have the right type."""
    lines, mark, digest = text.rpartition(DIGEST)
    if mark and sha256(lines) != digest.strip():
        raise ValueError(
            "changed after it was saved: the SHA-256 in its last line does not match. Restore the file, and pass "
            "changes to the command as key=value; or, if you changed the file on purpose, delete its last line"
        )


def _check_syntax(text: str) -> None:
    """ValueError for text that would keep the parser busy for minutes or overflow the stack."""
    if len(text) > MAX_BYTES:
        raise ValueError(f"no config is above {MAX_BYTES:,} bytes; is this the right file?")
    level = 0
    for event in parse(text, Loader=YAML_LOADER):  # yields syntax events and builds nothing
        level += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if level > MAX_LEVELS:
            raise ValueError(f"nested more than {MAX_LEVELS} levels deep; a config has sections, keys and lists")
        if isinstance(event, ScalarEvent) and event.value.count("${") > MAX_LEVELS:
            raise ValueError(f"{in_brief(event.value)}: configs do not interpolate")
        if isinstance(event, ScalarEvent) and event.implicit[0] and MISREAD.fullmatch(event.value):
            problem = f"YAML would read {in_brief(event.value)} as another number"
            advice = "write it without leading zeros and colons, or quote what is text"
            raise MarkedYAMLError(None, None, f"{problem}: {advice}", event.start_mark)  # type: ignore[arg-type]


def _parse_override(override: str) -> tuple[str, object]:
    key, equals, text = override.partition("=")
    if not equals:
        raise UserError(f"command line: {_describe(override)} is not of the form key=value")
    is_list = text.startswith("[") and ("]" not in text or text.rstrip().endswith("]"))  # [a].tsv is a name
    is_name = key in KEYS and KEYS[key].type == list[str] and not is_list  # data.train=a b #2.tsv
    if key not in KEYS or KEYS[key].type is str or is_name or "${" in text:  # strings need no quotes: run_dir=007
        return key, check_value(key, text, "command line")
    try:
        _check_syntax(text)
        parsed = OmegaConf.to_container(OmegaConf.from_dotlist([f"value={text}"]), resolve=False)
    except (YAMLError, OmegaConfBaseException, ValueError) as error:
        raise UserError(f"command line: {key}={in_brief(text)}: {_first_line(error)}") from None
    assert isinstance(parsed, dict)
    return key, check_value(key, parsed["value"], "command line")


def check_value(key: str, value: object, origin: str) -> object:
    """Return the value, or raise a UserError that names its ``origin``; a string for a list key becomes a list."""
    if key in KEYS and KEYS[key].type == list[str] and isinstance(value, str):
        value = [value]  # data.train=mine.tsv
    if key in KEYS and KEYS[key].type in (str, list[str]):
        value = _expand_home(value)
    if (key, value) == ("training.profile", 0):
        value = []  # runs started before it became a list have 0
    if key in SECTIONS:
        raise UserError(f"{origin}: {key} is a section; set its keys, such as {SECTIONS[key][0].name}")
    if key not in KEYS:
        nearest = find_nearest_key(key[:100])
        advice = f"the nearest valid name is {nearest}" if nearest else "python train.py --help lists all keys"
        raise UserError(f"{origin}: unknown key {in_brief(key)}; {advice}")
    leaves = _flat(value)
    for text in filter(lambda leaf: isinstance(leaf, str), leaves):
        if "${" in text or text == "???":
            raise UserError(f"{origin}: {key} must be a value, not {in_brief(text)}: configs do not interpolate")
    if not _has_type(value, KEYS[key].type):
        raise UserError(f"{origin}: {key} must be {EXPECTED[KEYS[key].type]}, not {_describe(value)}")
    for leaf in leaves:
        # Sizes and counts end up in 32 bits.
        if problem := _find_problem(leaf, 2**31 if KEYS[key].type is int and not key.endswith(".seed") else 2**63):
            raise UserError(f"{origin}: {key} {problem}")
    return value


def _flat(value: object) -> list[Any]:
    return [leaf for each in value for leaf in _flat(each)] if isinstance(value, list) else [value]


def _expand_home(value: object) -> object:
    """Expand ``~``: a shell does not do it after an equals sign, and nothing does in a file."""
    if isinstance(value, list):
        return [_expand_home(each) for each in value]
    return os.path.expanduser(value) if isinstance(value, str) else value


def _has_type(value: object, expected: type | GenericAlias) -> bool:
    if isinstance(expected, GenericAlias):
        return isinstance(value, list) and all(_has_type(item, expected.__args__[0]) for item in value)
    return type(value) is expected or (expected is float and type(value) is int)


def _find_problem(leaf: object, too_large: int) -> str | None:
    if isinstance(leaf, str) and any(unicodedata.category(letter) in ("Cc", "Cs") for letter in leaf):
        return f"must be text without control characters or bytes that are not UTF-8, not {in_brief(leaf)}"
    if isinstance(leaf, float) and not math.isfinite(leaf):
        return f"must be finite, not {leaf}"
    if isinstance(leaf, int) and abs(leaf) >= too_large:
        return f"is too large: it must be below {too_large:,}"
    return None


def _describe(value: object) -> str:
    if value is None:
        return "nothing"
    try:
        return in_brief(repr(value))
    except ValueError:  # Python does not print integers with thousands of digits
        return "a number with thousands of digits"


def _first_line(error: Exception) -> str:
    message = str(error.problem if isinstance(error, MarkedYAMLError) else error).partition("\n")[0]
    if message.startswith(("YAML node expansion", "YAML aliases expand")):
        return f"more than {MAX_VALUES:,} values after expanding aliases; write fewer"
    return in_brief(message, 300)
