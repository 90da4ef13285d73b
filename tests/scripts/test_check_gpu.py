"""scripts/check_gpu.sh: the programs take its commands."""

import os
import shlex
import subprocess

from common.programs import ROOT
from configs.load import load_config
from scripts import benchmark


def test_the_programs_take_the_commands(monkeypatch, tmp_path):
    (tmp_path / "python").write_text('#!/bin/sh\nprintf "%s\\n" "$*" >> "$COMMANDS"\n', encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "COMMANDS": str(tmp_path / "commands")}
    script = ["bash", ROOT / "scripts/check_gpu.sh", tmp_path / "report", "data.root=there"]
    subprocess.run(script, env=os.environ | variables, check=True, stdout=subprocess.DEVNULL)
    commands = [shlex.split(line) for line in (tmp_path / "commands").read_text(encoding="utf-8").splitlines()]
    assert len(commands) == 16
    for program, *arguments in commands:
        if program == "-m":
            module, *arguments = arguments
            program = f"{module.replace('.', '/')}.py"
        assert program == "pytest.py" or (ROOT / program).is_file()
        if program in ("train.py", "tests/faults/prove.py"):
            changes = [argument for argument in arguments[1:] if "=" in argument]
            assert load_config(arguments[0], changes).model.dtype == "bfloat16"  # as cuDNN wants it
        if program == "scripts/benchmark.py":
            monkeypatch.setattr("sys.argv", [program, *arguments])
            parsed = benchmark.command_line()
            assert parsed.gpu and parsed.json.parent == tmp_path / "report"
