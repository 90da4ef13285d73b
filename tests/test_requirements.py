"""What is installed is what was tested: every package is pinned, and every file of it has a known hash."""

import re
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FOLDER = Path(__file__).parents[1] / "requirements"
PIN = re.compile(r"([\w.-]+)==[\w.+]+(?: ; [^\\]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


def pins(name):
    text = re.sub("^ *#.*\n", "", (FOLDER / name).read_text(), flags=re.MULTILINE)
    assert PIN.sub("", text) == "", "a line without a version, or without a hash"
    return {canonicalize_name(package): hashes.count("sha256:") for package, hashes in PIN.findall(text)}


def needed(package, extras=("",)):
    """The names of a package that is installed here and of all that it needs here."""
    found = {canonicalize_name(package): set(extras)}
    waiting = [(package, extras)]
    while waiting:
        package, extras = waiting.pop()
        try:
            lines = requires(package) or []
        except PackageNotFoundError:
            continue
        for requirement in map(Requirement, lines):
            if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
                continue
            name, wanted = canonicalize_name(requirement.name), {"", *requirement.extras}
            if not wanted <= found.setdefault(name, set()):
                found[name] |= wanted
                waiting.append((requirement.name, tuple(wanted)))
    return found.keys() - {"puente"}


@pytest.mark.parametrize("name", ["py311.txt", "py312.txt", "aot.txt"])
def test_every_package_that_puente_needs_is_pinned_and_compiled_ones_for_several_platforms(name):
    """Hashes are demanded of all packages as soon as one has them."""
    pinned = pins(name)
    assert all(pinned.values())
    if name != "aot.txt":
        assert needed("puente", ("", "dev")) <= pinned.keys()
        assert min(pinned[package] for package in ("jaxlib", "numpy", "scipy", "sentencepiece", "lxml", "pyarrow")) >= 3
