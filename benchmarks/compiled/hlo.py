"""Read a compiled program (HLO text): its collectives, operands of matrix products, and kernels."""

import re
from collections import Counter
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

BITS = {"pred": 8, "token": 0}  # others have theirs in their name: s32, bf16, f8e4m3
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
CONSTANT = "constant"
PRODUCTS = ("dot", "convolution")  # the TPU's compiler turns products into convolutions
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%([\w.\-]+) = (.*?) ([a-z][\w\-]*)\((.*)$")
_ARRAY = re.compile(r"(\w+)\[([\d,]*)\]")  # layouts, in braces, hold no brackets
_NAME = re.compile(r"%([\w.\-]+)")
_CALLED = re.compile(r"(?:calls|body|condition)=(%[\w.\-]+)|branch_computations=\{([^}]*)\}")
_LOOP = re.compile(r"condition=%([\w.\-]+), body=")


class Array(NamedTuple):
    """The type of an array."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        bits = BITS[self.dtype] if self.dtype in BITS else int(re.findall(r"\d+", self.dtype)[0])
        return prod(self.shape) * bits // 8


class Instruction(NamedTuple):
    """An instruction: name = type opcode(operands), attributes. ``rest`` begins with the operands."""

    name: str
    result: tuple[Array, ...]
    opcode: str
    rest: str
    operands: tuple[str, ...]
    inputs: tuple[Array, ...] = ()  # the arrays of all operands
    times: int = 0  # that a run executes it; a loop of unknown length counts once

    @property
    def custom_call(self) -> str:
        """What a custom call calls, else nothing."""
        found = re.search(r'custom_call_target="([^"]*)"', self.rest)
        return found[1] if found else ""


class Collective(NamedTuple):
    """All collectives of one kind, dtype and number of devices in a run."""

    kind: str
    dtype: str
    devices: int
    times: int
    bytes: int  # that one device puts in, in all

    def sent(self) -> float:
        """Return the bytes that a device sends around a ring, as ``Transfer.sent`` counts them."""
        others = self.devices - 1
        factor = {"all-reduce": 2 * others / self.devices, "all-gather": float(others), "collective-permute": 1.0}
        return self.bytes * factor.get(self.kind, others / self.devices)


def read_program(text: str) -> list[Instruction]:
    """Return the instructions of a program, as ``compiled.as_text()`` writes it."""
    computations: dict[str, list[Instruction]] = {}
    for line in text.splitlines():
        if header := _COMPUTATION.match(line):
            computations[f"{header[1] or ''}{header[2]}"] = body = []
        elif found := _INSTRUCTION.match(line):
            name, kind, opcode, rest = found.groups()
            body.append(Instruction(name, _arrays(kind), opcode, rest, tuple(_NAME.findall(rest.partition(")")[0]))))
    results = {each.name: each.result for body in computations.values() for each in body}
    times: Counter[str] = Counter()
    _count_runs(computations, next(name for name in computations if name.startswith("ENTRY ")), 1, times)
    return [
        each._replace(inputs=sum((results.get(name, ()) for name in each.operands), ()), times=times[name])
        for name, body in computations.items()
        for each in body
        if times[name]
    ]


def list_collectives(program: list[Instruction]) -> list[Collective]:
    """Return the collectives, those of equal kind, dtype and number of devices together."""
    times: Counter[tuple[str, str, int]] = Counter()
    size: Counter[tuple[str, str, int]] = Counter()
    for each in program:
        kind = each.opcode.removesuffix("-start")  # of an asynchronous one its start
        if kind in COLLECTIVES:
            arrays = each.inputs[:1] if kind == "collective-permute" else each.inputs
            devices = _group_size(each.rest)
            times.update({(kind, array.dtype, devices): each.times for array in arrays})
            for array in arrays:
                size[kind, array.dtype, devices] += each.times * array.bytes
    return [Collective(*key, times[key], size[key]) for key in times]


def list_products(program: list[Instruction]) -> list[tuple[Array, ...]]:
    """Return the operands of all matrix products but those inside of other libraries' calls."""
    return [each.inputs[:2] for each in program if each.opcode in PRODUCTS or each.custom_call.startswith("__cublas")]


def count_kernels(program: list[Instruction]) -> dict[str, int]:
    """Count the kernels that are no fused loops: libraries' calls, Triton's and Pallas', and products."""
    counts: Counter[str] = Counter()
    for each in program:
        kind = re.search(r'"kind":"__(\w+)"', each.rest) if each.opcode == "fusion" else None
        if name := each.custom_call or (kind[1] if kind else each.opcode if each.opcode in PRODUCTS else ""):
            counts[name] += 1
    return dict(counts.most_common())


def _count_runs(computations: dict[str, list[Instruction]], name: str, times: int, counts: Counter[str]) -> None:
    """Count how often a run comes to each computation."""
    counts[name] += times
    for each in computations.get(name, ()):
        repeats = _trips(computations, each.rest) if each.opcode == "while" else 1
        for called in _called(each.rest):
            _count_runs(computations, called, times * repeats, counts)


def _trips(computations: dict[str, list[Instruction]], rest: str) -> int:
    """Return how often a loop runs: as the compiler notes, or if it counts from zero to below a constant; else 1."""
    if noted := re.search(r'"known_trip_count":\{"n":"(\d+)"', rest):
        return int(noted[1])
    loop = _LOOP.search(rest)
    condition = computations[loop[1]] if loop else []
    if not condition or condition[-1].opcode != "compare" or "direction=LT" not in condition[-1].rest:
        return 1
    limits = [one.rest.partition(")")[0] for one in condition if one.opcode == CONSTANT]
    return int(limits[0]) if len(limits) == 1 else 1


def _called(rest: str) -> Iterator[str]:
    for name, branches in _CALLED.findall(rest):
        yield from _NAME.findall(name or branches)


def _arrays(text: str) -> tuple[Array, ...]:
    return tuple(Array(dtype, tuple(map(int, filter(None, sizes.split(","))))) for dtype, sizes in _ARRAY.findall(text))


def _group_size(rest: str) -> int:
    """Return the devices that take part: the groups are written as axes of a mesh, as counts or as lists."""
    if named := re.search(r"replica_groups=mesh\[([^\]]*)\][^{]*\{([^}]*)\}", rest):
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", named[1]))
        return prod(int(sizes[axis]) for axis in re.findall(r"'(\w+)'", named[2]))
    if counted := re.search(r"replica_groups=\[\d+,(\d+)\]<=", rest):
        return int(counted[1])
    listed = re.search(r"replica_groups=\{\{([\d,]*)\}", rest)
    return listed[1].count(",") + 1 if listed else 1
