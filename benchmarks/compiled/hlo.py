"""Read a compiled program (HLO text): its collectives, products, kernels, and what the compiler had to add."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

BITS = {"pred": 8, "token": 0}  # others have theirs in their name: s32, bf16, f8e4m3
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
CONSTANT = "constant"
PRODUCTS = ("dot", "convolution")  # the TPU's compiler turns products into convolutions
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%([\w.\-]+) = (.*?) ([a-z][\w\-]*)\((.*)$")
_ARRAY = re.compile(r"(\w+)\[([\d,]*)\]")
_CALLED = re.compile(r"(?:calls|body|condition)=%([\w.\-]+)")
_LOOP = re.compile(r"condition=%([\w.\-]+), body=%([\w.\-]+)")
_INDEX = re.compile(r"index=(\d+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_AXES = re.compile(r"replica_groups=mesh\[([^\]]*)\][^{]*\{([^}]*)\}")
_IOTA = re.compile(r"replica_groups=\[\d+,(\d+)\]<=")
_LIST = re.compile(r"replica_groups=\{\{([\d,]*)\}")


class Array(NamedTuple):
    """The type of an array."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        numbers = re.findall(r"\d+", self.dtype)
        bits = BITS[self.dtype] if self.dtype in BITS else int(numbers[0])
        return prod(self.shape) * bits // 8

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


class Line(NamedTuple):
    """A line of a computation: name = type opcode(operands), and more in ``rest``, from the operands on."""

    name: str
    type: str
    opcode: str
    rest: str


class Instruction(NamedTuple):
    """An instruction, and how often a run of the program executes it; a loop of unknown length counts once."""

    name: str
    result: tuple[Array, ...]
    opcode: str
    operands: tuple[str, ...]
    rest: str  # of its line
    times: int

    @property
    def custom_call(self) -> str:
        """What a custom call calls, else nothing."""
        found = re.search(r'custom_call_target="([^"]*)"', self.rest)
        return found[1] if found else ""


class Collective(NamedTuple):
    """A collective: bytes of what a device puts in, and how many devices take part."""

    kind: str
    dtype: str
    bytes: int
    devices: int
    times: int

    def sent(self) -> float:
        """Bytes that a device sends around a ring in a run, as ``Transfer.sent`` counts them."""
        others = self.devices - 1
        factor = {"all-reduce": 2 * others / self.devices, "all-gather": float(others), "collective-permute": 1.0}
        return self.times * self.bytes * factor.get(self.kind, others / self.devices)


class Product(NamedTuple):
    """A matrix product, of the compiler itself or of cuBLAS."""

    result: Array
    left: Array
    right: Array
    inner: int  # numbers that are multiplied and summed for each one of the result
    times: int

    @property
    def operations(self) -> int:
        """Multiplications and additions in a run."""
        return 2 * self.times * self.inner * prod(self.result.shape)

    def __str__(self) -> str:
        return f"{self.left} · {self.right} → {self.result}"


@dataclass(frozen=True)
class Program:
    """The instructions of a compiled program."""

    instructions: list[Instruction]
    arrays: dict[str, tuple[Array, ...]]  # results by the names of instructions

    def collectives(self) -> list[Collective]:
        """All collectives; of an asynchronous one its start."""
        found = []
        for instruction in self.instructions:
            kind = instruction.opcode.removesuffix("-start")
            if kind in COLLECTIVES:
                operands = [array for name in instruction.operands for array in self.arrays.get(name, ())]
                operands = operands[:1] if kind == "collective-permute" else operands
                for dtype in dict.fromkeys(array.dtype for array in operands):
                    size = sum(array.bytes for array in operands if array.dtype == dtype)
                    found.append(Collective(kind, dtype, size, _group_size(instruction.rest), instruction.times))
        return found

    def products(self) -> list[Product]:
        """All products but those inside of other libraries' calls."""
        return [
            _product(instruction, *(self.arrays[name][0] for name in instruction.operands[:2]))
            for instruction in self.instructions
            if instruction.opcode in PRODUCTS or instruction.custom_call.startswith("__cublas")
        ]

    def kernels(self) -> dict[str, int]:
        """How often kernels that are no fused loops stand in the program: libraries' calls, Triton's and Pallas'."""
        counts: Counter[str] = Counter()
        for instruction in self.instructions:
            kind = re.search(r'"kind":"__(\w+)"', instruction.rest)
            if name := instruction.custom_call:
                counts[name] += 1
            elif kind and instruction.opcode == "fusion":
                counts[kind[1]] += 1
            elif instruction.opcode in PRODUCTS:
                counts[instruction.opcode] += 1
        return dict(counts.most_common())

    def moved(self, opcode: str) -> int:
        """Bytes that instructions of this kind move in a run; those inside of fusions may never reach memory."""
        return sum(
            instruction.times * sum(array.bytes for array in instruction.result)
            for instruction in self.instructions
            if instruction.opcode == opcode
        )

    def rematerialized(self) -> int:
        """Number of instructions that the compiler decided to compute again, to save memory."""
        return sum(".remat" in instruction.name for instruction in self.instructions)


def read_program(text: str) -> Program:
    """Read what ``compiled.as_text()`` returns."""
    bodies = _read_computations(text)
    arrays = {line.name: _arrays(line.type) for lines in bodies.values() for line in lines}
    entry = next(name for name in bodies if name.startswith("ENTRY "))
    times: Counter[str] = Counter()
    _count_calls(bodies, entry, 1, times)
    instructions = [
        Instruction(line.name, arrays[line.name], line.opcode, _operands(line.rest), line.rest, times[name])
        for name, lines in bodies.items()
        for line in lines
        if times[name]
    ]
    return Program(instructions, arrays)


def _read_computations(text: str) -> dict[str, list[Line]]:
    """The instructions of each computation; the entry's name begins with ENTRY."""
    bodies: dict[str, list[Line]] = {}
    lines: list[Line] = []
    for line in text.splitlines():
        if header := _COMPUTATION.match(line):
            lines = bodies.setdefault(f"{header[1] or ''}{header[2]}", [])
        elif instruction := _INSTRUCTION.match(line):
            lines.append(Line(*instruction.groups()))
    return bodies


def _product(instruction: Instruction, left: Array, right: Array) -> Product:
    """Read what is summed over: a dot and a call of cuBLAS list the axes, a convolution has them in its labels.

    A convolution sums over features, and over axes of space of which its result keeps one place. Where the TPU's
    compiler makes a batch of products an axis of space, the result keeps all places, and each meets one of the
    kernel's.
    """
    result = instruction.result[0]
    if contracted := re.search(r"lhs_contracting_dim(?:ension)?s\"?[=:][{\[]([^}\]]*)", instruction.rest):
        inner = prod(left.shape[int(axis)] for axis in re.findall(r"\d+", contracted[1]))
    else:
        labels = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", instruction.rest)
        assert labels, instruction.rest
        kernel, output = (
            dict(zip(*pair, strict=True)) for pair in ((labels[2], right.shape), (labels[3], result.shape))
        )
        inner = kernel["i"] * prod(size for axis, size in kernel.items() if axis.isdigit() and output[axis] == 1)
    return Product(result, left, right, inner, instruction.times)


def _count_calls(bodies: dict[str, list[Line]], name: str, times: int, counts: Counter[str]) -> None:
    """Count how often a run comes to each computation."""
    counts[name] += times
    for line in bodies.get(name, ()):
        repeats = _trips(bodies, line.rest) if line.opcode == "while" else 1
        for called in _called(line.rest):
            _count_calls(bodies, called, times * repeats, counts)


def _trips(bodies: dict[str, list[Line]], rest: str) -> int:
    """How often a loop runs: as the compiler notes, or if it counts from zero to below a constant; else 1."""
    if noted := _TRIPS.search(rest):
        return int(noted[1])
    names = _LOOP.search(rest)
    condition, body = (bodies.get(name, []) for name in names.groups()) if names else ([], [])
    if not condition or not body or condition[-1].opcode != "compare" or "direction=LT" not in condition[-1].rest:
        return 1
    counter, limit = (_find(condition, name) for name in _operands(condition[-1].rest))
    place = _INDEX.search(counter.rest) if counter else None
    if place is None or limit is None or limit.opcode != CONSTANT:
        return 1
    added = _find(body, _operands(body[-1].rest)[int(place[1])])
    steps = [_find(body, name) for name in _operands(added.rest)] if added and added.opcode == "add" else []
    step = next((_constant(line) for line in steps if line and line.opcode == CONSTANT), 1)
    return -(-_constant(limit) // step)


def _find(lines: list[Line], name: str) -> Line | None:
    return next((line for line in lines if line.name == name), None)


def _constant(line: Line) -> int:
    return int(line.rest.partition(")")[0])


def _called(rest: str) -> Iterator[str]:
    yield from _CALLED.findall(rest)
    for branches in _BRANCHES.findall(rest):
        yield from re.findall(r"%([\w.\-]+)", branches)


def _operands(rest: str) -> tuple[str, ...]:
    """The names in the parentheses after the opcode."""
    depth = 1
    for index, character in enumerate(rest):
        depth += (character == "(") - (character == ")")
        if not depth:
            return tuple(re.findall(r"%([\w.\-]+)", rest[:index]))
    return ()


def _arrays(text: str) -> tuple[Array, ...]:
    """The arrays of a type; layouts in braces hold no brackets."""
    return tuple(Array(dtype, tuple(map(int, filter(None, sizes.split(","))))) for dtype, sizes in _ARRAY.findall(text))


def _group_size(rest: str) -> int:
    """The devices that take part: the groups are written as axes of a mesh, as counts or as lists."""
    if named := _AXES.search(rest):
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", named[1]))
        return prod(int(sizes[axis]) for axis in re.findall(r"'(\w+)'", named[2]))
    if counted := _IOTA.search(rest):
        return int(counted[1])
    if listed := _LIST.search(rest):
        return listed[1].count(",") + 1
    return 1
