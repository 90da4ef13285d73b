"""Where the time of training steps goes: the operations in a profile made with ``training.profile``."""

import re
from collections import defaultdict
from collections.abc import Callable
from itertools import accumulate, chain
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from jax.profiler import ProfileData

from common.errors import UserError
from common.text_table import Table, three_digits
from training.devices.profile import STEP
from training.run.layout import PROFILE

# By the first of these that occurs in the name of a kernel or of XLA's operation.
KINDS = {
    "transfers between devices": r"nccl|all-reduce|all-gather|reduce-scatter|all-to-all|collective",
    "attention by cuDNN": r"cudnn|fmha|sdpa|flash",
    "matrix products": r"gemm|nvjet|cutlass|cublas|xmma|dot|ynn|xnn|convolution",
    "copies and transposes": r"memcpy|memset|copy|transpose",
}
OTHER = "element-wise, reductions, other"
CONTAINERS = re.compile(r"(while|call|conditional)\b")  # a CPU records them beside the operations that they contain
SHOWN = 15


class Operation(NamedTuple):
    """What a device did, with its times in nanoseconds."""

    name: str
    kind: str
    start: float
    end: float

    def duration(self) -> float:
        return self.end - self.start


class Profile(NamedTuple):
    """The operations of every device in a number of steps."""

    steps: int
    devices: dict[str, list[Operation]]


def find_profile(run_dir: Path) -> Path:
    """Return the newest profile of a run; UserError if it has none."""
    found = sorted((run_dir / PROFILE).glob("plugins/profile/*/*.xplane.pb"))
    if not found:
        raise UserError(f"{run_dir} has no profile: train 30 steps or more with training.profile=[21,30]")
    return found[-1]


def read_profile(path: Path) -> Profile:
    """Read a file of ``find_profile``; UserError if it is damaged, or has nothing in it."""
    try:
        return parse_profile(ProfileData.from_file(str(path)))
    except RuntimeError as error:
        raise UserError(f"{path} is damaged: remove it, or profile again") from error


def parse_profile(data: ProfileData) -> Profile:
    """Return the operations of the devices in JAX's ``ProfileData``; UserError if there are none.

    GPUs have a line for each stream, TPUs one for operations. A CPU has them among the events of its threads.
    """
    steps, devices = 0, {}
    for plane in data.planes:
        lines = [(line.name, list(line.events)) for line in plane.lines]
        on_device = plane.name.startswith("/device:")
        steps += sum(event.name == STEP for _, found in lines for event in found if not on_device)
        if on_device:
            events = [event for name, found in lines if name.startswith(("Stream", "XLA Ops")) for event in found]
        else:
            events = [event for _, found in lines for event in found if "hlo_op" in dict(event.stats)]
        if operations := [operation_of(event) for event in events if not CONTAINERS.match(event.name)]:
            devices[plane.name if on_device else "CPU"] = operations
    if not (steps and devices):
        raise UserError("the profile has no training steps in it, or no operations of a device")
    return Profile(steps, devices)


def operation_of(event: Any) -> Operation:
    names = f"{event.name} {dict(event.stats).get('hlo_op', '')}".lower()
    kind = next((kind for kind, pattern in KINDS.items() if re.search(pattern, names)), OTHER)
    return Operation(re.sub(r"([._]\d+)+$", "", event.name), kind, event.start_ns, event.start_ns + event.duration_ns)


def summarize(profile: Profile) -> tuple[list[Table], dict[str, Any]]:
    """Return tables by device, by kind and by operation, and the same as an object for JSON.

    Milliseconds are those of one step and one device. Operations may run side by side: their sum can exceed a step.
    """
    devices = {name: describe_device(operations, profile.steps) for name, operations in profile.devices.items()}
    header = ["device", "ms a step", "idle", "longest pause ms"]
    cells = [[name, three_digits(ms), f"{idle:.1%}", f"{pause:.3f}"] for name, (ms, idle, pause) in devices.items()]
    kinds, names = measure_shares(profile, attrgetter("kind")), measure_shares(profile, attrgetter("name"))
    columns = ["times a step", "ms a step", "share"]
    tables = [
        Table("Devices", f"{profile.steps} steps.", header, cells),
        Table("Kinds of operations", "", ["kind", *columns], [[one["name"], *share_cells(one)] for one in kinds]),
        Table(
            "Operations",
            "",
            ["operation", "kind", *columns],
            [[one["name"], one["kind"], *share_cells(one)] for one in names[:SHOWN]],
        ),
    ]
    figures = {
        "steps": profile.steps,
        "devices": {name: dict(zip(header[1:], of, strict=True)) for name, of in devices.items()},
        "kinds": kinds,
        "operations": names,
    }
    return tables, figures


def describe_device(operations: list[Operation], steps: int) -> tuple[float, float, float]:
    """Return milliseconds a step, the share of the time in which nothing ran, and the longest pause in milliseconds."""
    ordered = sorted(operations, key=attrgetter("start"))
    ends = list(accumulate((operation.end for operation in ordered), max))
    pauses = [max(0.0, after.start - end) for end, after in zip(ends, ordered[1:], strict=False)]
    span = ends[-1] - ordered[0].start
    return span / steps / 1e6, sum(pauses) / span, max(pauses, default=0.0) / 1e6


def measure_shares(profile: Profile, group_by: Callable[[Operation], str]) -> list[dict[str, Any]]:
    """Return times a step, milliseconds a step and the share of all operations' time, the longest first."""
    groups = defaultdict[str, list[Operation]](list)
    for operation in chain(*profile.devices.values()):
        groups[group_by(operation)].append(operation)
    durations = {name: sum(map(Operation.duration, group)) for name, group in groups.items()}
    parts, total = profile.steps * len(profile.devices), sum(durations.values()) or 1.0
    return [
        {"name": name, "kind": groups[name][0].kind, "times": len(groups[name]) / parts}
        | {"ms": duration / parts / 1e6, "share": duration / total}
        for name, duration in sorted(durations.items(), key=itemgetter(1), reverse=True)
    ]


def share_cells(one: dict[str, Any]) -> list[str]:
    return [three_digits(one["times"]), three_digits(one["ms"]), f"{one['share']:.1%}"]
