"""SHA-256 digests in hexadecimal."""

import hashlib
from pathlib import Path


def sha256(content: str | bytes) -> str:
    """Digest of bytes, or of a text's UTF-8."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def sha256_of_file(path: Path) -> str:
    """Digest of a file's content, as sha256sum prints it."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
