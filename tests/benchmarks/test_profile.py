"""Profiles: one written by hand with the lines of a GPU, and real ones of a CPU."""

import json
from collections import Counter

import jax
import pytest
from jax.profiler import ProfileData

from benchmarks.profile import OTHER, find_profile, parse_profile, read_profile, summarize
from benchmarks.training import PuenteSteps, Task
from common.errors import UserError
from tests.benchmarks.small import STEP, TRAINING
from training.devices.profile import profiled

# Two steps in which the device computes from 0 to 4 ms and from 5 to 10 ms; a copy runs beside a product.
KERNELS = {
    "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT": [(0, 2), (5, 2)],
    "cudnn_generated_fort_native_sdpa_sm90_flash_bprop": [(2, 1), (7, 1)],
    "loop_add_fusion_12": [(3, 0.5), (8, 1)],
    "loop_add_fusion": [(3.5, 0.5), (9, 1)],
    "ncclDevKernel_AllReduce_Sum_bf16": [],
}
COPIES = {"MemcpyH2D": [(1, 0.5), (6, 0.5)]}
STEPS = {"train_step": [(0, 0.1), (0.2, 0.1)], "other": [(0.4, 0.1)]}


def plane(name, **lines):
    """A plane of a profile as text: lines of events by name, each with its start and duration in milliseconds."""
    numbers = {event: number for number, event in enumerate((event for line in lines.values() for event in line), 1)}
    text = []
    for line, events in lines.items():
        of_line = [
            f"events {{ metadata_id: {numbers[event]} offset_ps: {start * 1e9:.0f} duration_ps: {duration * 1e9:.0f} }}"
            for event, times in events.items()
            for start, duration in times
        ]
        text.append(f'lines {{ name: "{line}" {" ".join(of_line)} }}')
    text += [f'event_metadata {{ key: {n} value {{ id: {n} name: "{event}" }} }}' for event, n in numbers.items()]
    return f'planes {{ name: "{name}" {" ".join(text)} }}'


def parse(*planes):
    return parse_profile(ProfileData.from_text_proto("\n".join(planes)))


def test_by_hand():
    gpu = plane("/device:GPU:0", **{"Stream #13(Compute)": KERNELS, "Stream #14(MemcpyH2D)": COPIES, "Notes": STEPS})
    tables, figures = summarize(parse(gpu, plane("/host:CPU", python=STEPS)))
    assert figures["steps"] == 2
    assert figures["devices"] == {"/device:GPU:0": {"ms a step": 5.0, "idle": 0.1, "longest pause ms": 1.0}}
    assert {kind["name"]: (kind["times"], kind["ms"]) for kind in figures["kinds"]} == {
        "matrix products": (1, 2.0),
        "attention by cuDNN": (1, 1.0),
        "copies and transposes": (1, 0.5),
        OTHER: (2, 1.5),
    }
    assert sum(kind["share"] for kind in figures["kinds"]) == pytest.approx(1)
    shown = [row[:4] for row in tables[2].rows]
    assert shown[0] == ["nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT", "matrix products", "1.00", "2.00"]
    assert shown[1] == ["loop_add_fusion", OTHER, "2.00", "1.50"]  # however it is numbered


def test_two_devices_share_the_steps():
    planes = [plane(f"/device:GPU:{n}", **{"Stream #13(Compute)": KERNELS}) for n in (0, 1)]
    _, figures = summarize(parse(*planes, plane("/host:CPU", python=STEPS)))
    assert list(figures["devices"]) == ["/device:GPU:0", "/device:GPU:1"]
    first = {key: figures["kinds"][0][key] for key in ("name", "times", "ms", "share")}
    assert first == {"name": "matrix products", "times": 1, "ms": 2.0, "share": pytest.approx(2 / 4.5)}


def test_kernels_have_kinds():
    kinds = {
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL": "transfers between devices",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64": "matrix products",
        "gemm_fusion_dot": "matrix products",
        "input_transpose_fusion": "copies and transposes",
        "loop_convert_fusion": OTHER,
        "input_reduce_fusion": OTHER,
    }
    profile = parse(plane("/device:GPU:0", Stream={name: [(0, 1)] for name in kinds}), plane("/host:CPU", python=STEPS))
    assert {operation.name: operation.kind for operation in profile.devices["/device:GPU:0"]} == kinds


def test_without_steps_or_operations_it_says_so():
    with pytest.raises(UserError, match="no training steps in it, or no operations"):
        parse(plane("/host:CPU", python=STEPS))
    with pytest.raises(UserError, match="no training steps in it, or no operations"):
        parse(plane("/device:GPU:0", Stream=KERNELS))


@pytest.fixture(scope="module")
def program():
    """Training steps that are compiled already."""
    return PuenteSteps(Task(STEP, TRAINING))


@pytest.fixture
def take_steps(program, tmp_path):
    """Take this many steps after those ``taken`` by a run, and record some; says after which there is a profile."""

    def take_steps(count, recorded, taken):
        unprofiled, found = program.train_step, []
        with profiled(unprofiled, recorded, taken, tmp_path / "profile") as program.train_step:
            for _ in range(count):
                jax.block_until_ready(program())
                found.append((tmp_path / "profile").exists())
        program.train_step = unprofiled
        return found

    return take_steps


@pytest.mark.slow
def test_the_steps_asked_for_are_recorded(take_steps, tmp_path):
    assert take_steps(6, [3, 5], taken=1) == [False] * 3 + [True] * 3  # the steps 2 to 7
    path = find_profile(tmp_path)
    profile = read_profile(path)
    assert profile.steps == 3
    times = Counter(operation.name for operation in profile.devices["CPU"])
    assert times and all(count % 3 == 0 for count in times.values()), times
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(UserError, match=r"xplane\.pb is damaged: remove it, or profile again$"):
        read_profile(path)


@pytest.mark.parametrize(("steps", "recorded"), [([3, 9], 2), ([1, 1], 0), ([5, 5], 1)])
def test_a_session_records_what_it_takes_of_the_steps(steps, recorded, take_steps, tmp_path):
    """One that begins after update 4 and ends after update 6."""
    take_steps(2, steps, taken=4)
    assert (tmp_path / "profile").exists() == bool(recorded)
    assert not recorded or read_profile(find_profile(tmp_path)).steps == recorded


@pytest.mark.slow
def test_a_run_is_profiled_and_shown(call, small_experiment, tmp_path):
    run, figures = tmp_path / "run", tmp_path / "figures.json"
    done = call("train.py", small_experiment, f"run_dir={run}", "training.steps=24", "training.profile=[22,23]")
    assert done.returncode == 0, done.stderr.decode()
    done = call("scripts/show_profile.py", run, "--json", figures)
    assert done.returncode == 0, done.stderr.decode()
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith(f"{run}/profile/plugins/profile/") and lines[2:4] == ["DEVICES", "2 steps."]
    found = json.loads(figures.read_text(encoding="utf-8"))
    assert found["steps"] == 2 and len(found["operations"]) > 15 and found["devices"]["CPU"]["ms a step"] > 0

    done = call("scripts/show_profile.py", tmp_path)
    message = f"error: {tmp_path} has no profile: train 30 steps or more with training.profile=[21,30]\n"
    assert (done.returncode, done.stdout, done.stderr.decode()) == (2, b"", message)
