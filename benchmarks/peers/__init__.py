"""Other libraries on the same work: PyTorch, MarianMT of transformers, and CTranslate2.

``pip install -e '.[bench]'`` installs them. They are never dependencies: a module here imports its library, and is
imported only after ``check_installed``.
"""

from importlib.metadata import version
from importlib.util import find_spec

import jax

from common.errors import UserError


def check_installed(*packages: str) -> None:
    """UserError if a package is missing; its message continues a sentence that starts with the contestant's name."""
    if missing := [package for package in packages if find_spec(package) is None]:
        raise UserError(f"needs {', '.join(missing)}: pip install -e '.[bench]'")


def installed_versions() -> dict[str, str | None]:
    """Return the version of every peer, or None if it is not installed."""
    packages = ("torch", "transformers", "ctranslate2")
    return {package: version(package) if find_spec(package) else None for package in packages}


def device_name() -> str:
    """Return the peers' name for the kind of device that JAX computes on."""
    return "cuda" if jax.default_backend() == "gpu" else "cpu"
