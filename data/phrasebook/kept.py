"""The phrasebook as it was made once: making it takes seconds of every start."""

import hashlib
import json
import unicodedata
from pathlib import Path

from common.disk_cache import load_or_compute
from data.pairs import Pairs

HERE = Path(__file__).parent
Parts = dict[tuple[str, str], Pairs]  # by part and split


def phrasebook() -> Parts:
    """What ``splits.phrasebook`` makes, read back if the same sources have made it before."""
    return parts_in(load_or_compute(f"phrasebook-{fingerprint()}", lambda: as_json(made())))


def made() -> Parts:
    from data.phrasebook.splits import phrasebook  # here, because its grammar takes long to load, too

    return phrasebook()


def fingerprint() -> str:
    """SHA-256 of all that the sentences depend on."""
    digest = hashlib.sha256(unicodedata.unidata_version.encode())
    for file in sorted([*HERE.rglob("*.py"), *HERE.rglob("*.tsv"), *HERE.parent.glob("*.py")]):
        digest.update(f"{file.relative_to(HERE.parent)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def as_json(parts: Parts) -> bytes:
    return json.dumps([[*key, list(pairs.sources), list(pairs.targets)] for key, pairs in parts.items()]).encode()


def parts_in(content: bytes) -> Parts:
    return {(part, split): Pairs(sources, targets) for part, split, sources, targets in json.loads(content)}
