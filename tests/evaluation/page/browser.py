"""Headless Chromium, driven over two pipes by its debugging protocol, which needs no other package."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = "chromium", "chromium-browser", "google-chrome"
FLAGS = "--headless --no-sandbox --disable-gpu --remote-debugging-pipe --no-first-run".split()

# Chromium reads commands from descriptor 3 and writes answers to 4.
AS_3_AND_4 = """
import os, sys
for number, ours in enumerate([os.dup(int(each)) for each in sys.argv[1:3]], start=3):
    os.dup2(ours, number)
    os.set_inheritable(number, True)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Page:
    """A page in a browser. Everything it reports as an error stays in ``problems``."""

    def __init__(self, commands: int, answers: int) -> None:
        self.commands, self.answers = commands, os.fdopen(answers, "rb")
        self.number, self.rest, self.problems = 0, b"", list[Any]()
        self.session: dict[str, str] = {}

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command of the protocol."""
        self.number += 1
        command = {"id": self.number, "method": method, "params": params} | self.session
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while (answer := self._receive()).get("id") != self.number:
            if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.problems.append(answer["params"])
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            part = self.answers.read1(2**20)
            assert part, "the browser has ended"
            self.rest += part
        message, _, self.rest = self.rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def open(self, url: str) -> None:
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = {"sessionId": self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        for domain in ("Runtime", "Log", "Page"):
            self.send(f"{domain}.enable")
        self.send("Page.navigate", url=url)
        while self._receive().get("method") != "Page.loadEventFired":
            pass

    def run(self, script: str) -> Any:
        """The value of an expression in the page, which is awaited."""
        found = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Until an expression in the page is true; an error if it is not in two minutes."""
        stop = f"setTimeout(() => fail(new Error({json.dumps(condition)})), 120_000)"
        look = f"const look = () => {condition} ? go() : setTimeout(look, 20)"
        self.run(f"new Promise((go, fail) => {{ {stop}; {look}; look(); }})")

    def press(self, *keys: str) -> None:
        for key in keys:
            text = {"text": "\r"} if key == "Enter" else {}
            self.send("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, **text, **codes(key))
            self.send("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, **codes(key))


def codes(key: str) -> dict[str, int]:
    numbers = {"Tab": 9, "Enter": 13, "ArrowRight": 39, "ArrowDown": 40}
    return {"windowsVirtualKeyCode": numbers[key]}


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """A page of a new browser; without one the test is skipped."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("needs Chromium")
    theirs_in, commands = os.pipe()
    answers, theirs_out = os.pipe()
    start = [sys.executable, "-ISc", AS_3_AND_4, str(theirs_in), str(theirs_out)]
    command = [*start, program, *FLAGS, f"--user-data-dir={folder / 'profile'}"]
    process = subprocess.Popen(
        command, pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Page(commands, answers)
    finally:
        process.kill()
        process.wait()
        os.close(commands)
