"""python scripts/check_gpu.py: its commands are ones that the programs take, and some of them run in small."""

import json
import sys
from functools import partial
from itertools import chain

import pytest

from configs.load import load_config
from scripts import benchmark, check_gpu
from scripts.check_gpu import Command

PROGRAM = "scripts/check_gpu.py"


def steps(monkeypatch, *arguments, gpu):
    monkeypatch.setattr("sys.argv", [PROGRAM, *arguments])
    return check_gpu.list_steps(check_gpu.command_line(), gpu=gpu)


@pytest.mark.parametrize("small", [[], ["--small"]])
def test_the_programs_take_the_commands_for_a_gpu(monkeypatch, small, tmp_path):
    programs = set()
    for command in chain(*steps(monkeypatch, str(tmp_path), "data.root=there", *small, gpu=True).values()):
        config, *rest = command.arguments
        changes = [argument for argument in rest if "=" in argument and not argument.startswith("-")]
        match command.program:
            case "train.py" | "scripts/prove_resume.py":
                assert load_config(config, changes).model.dtype == "bfloat16"  # as cuDNN wants it
            case "scripts/benchmark.py":
                monkeypatch.setattr("sys.argv", [command.program, *command.arguments])
                parsed = benchmark.command_line()
                assert parsed.gpu and parsed.json.parent == tmp_path
                if parsed.measure is benchmark.benchmark_training:
                    path, overrides = benchmark.choose_experiment(parsed)
                    contestants = benchmark.contestants_on_full_batches(parsed, load_config(path, overrides))
                    names = [who.name for who in contestants]
                    peers = ["puente", "marian-bfloat16", "torch-bfloat16"]
                    assert names == (peers if parsed.peer else ["puente cudnn", "puente definition"])
        programs.add(command.program)
    assert programs == {"-m", "train.py", "eval.py"} | {
        f"scripts/{name}.py" for name in ("benchmark", "prove_resume", "replay")
    }


def test_mistakes_end_in_one_line_and_code_2(refuses, monkeypatch, tmp_path):
    mistake = partial(refuses, check_gpu.main)
    monkeypatch.setattr(check_gpu, "find_platform", lambda: "cpu")
    mistake("JAX sees no GPU here but a cpu; --small rehearses every step", tmp_path)
    mistake("there is no step speed; choose from kernels, agreement, resume, training", tmp_path, "speed", "--small")
    (tmp_path / "kernels.log").touch()
    mistake("has kernels.log already: choose a new folder, or other steps", tmp_path, "--small", "kernels")
    mistake("kernels.log is a file; name a folder", tmp_path / "kernels.log", "--small")
    mistake("unknown key data.rot; the nearest valid name is data.root", tmp_path, "data.rot=there")
    assert [path.name for path in tmp_path.iterdir()] == ["kernels.log"]


def test_how_a_command_ended(tmp_path):
    endings = {("pass", False): "done", ("exit(1)", False): "failed", ("exit(1)", True): "differs"}
    endings["exit(2)", True] = "failed"
    for (code, compares), ending in endings.items():
        command = Command(1, "-c", [f"print('here'); {code}"], compares=compares)
        log = tmp_path / f"{code}{compares}.log"
        assert check_gpu.run(command, log) == ending
        assert log.read_text().splitlines()[:3] == ["", f"$ {command}", "here"]
        assert check_gpu.last_line(log) == "here"


@pytest.mark.slow
def test_a_command_that_takes_too_long_ends_with_all_that_it_started(tmp_path):
    child = f"import time; time.sleep(1); open({str(tmp_path / 'late')!r}, 'w')"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    assert check_gpu.run(Command(0.01, "-c", [code]), tmp_path / "step.log") == "stopped"
    assert check_gpu.run(Command(1, "-c", ["import time; time.sleep(1.5)"]), tmp_path / "step.log") == "done"
    assert not (tmp_path / "late").exists()


@pytest.mark.nightly
def test_steps_run_in_small(call, tmp_path):
    folder = tmp_path / "report"
    done = call(PROGRAM, folder, "attention", "quality", "decoding", "--small")
    assert done.returncode == 0, done.stdout.decode() + "".join(log.read_text() for log in folder.glob("*.log"))
    ended = json.loads((folder / "steps.json").read_text(encoding="utf-8"))
    assert [(one["step"], one["ending"]) for one in ended] == [
        ("attention", "done"),
        ("quality", "done"),
        ("quality", "done"),
        ("decoding", "done"),
    ]
    assert ended[1]["command"].startswith("python train.py configs/quickstart.yaml ")
    assert {"attention.json", "decoding.json", "eval", "quality.log"} <= {path.name for path in folder.iterdir()}
    assert json.loads((folder / "decoding.json").read_text())["text"]["run"] == str(folder / "runs" / "quality")
    assert sys.executable not in ended[0]["command"]
