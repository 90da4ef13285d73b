"""Commits a fault inside a program. Python imports this at its start where PYTHONPATH names this folder.

Every operation on files below a folder is a line, such as ``rename run/checkpoints/.4``, without the numbers that
differ from run to run. A fault comes when a process meets a line for the n-th time, so that it strikes the same
operation again, whatever other threads do. What Orbax and JAX write in C++ is no line; signals may come between two.
"""

import errno
import json
import os
import re
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any

VERBS = {"open": "read", "os.rename": "rename", "os.remove": "remove", "os.mkdir": "mkdir", "os.rmdir": "rmdir"}
OTHER_EACH_TIME = re.compile(r"[0-9a-f]{16,}|\d{5,}|(?<=\.)\d+(?=\.tmp)")  # random names, times, processes
MONTH = 30 * 86_400  # seconds


class Fault:
    """An audit hook that notes every line and commits its fault at one, unless another process has."""

    def __init__(self, folder: str, line: str, occurrence: int, delay: float, kind: str, amount: float) -> None:
        self.folder, self.point, self.delay, self.kind, self.amount = folder, (line, occurrence), delay, kind, amount
        self.met, self.lines = Counter[str](), os.open(f"{folder}.lines", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.is_full, self.torn, self.size = False, "", 0

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note a line. A write is torn when the process does something else, and a full disk stays full."""
        if event not in VERBS or isinstance(arguments[0], int):
            return
        path = os.path.abspath(os.fsdecode(arguments[0]))
        if not path.startswith(f"{self.folder}/"):
            return
        verb = "write" if event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR) else VERBS[event]
        line = f"{verb} {OTHER_EACH_TIME.sub('N', os.path.relpath(path, self.folder))}"
        self.met[line] += 1
        os.write(self.lines, f"{json.dumps([line, self.met[line], time.monotonic()])}\n".encode())
        if self.torn:
            with suppress(OSError):  # it is gone
                written = os.path.getsize(self.torn) - self.size
                os.truncate(self.torn, self.size + int(self.amount * max(0, written)))
            os.kill(os.getpid(), signal.SIGKILL)
        if self.is_full and verb in ("write", "mkdir"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        if (line, self.met[line]) == self.point:
            Timer(self.delay, self.commit, [path]).start() if self.delay else self.commit(path)

    def commit(self, path: str) -> None:
        try:
            os.close(os.open(f"{self.folder}.committed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        match self.kind:
            case "SIGKILL" | "flipped bit":  # the bit is flipped when the process is gone
                os.kill(os.getpid(), signal.SIGKILL)
            case "SIGTERM twice":
                Timer(self.amount, os.kill, [os.getpid(), signal.SIGTERM]).start()
                os.kill(os.getpid(), signal.SIGTERM)
            case "torn write":
                self.torn, self.size = path, os.path.getsize(path) if os.path.exists(path) else 0
            case "ENOSPC" | "EIO":
                self.is_full = self.kind == "ENOSPC"
                raise OSError(code := getattr(errno, self.kind), os.strerror(code), path)
            case "clock":
                now, jump = time.time, (2 * self.amount - 1) * MONTH
                time.time = lambda: now() + jump
            case "lost lock":
                for lock in Path(self.folder).rglob(".lock*"):
                    lock.unlink(missing_ok=True)
            case "slow disk":
                time.sleep(2 * self.amount)
            case _:
                raise ValueError(self.kind)


if "PUENTE_FAULT" in os.environ:
    sys.addaudithook(Fault(*json.loads(os.environ["PUENTE_FAULT"])))
