"""Accelerators by their vendors' published peaks."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Accelerator:
    """Bandwidths are bytes a second, of links in one direction."""

    name: str
    flops: float  # dense bfloat16 operations a second
    memory: float  # bytes
    memory_bandwidth: float
    inside: float  # bandwidth of a device to others of its node
    between: float  # bandwidth to other nodes; every device has a link of its own
    node: int  # devices in a node

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.flops / 1e12:,.0f} TFLOP/s, {self.memory / 1e9:,.0f} GB at "
            f"{self.memory_bandwidth / 1e9:,.0f} GB/s, links {self.inside / 1e9:,.0f} GB/s in a node of "
            f"{self.node:,}, {self.between / 1e9:,.0f} GB/s between nodes"
        )


# NVIDIA's data sheets. H100 and H200 (SXM): 900 GB/s of NVLink both ways, and 400 Gbit/s of network a GPU. T4: bfloat16
# is computed in float32, and PCIe is the only link, 32 GB/s both ways; that a node has eight is assumed.
# Google's pages "TPU v5e", "TPU v5p" and "TPU v6e" (Cloud TPU): links of 400, 1,200 and 800 GB/s both ways over the 4,
# 6 and 4 links of a torus, of which rings along one axis use two; a pod has no nodes.
ACCELERATORS = {
    "t4": Accelerator("NVIDIA T4", 8.1e12, 16e9, 0.32e12, 16e9, 16e9, 8),
    "h100": Accelerator("NVIDIA H100", 989e12, 80e9, 3.35e12, 450e9, 50e9, 8),
    "h200": Accelerator("NVIDIA H200", 989e12, 141e9, 4.8e12, 450e9, 50e9, 8),
    "v5e": Accelerator("TPU v5e", 197e12, 16e9, 0.819e12, 100e9, 100e9, 256),
    "v5p": Accelerator("TPU v5p", 459e12, 95e9, 2.765e12, 200e9, 200e9, 8960),
    "v6e": Accelerator("TPU v6e", 918e12, 32e9, 1.64e12, 200e9, 200e9, 256),
}
