"""Models that together have every choice of the config, for the tests that each kind of model must pass."""

from itertools import cycle, islice
from typing import Any

from attention.kernels import KERNELS, KernelError, kernel_for
from attention.kernels.request import Device, Request
from attention.scores import SCORES
from common.errors import UserError
from model.activations import ACTIVATIONS
from model.config import NORMS, POSITIONS, ModelConfig
from training.devices.preflight import choose_kernels

PLAIN = Request(Device("cpu"), "float32", "scaled_dot_product", queries=10, keys=12, width=64, value_width=64)
CHOICES: dict[str, list[Any]] = {
    "positions": list(POSITIONS),
    "score": list(SCORES),
    "norm": list(NORMS),
    "activation": list(ACTIVATIONS),
    "gated": [False, True, True],
    "query_key_norm": [False, False, True],
    "head_gates": [False, True],
    "value_residual": [False, False, False, True, True],
    "encoder_width": [0, 0, 0, 24],
    "key_value_heads": [0, 0, 1],
    "value_dim": [0, 0, 0, 7],
}


def serves(kernel: str, request: Request) -> bool:
    try:
        return kernel_for(kernel, request) == kernel
    except KernelError:
        return False


KERNELS_ANYWHERE = [kernel for kernel in KERNELS if serves(kernel, PLAIN)]


def variants(**sizes: Any) -> dict[str, dict[str, Any]]:
    """As few changes of a config as have each choice at least once, by a name that lists them.

    The first changes nothing. Each kernel that runs anywhere is in the first variant that it serves and that has none.
    """
    count = max(map(len, CHOICES.values()))
    columns = [[(key, value) for value in islice(cycle(values), count)] for key, values in CHOICES.items()]
    defaults = vars(ModelConfig(**sizes))
    found = [{key: value for key, value in row if value != defaults[key]} for row in zip(*columns, strict=True)]
    for kernel in (*KERNELS_ANYWHERE[1:], "auto"):
        request = {"kernel": kernel}
        free = (each for each in found[1:] if "kernel" not in each and is_served(sizes | each | request))
        next(free).update(request)
    return {" ".join(f"{key}={value}" for key, value in changes.items()) or "nothing": changes for changes in found}


def is_served(config: dict[str, Any]) -> bool:
    try:
        return bool(choose_kernels(ModelConfig(**config), (12, 12)))
    except UserError:
        return False
