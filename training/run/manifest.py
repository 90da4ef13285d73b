"""The manifest of a checkpoint: the last file written, with the SHA-256 of every other file and of itself.

A directory is intact if its manifest and files are as written; any other is never restored and never deleted.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.files import hash_folder, holds, read_small, sha256, with_check

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """The step of a checkpoint, its notes (JSON), and the digest of every other file by relative path."""

    step: int
    notes: dict[str, Any]
    sha256: dict[str, str]

    @property
    def digest(self) -> str:
        """Identifies the checkpoint by its files, independently of later changes to its notes."""
        return sha256(json.dumps(self.sha256, sort_keys=True))

    def to_json(self) -> str:
        """The manifest's text, including its own digest."""
        return json.dumps(with_check(vars(self)), indent=1)


def write_manifest(directory: Path, step: int, notes: dict[str, Any]) -> None:
    """Write the manifest for all other files in a directory."""
    digests = {name: digest for name, digest in hash_folder(directory).items() if name != MANIFEST}
    (directory / MANIFEST).write_text(Manifest(step, notes, digests).to_json())


def read_manifest(directory: Path) -> Manifest:
    """Read a checkpoint's manifest; OSError or ValueError if it is missing or a single bit of it has changed."""
    text = read_small(directory / MANIFEST).decode()
    try:
        facts = json.loads(text)
        manifest = Manifest(facts["step"], facts["notes"], facts["sha256"])
        has_types = (type(manifest.step), type(manifest.notes), type(manifest.sha256)) == (int, dict, dict)
        if has_types and manifest.to_json() == text:
            return manifest
    except (KeyError, TypeError, RecursionError):
        pass
    raise ValueError(f"{directory / MANIFEST} is damaged")


def is_intact(directory: Path) -> bool:
    """Whether the manifest and every file that it lists are as they were written."""
    try:
        return holds(directory, read_manifest(directory).sha256)
    except (OSError, ValueError):
        return False
