"""Manifests: a checkpoint's last file, with the SHA-256 of every other file and of itself.

A checkpoint whose manifest and files are as they were written is intact; any other is never restored and never
deleted.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.digests import sha256, sha256_of_file

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """The step of a checkpoint, a JSON object of its writer's, and the digest of every other file by relative path."""

    step: int
    notes: dict[str, Any]
    sha256: dict[str, str]

    def to_json(self) -> str:
        """The manifest's text, with a digest of its own."""
        facts = vars(self)
        return json.dumps(facts | {"check": sha256(json.dumps(facts, sort_keys=True))}, indent=1)


def read_manifest(directory: Path) -> Manifest:
    """Read a checkpoint's manifest; ValueError if a single bit of it has changed."""
    text = (directory / MANIFEST).read_text(encoding="utf-8")
    try:
        facts = json.loads(text)
        manifest = Manifest(facts["step"], facts["notes"], facts["sha256"])
    except (KeyError, TypeError):
        manifest = None
    if manifest is None or manifest.to_json() != text:
        raise ValueError(f"{directory / MANIFEST} is damaged")
    return manifest


def hash_files(directory: Path) -> dict[str, str]:
    """SHA-256 of every file below a directory but its manifest, by relative path."""
    files = sorted(path for path in directory.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {str(path.relative_to(directory)): sha256_of_file(path) for path in files}


def is_intact(directory: Path) -> bool:
    """Whether the manifest and every file that it lists are as they were written."""
    try:
        listed = read_manifest(directory).sha256
        return listed == {name: sha256_of_file(directory / name) for name in listed}
    except (OSError, ValueError):
        return False
