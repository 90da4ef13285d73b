"""The phrasebook from the user's cache folder: building it takes seconds."""

import hashlib
import json
import unicodedata
from pathlib import Path

from common.disk_cache import load_or_compute
from data.pairs import Pairs

FOLDER = Path(__file__).parent
Parts = dict[tuple[str, str], Pairs]  # by part and split


def phrasebook() -> Parts:
    """The result of ``splits.phrasebook``, read from the cache if the same source files have built it before."""
    return from_json(load_or_compute(f"phrasebook-{fingerprint()}", lambda: to_json(build())))


def build() -> Parts:
    from data.phrasebook.splits import phrasebook  # loading the grammar takes long, too

    return phrasebook()


def fingerprint() -> str:
    """SHA-256 of everything that the sentences depend on: the code of this room, the word lists and Unicode."""
    digest = hashlib.sha256(unicodedata.unidata_version.encode())
    for file in sorted([*FOLDER.parent.rglob("*.py"), *FOLDER.rglob("*.tsv")]):
        digest.update(f"{file.relative_to(FOLDER.parent)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def to_json(parts: Parts) -> bytes:
    return json.dumps([[*key, list(pairs.sources), list(pairs.targets)] for key, pairs in parts.items()]).encode()


def from_json(content: bytes) -> Parts:
    return {(part, split): Pairs(sources, targets) for part, split, sources, targets in json.loads(content)}
