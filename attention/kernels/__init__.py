"""Kernels: the same attention as the definition's, by other means. Here is which of them can serve what.

A kernel is named in the config and never replaced in silence: what it cannot serve is a ``KernelError`` that says why
and names the ones that can.
"""

from attention.kernels import chunked, cudnn, tpu, xla
from attention.kernels.request import Device, Request, current_device, tracing_for

__all__ = ["KERNELS", "Device", "KernelError", "Request", "current_device", "kernel_for", "refusal", "tracing_for"]

KERNELS = ("definition", "xla", "chunked", "cudnn", "tpu")
LONG = 256  # positions: from this many queries by as many keys on, chunks are faster on a CPU


class KernelError(ValueError):
    """A kernel was asked for what it cannot do."""


def kernel_for(kernel: str, request: Request) -> str:
    """The name of the kernel to use: ``kernel`` itself, or for ``auto`` the one that the rule below chooses.

    KernelError if it cannot serve the request.
    """
    if kernel == "auto":
        return automatic(request)
    reason = refusal(kernel, request)
    if reason is None:
        return kernel
    able = [name for name in KERNELS if refusal(name, request) is None]
    raise KernelError(f"kernel {kernel} {reason}; for this attention choose {' or '.join(able)}")


def refusal(kernel: str, request: Request) -> str | None:
    """Why a kernel cannot serve a request, as the end of a sentence that begins with its name; None if it can."""
    match kernel:
        case "definition":
            return None
        case "xla":
            return xla.refusal(request)
        case "chunked":
            return chunked.refusal(request)
        case "cudnn":
            return cudnn.refusal(request)
        case "tpu":
            return tpu.refusal(request)
        case _:
            raise KernelError(f"there is no kernel {kernel}; choose {', '.join(KERNELS)} or auto")


def automatic(request: Request) -> str:
    """The rule of ``auto``, measured on CPUs (docs/benchmarks.md): chunks where rows are long, else the definition.

    An accelerator gets the kernel made for it where that can serve; no figure here was measured on one.
    """
    for kernel in ("cudnn", "tpu"):
        if refusal(kernel, request) is None:
            return kernel
    long = request.queries * request.keys >= LONG**2
    return "chunked" if long and refusal("chunked", request) is None else "definition"
