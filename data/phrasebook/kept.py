"""The phrasebook as it was made once, in the user's cache folder: making it takes seconds of every start."""

import contextlib
import hashlib
import json
import unicodedata
from pathlib import Path

from data.errors import UserError
from data.files import cache_folder, write_atomically
from data.pairs import Pairs

HERE = Path(__file__).parent
Parts = dict[tuple[str, str], Pairs]  # by part and split


def phrasebook() -> Parts:
    """What ``splits.phrasebook`` makes, read back if the same sources have made it before."""
    try:
        path = cache_folder() / f"phrasebook-{fingerprint()[:16]}.json"
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return made()
    return read_back(path) or keep(path, made())


def made() -> Parts:
    from data.phrasebook.splits import phrasebook  # here, because its grammar takes long to load, too

    return phrasebook()


def fingerprint() -> str:
    """SHA-256 of all that the sentences depend on."""
    digest = hashlib.sha256(unicodedata.unidata_version.encode())
    for file in sorted([*HERE.rglob("*.py"), *HERE.rglob("*.tsv"), *HERE.parent.glob("*.py")]):
        digest.update(f"{file.relative_to(HERE.parent)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def keep(path: Path, parts: Parts) -> Parts:
    """Write the parts below the SHA-256 of their text; a folder that cannot be written to keeps nothing."""
    body = json.dumps([[*key, list(pairs.sources), list(pairs.targets)] for key, pairs in parts.items()])
    with contextlib.suppress(UserError):
        write_atomically(path, f"{hashlib.sha256(body.encode()).hexdigest()}\n{body}")
    return parts


def read_back(path: Path) -> Parts | None:
    """The parts in a file that is as it was written; None if there is none."""
    try:
        digest, _, body = path.read_text(encoding="utf-8").partition("\n")
    except (OSError, ValueError):
        return None
    if hashlib.sha256(body.encode()).hexdigest() != digest:
        return None
    return {(part, split): Pairs(sources, targets) for part, split, sources, targets in json.loads(body)}
