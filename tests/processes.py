"""Code in a process of its own, and limits of this one."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from common.programs import ROOT

LIMIT = 600  # seconds: what takes longer hangs


def run_code(code: str, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run code in the project's root, with these variables besides those of this process."""
    command, environment = [sys.executable, "-c", code, *map(str, arguments)], os.environ | variables
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT)


def printed_by(code: str, *arguments: object, **variables: str) -> list[str]:
    """The lines that code prints, which must end well and tell nothing on standard error."""
    done = run_code(code, *arguments, **variables)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@contextmanager
def files_limited_to(size: int) -> Iterator[None]:
    """No file that this process writes may be larger, in bytes: as with a quota. Python ignores the signal."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
