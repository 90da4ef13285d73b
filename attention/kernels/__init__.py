"""Kernels: other ways to compute what the definition computes, and what each of them supports.

They take arrays of the same shapes as ``attend``, and the score is ``scale`` · q·k. The config names a kernel. It is
never replaced silently: if it does not support a request, a ``KernelError`` says why, and which kernels do.
"""

from attention.kernels import chunked, cudnn, tpu, xla
from attention.kernels.request import Request

KERNELS = ("definition", "xla", "chunked", "cudnn", "tpu")
LONG = 256  # positions: with at least LONG × LONG queries and keys, chunks are faster on a CPU


class KernelError(ValueError):
    """Raised when a kernel does not support a request."""


def kernel_for(kernel: str, request: Request) -> str:
    """``kernel`` itself or, for ``auto``, the choice of ``automatic``; KernelError if it is unsupported."""
    if kernel == "auto":
        return automatic(request)
    reason = unsupported(kernel, request)
    if reason is None:
        return kernel
    supporting = [name for name in KERNELS if unsupported(name, request) is None]
    raise KernelError(f"kernel {kernel} {reason}; for this attention choose {' or '.join(supporting)}")


def unsupported(kernel: str, request: Request) -> str | None:
    """Why a kernel does not support a request, as a predicate whose subject is the kernel; None if it does."""
    match kernel:
        case "definition":
            return None
        case "xla":
            return xla.unsupported(request)
        case "chunked":
            return chunked.unsupported(request)
        case "cudnn":
            return cudnn.unsupported(request)
        case "tpu":
            return tpu.unsupported(request)
        case _:
            raise KernelError(f"there is no kernel {kernel}; choose {', '.join(KERNELS)} or auto")


def automatic(request: Request) -> str:
    """The accelerator's own kernel if it supports the request, else chunks for long rows, else the definition.

    The rule for long rows was measured on CPUs, cuDNN on an H200 (docs/benchmarks.md), and the TPU kernel nowhere.
    """
    for kernel in ("cudnn", "tpu"):
        if unsupported(kernel, request) is None:
            return kernel
    is_long = request.queries * request.keys >= LONG**2
    return "chunked" if is_long and unsupported("chunked", request) is None else "definition"
