"""Config files and command lines that nobody would write by hand: each is refused at once, in one short line."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from common.errors import UserError
from configs.load import load_config, load_run_config, save_config
from configs.schema import RunConfig
from tests.configs.conftest import refused
from tests.processes import printed_by


def nine_times(level: int) -> str:
    return ", ".join([f"*a{level - 1}" if level else "lol"] * 9)


BOMB = "\n".join(f"a{level}: &a{level} [{nine_times(level)}]" for level in range(9))
MERGED = "a0: &a0 {k: 1}\n" + "\n".join(f"a{level}: &a{level}\n  <<: [{nine_times(level)}]" for level in range(1, 9))
LINES = BOMB.replace("\n", ", ")
TOO_DEEP = "nested more than 20 levels deep; a config has sections, keys and lists"
TOO_MANY = "more than 10,000 values after expanding aliases; write fewer"
THOUSANDS = "1" + ":59" * 3000  # to YAML, a number in base 60

FILES = {  # what a config file holds, and what is said of it
    "a section twice": ("data:\n  source: es\ndata:\n  target: en", ":3: found duplicate key data"),
    "a tab": ("training:\n\tsteps: 3", ":2: found character that cannot start any token"),
    "nothing": ("# nothing", ": a config is a YAML mapping of sections to keys and values; this file has none"),
    "a number": ("3", ": Invalid loaded object type: int"),
    "an alias of nothing": ("training: {steps: *nope}", ":1: found undefined alias"),
    "a list in itself": ("data: {train: &a [*a]}", ":1: YAML recursive aliases are not supported."),
    "a billion laughs": (BOMB, f":1: {TOO_MANY}"),
    "a billion merges": (MERGED, f":1: {TOO_MANY}"),
    "brackets": ("data: {train: " + "[" * 10_000 + "]" * 10_000 + "}", f": {TOO_DEEP}"),
    "brackets without an end": ("data: {train: " + "[" * 400_000, f": {TOO_DEEP}"),  # the parser alone overflows
    "interpolations in each other": (f"data: {{root: '{'${' * 5000}'}}", "configs do not interpolate"),
    "a number of 5,001 digits": (f"training: {{steps: 1{'0' * 5000}}}", "Exceeds the limit (4300 digits)"),
    "a number in base 60": (f"training: {{steps: {THOUSANDS}}}", "YAML would read "),
    "a number above 32 bits": ("data: {row_length: 2147483648}", ": data.row_length is too large: "),
    "two documents": ("training: {steps: 1}\n---\ntraining: {steps: 2}", ":2: but found another document"),
    "a NUL": ("training: {steps: 1}\0", "unacceptable character #x0000: control characters are not allowed"),
    "a NUL in a string": ('run_dir: "a\\0b"', ": run_dir must be text without control characters"),
    "a line break in a string": ('data: {root: "a\\nb"}', "not a<U+000A>b"),
    "a line break in a key": ('"a\\nb": 1', ": unknown key a<U+000A>b; "),
    "a terminal's code in a list": ('data: {train: ["\\e[2J.tsv"]}', "not <U+001B>[2J.tsv"),
    "a long value": (f"training: {{steps: {'x' * 100_000}}}", ": training.steps must be a whole number, not 'xxx"),
    "a long base": (f"extends: {'x' * 5000}", ": extends must be another config file, relative to this one, not 'xxx"),
    "a list as a key": ("{[a, b]: 1}", ":1: found unhashable key"),
    "no number where a tag says so": ("training: {steps: !!int abc}", ": invalid literal for int()"),
    "a set": ("training: {steps: !!set {a, b}}", "Value 'set' is not a supported primitive type"),
    "more than a million bytes": ("training: {steps: 1}\n" + "#" * 2**20, ": no config is above 1,048,576 bytes"),
}


def one_short_line(told: str) -> str:
    assert told.isprintable() and len(told) < 500
    return told


def test_every_monster_is_refused_in_one_short_line(tmp_path):
    """In another process, with a limit of time and memory: some of them once hung it or ended it by a signal."""
    for number, (text, _) in enumerate(FILES.values()):
        (tmp_path / f"{number}.yaml").write_text(text, encoding="utf-8")
    with open(tmp_path / "fifty.yaml", "wb") as file:
        file.truncate(50_000_000)
    os.mkfifo(tmp_path / "pipe.yaml")
    paths = [*(tmp_path / f"{number}.yaml" for number in range(len(FILES))), tmp_path / "fifty.yaml"]
    paths += [tmp_path / "pipe.yaml", Path("/dev/zero"), tmp_path, Path("x" * 5000)]
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))\n"
        "from configs.load import load_config; from common.errors import UserError\n"
        "for path in sys.argv[1:]:\n"
        "    try: print('loaded', load_config(path))\n"
        "    except UserError as error: print(error)"
    )
    *told, large, pipe, device, folder, long = printed_by(code, *paths)
    for name, path, line, (_, expected) in zip(FILES, paths, told, FILES.values(), strict=False):
        assert expected in one_short_line(line) and line.startswith(str(path)), name
    assert len(told) == len(FILES)
    assert large.startswith(f"{tmp_path / 'fifty.yaml'}: no config is above 1,048,576 bytes")
    for line, path in ((pipe, tmp_path / "pipe.yaml"), (device, "/dev/zero"), (folder, tmp_path), (long, "x" * 5000)):
        assert line.startswith(f"there is no config file {path}; ")


VALUES = {  # what stands behind the equals sign, and what is said of it
    "data.columns=[es,en": "command line: data.columns=[es,en: did not find expected ',' or ']'",
    "training.steps=a: b: c": "command line: training.steps=a: b: c: mapping values are not allowed",
    "training.steps=*nope": "command line: training.steps=*nope: found undefined alias",
    f"training.profile={{{LINES}}}": TOO_MANY,
    f"data.train={'[' * 50_000}": TOO_DEEP,
    "training.steps=\udcff": "command line: training.steps=<U+DCFF>: 'utf-8' codec can't encode",
    "run_dir=a\udcff": "command line: run_dir must be text without control characters or bytes that are not UTF-8, "
    "not a<U+DCFF>",
    "\x1b[2J=1": "command line: unknown key <U+001B>[2J; ",
    f"{'x' * 100_000}=1": "command line: unknown key xxx",
    "x" * 100_000: "is not of the form key=value",
    f"training.learning_rate=1{'0' * 400}": "command line: training.learning_rate is too large: ",
    f"training.profile=[{THOUSANDS}]": "YAML would read ",
    "training.learning_rate=1e999": "command line: training.learning_rate must be finite, not inf",
}


@pytest.mark.parametrize("override", VALUES, ids=range(len(VALUES)))
def test_a_monster_on_the_command_line_is_refused_in_one_short_line(plain, override):
    assert VALUES[override] in one_short_line(refused(plain, override))


@pytest.mark.parametrize("name", ["a\nb.yaml", "\udcff.yaml", "a\0.yaml"])
def test_a_config_file_may_not_have_a_name_that_no_run_directory_could_have(tmp_path, name):
    told = one_short_line(refused(tmp_path / name))
    assert told.startswith("the config file's name: run_dir must be text without control ")


def test_the_largest_numbers_and_aliases_that_stand_for_little_pass(config_file):
    text = "training: {steps: &n 2147483647, warmup_steps: *n, seed: 4294967295, learning_rate: 9999999999}"
    training = load_config(config_file(text)).training
    assert (training.steps, training.warmup_steps, training.seed) == (2**31 - 1, 2**31 - 1, 2**32 - 1)
    assert training.learning_rate == 9999999999.0


@pytest.mark.parametrize(
    "start", ["\ufeff", "# ${oc.env:HOME} and [[[[[[[[[[[[[[[[[[[[[[[[\n", "\n\r\n", "%YAML 1.1\n---\n"]
)
def test_what_is_no_monster_passes(tmp_path, start):
    for end in ("\n", "\r\n", "\r", "\u2028", "\x85"):
        (tmp_path / "plain.yaml").write_bytes(f"{start}training:\n  steps: 3\n".replace("\n", end).encode())
        assert load_config(tmp_path / "plain.yaml").training.steps == 3


def saved(run_dir: Path) -> str:
    save_config(RunConfig(run_dir=str(run_dir)), run_dir / "config.yaml")
    return (run_dir / "config.yaml").read_text(encoding="utf-8")


def test_a_saved_config_that_was_cut_short_is_never_taken_for_a_whole_one(tmp_path):
    """A key that is missing would have its default: another model than the one that was trained."""
    whole = saved(tmp_path)
    assert load_run_config(tmp_path) == RunConfig(run_dir=str(tmp_path))
    lines = whole.splitlines(keepends=True)
    cuts = [*("".join(lines[:number]).encode() for number in range(len(lines) - 1)), whole[:-2].encode()]
    for content in [*cuts, b"\xff\xfe", b"[]", b"\0" * 100]:
        (tmp_path / "config.yaml").write_bytes(content)
        with pytest.raises(UserError) as caught:
            load_run_config(tmp_path)
        assert str(caught.value).startswith(f"{tmp_path / 'config.yaml'}") and one_short_line(str(caught.value))
    (tmp_path / "config.yaml").write_text("".join(lines[:-2]), encoding="utf-8")
    with pytest.raises(UserError, match=r"is cut short: dry_run, its last key, is missing\. Bring the whole file back"):
        load_run_config(tmp_path)


def test_no_changed_bit_of_a_saved_config_is_another_value(tmp_path):
    whole, path = saved(tmp_path).encode(), tmp_path / "config.yaml"
    for bit in range(0, 8 * len(whole), 5):  # every bit of a byte is met in one of eight bytes
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with suppress(UserError):
            assert load_run_config(tmp_path) == RunConfig(run_dir=str(tmp_path)), bytes(damaged)


def test_who_edits_a_saved_config_is_told_what_to_do(tmp_path):
    """Without its digest it is as those that older versions saved."""
    path, edited = tmp_path / "config.yaml", saved(tmp_path).replace("beam_size: 5", "beam_size: 6")
    path.write_text(edited)
    told = one_short_line(refused(path))
    assert told.startswith(f"{path}: changed after it was saved: ") and told.endswith(", delete its last line")
    *lines, last = edited.splitlines(keepends=True)
    path.write_text("".join(lines))
    assert last.startswith("# SHA-256") and load_config(path).decoding.beam_size == 6


@pytest.mark.parametrize("name", ["run", "nothing", "x" * 5000, "\0"], ids=["a pipe", "nothing", "long", "NUL"])
def test_what_has_no_saved_config_is_no_run(tmp_path, name):
    run_dir = tmp_path / name
    if name == "run":
        run_dir.mkdir()
        os.mkfifo(run_dir / "config.yaml")
    with pytest.raises(UserError, match=r"is not a run directory: it has no config\.yaml"):
        load_run_config(run_dir)
