"""How long it takes to read a large ResourceSlice, and to import the package."""

import statistics
import subprocess
import sys
from collections.abc import Callable

from bench import timing
from drachma.api import codec
from drachma.testing import device, resource_slice


def large_slice() -> bytes:
    """128 devices with 12 attributes and a capacity each, as JSON."""
    devices = (
        device(f"gpu-{number}")
        .attributes(
            uuid=f"gpu-{number:08x}-aaaa-bbbb-cccc-ddddeeeeffff",
            model="a100-sxm4-80gb",
            architecture="ampere",
            brand="example",
            index=number,
            minor=number,
            numa=number // 64,
            healthy=True,
            ecc=False,
            root=f"pci0000:{number // 8:02x}",
            bus=f"0000:{number:02x}:00.0",
            profile="whole",
        )
        .capacity("memory", "80Gi")
        for number in range(128)
    )
    built = resource_slice("node-1-gpus", driver="gpu.example.com", pool="node-1").on_node("node-1").devices(*devices)
    return codec.encode_json(built.build())


def import_milliseconds(module: str) -> float:
    """The median of several fresh interpreters, less what an interpreter needs to start."""

    def run(code: str) -> float:
        measure = f"import time; t = time.perf_counter(); {code}; print((time.perf_counter() - t) * 1000)"
        return float(subprocess.run([sys.executable, "-c", measure], check=True, capture_output=True).stdout)

    return statistics.median(run(f"import {module}") for _ in range(5))


def main() -> None:
    data = large_slice()
    stored = codec.decode_json(data)
    document = codec.encode(stored)
    cases: list[tuple[str, Callable[[], object], str]] = [
        ("decode JSON, v1", lambda: codec.decode_json(data), "1 ms"),
        ("decode document, v1", lambda: codec.decode(document), ""),
        ("encode JSON, v1", lambda: codec.encode_json(stored), ""),
        ("encode JSON, v1beta1", lambda: codec.encode_json(stored, api_version="resource.k8s.io/v1beta1"), ""),
    ]
    rows = [(name, f"{timing.best(call) * 1000:.3f} ms", aim) for name, call, aim in cases]
    rows += [
        (f"import {module}", f"{import_milliseconds(module):.0f} ms", aim)
        for module, aim in (("drachma", "150 ms"), ("drachma.api.codec", "150 ms"), ("drachma.cli", ""))
    ]
    timing.table(f"ResourceSlice of 128 devices, 12 attributes each ({len(data)} bytes)", ("what", "time", "aim"), rows)
