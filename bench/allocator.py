"""The allocator beside upstream's: easy claims, claims on which upstream's search explodes, and selectors in bulk.

Upstream's figures were measured with its Go allocator on a machine of this kind. Every case is run as a scheduler
would run it: catalog, classes and claims are known, the search is not.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import NamedTuple

from bench import timing
from drachma import allocator
from drachma.allocator import budget, expressions, selectors
from drachma.api import resourceclaim, resourceslice
from drachma.testing import claim, device, device_class, resource_slice

_GPU = "gpu.example.com"
_NIC = "nic.example.com"
_ROOT = "resource.kubernetes.io/pcieRoot"
_NODE = allocator.Node("n1")
_CLASSES = (
    device_class(_GPU, f'device.driver == "{_GPU}"').build(),
    device_class(_NIC, f'device.driver == "{_NIC}"').build(),
)
_SEARCH_STEPS_UPSTREAM = 130


class _Case(NamedTuple):
    name: str
    upstream: str
    aim: str
    slices: tuple[resourceslice.ResourceSlice, ...]
    claims: tuple[resourceclaim.ResourceClaim, ...]
    fits: bool


def main() -> None:
    """Print all tables."""
    timing.table(
        "allocator: one call of allocate",
        ("case", "answer", "steps", "Go", "aim", "drachma"),
        [_measure(case) for case in _cases()],
    )
    timing.table("allocator: search steps", ("workload", "upstream", "drachma"), [_partitionable_steps()])
    timing.table(
        "allocator: growth where upstream's is factorial",
        ("n", "n requests on n-1 devices", "n claims of GPU+NIC, n-1 pairs"),
        [
            (str(count), *(_microseconds(_run(case)) for case in (_pigeons(count), _one_pair_short(count))))
            for count in (4, 8, 16, 32)
        ],
    )
    timing.table(
        "allocator: one million evaluations of one selector, 10,000 devices of 20 kinds",
        ("", "aim", "drachma"),
        _selector_rows(),
    )


def _slices(driver: str, roots: list[int]) -> resourceslice.ResourceSlice:
    """One pool with a device for every root given."""
    devices = [
        device(f"dev-{number:03}").attribute(_ROOT, f"pci0000:{root:02x}").attributes(model="A100", index=number)
        for number, root in enumerate(roots)
    ]
    return resource_slice(driver.split(".")[0], driver=driver).on_node("n1").devices(*devices).build()


def _claim_for(count: int, *, name: str = "c", select: str = "") -> resourceclaim.ResourceClaim:
    return claim(name).request("r", device_class=_GPU, count=count, mode="ExactCount", select=select or ()).build()


def _claim_with(requests: int) -> resourceclaim.ResourceClaim:
    builder = claim("c")
    for number in range(requests):
        builder = builder.request(f"r{number}", device_class=_GPU, count=1, mode="ExactCount")
    return builder.build()


def _pair(name: str) -> resourceclaim.ResourceClaim:
    builder = claim(name).request("gpu", device_class=_GPU, count=1, mode="ExactCount")
    return builder.request("nic", device_class=_NIC, count=1, mode="ExactCount").match_attribute(_ROOT).build()


def _same_root(requests: int) -> resourceclaim.ResourceClaim:
    builder = claim("c").match_attribute(_ROOT)
    for number in range(requests):
        builder = builder.request(f"r{number}", device_class=_GPU, count=1, mode="ExactCount")
    return builder.build()


def _cases() -> list[_Case]:
    ten = (_slices(_GPU, [0] * 10),)
    model = f'device.attributes["{_GPU}"].model == "A100"'
    roots_of_four = (_slices(_GPU, [root for root in range(8) for _ in range(4)]),)
    five_of_one = claim("c").request("r", device_class=_GPU, count=5, mode="ExactCount").match_attribute(_ROOT).build()
    scarce = (_slices(_GPU, [root for root in range(4) for _ in range(2)]), _slices(_NIC, [1, 2, 3]))
    pairs = tuple(_pair(f"c{number}") for number in range(4))
    last = (_slices(_GPU, list(range(32))), _slices(_NIC, [31]))
    return [
        _Case("1 of 10 devices", "10 us", "30 us", ten, (_claim_for(1),), fits=True),
        _Case("1 of 10 with a CEL selector", "17 us", "30 us", ten, (_claim_for(1, select=model),), fits=True),
        _Case("5 requests, same PCIe root, 10 devices", "90 us", "100 us", ten, (_same_root(5),), fits=True),
        _Case("8 of 128 devices", "76 us", "150 us", (_slices(_GPU, [0] * 128),), (_claim_for(8),), fits=True),
        _Case("10 wanted of 9 devices", "11 ms", "0.1 ms", (_slices(_GPU, [0] * 9),), (_claim_for(10),), fits=False),
        _pigeons(8)._replace(upstream="251 ms", aim="0.2 ms"),
        _pigeons(12)._replace(upstream="does not end", aim="0.3 ms"),
        _Case("5 of one root, 8 roots of 4", "20 ms", "0.3 ms", roots_of_four, (five_of_one,), fits=False),
        _Case("5 requests of one root, 8 roots of 4", "", "0.3 ms", roots_of_four, (_same_root(5),), fits=False),
        _Case("4 claims of GPU+NIC on one root, 3 NICs", "9 ms", "1 ms", scarce, pairs, fits=False),
        _Case("3 claims of GPU+NIC on one root, 3 NICs", "", "1 ms", scarce, pairs[:3], fits=True),
        _Case("32 roots, GPU+NIC pair only in the last", "1.3 ms", "0.3 ms", last, (_pair("c"),), fits=True),
        _partitionable(),
    ]


def _pigeons(requests: int) -> _Case:
    slices = (_slices(_GPU, [0] * (requests - 1)),)
    name = f"{requests} requests on {requests - 1} devices"
    claims = tuple(_claim_for(1, name=f"c{number}") for number in range(requests))
    return _Case(name, "", "", slices, (_claim_with(requests),) if requests <= 32 else claims, fits=False)


def _one_pair_short(claims: int) -> _Case:
    """Enough GPUs and NICs for all claims, but two NICs share a root with one GPU."""
    gpus = [0, *(root for root in range(1, claims + 3) for _ in range(2))]
    slices = (_slices(_GPU, gpus), _slices(_NIC, [0, 0, *range(1, claims - 1)]))
    return _Case("", "", "", slices, tuple(_pair(f"c{number}") for number in range(claims)), fits=False)


def _partitionable() -> _Case:
    """The backtracking workload of upstream's scheduler_perf: the first of eight devices must not be taken."""
    counters = resource_slice("counters", driver=_GPU, pool="p", slices=2).on_node("n1")
    counters = counters.counters("cpu", **{f"cpu{number}": 1 for number in range(1, 9)}).counters("mem", mem="70Gi")
    devices = [
        device(f"device-{number}")
        .consumes("cpu", **{f"cpu{number}": 1})
        .consumes("mem", mem="20Gi" if number == 1 else "10Gi")
        for number in range(1, 9)
    ]
    published = resource_slice("devices", driver=_GPU, pool="p", slices=2).on_node("n1").devices(*devices)
    slices = (counters.build(), published.build())
    return _Case("7 of 8 partitions, the first too large", "", "", slices, (_claim_for(7),), fits=True)


def _run(case: _Case) -> Callable[[], allocator.Outcome]:
    features = allocator.Features.parse_names(["all"])
    numbers = itertools.count()
    built = allocator.Allocator(
        allocator.Catalog(case.slices),
        classes=allocator.Classes(_CLASSES),
        allocated=allocator.AllocatedState(consumable_capacity=True),
        compiler=selectors.SelectorCompiler(features),
        features=features,
        share_ids=lambda: f"share-{next(numbers)}",
    )
    return lambda: built.allocate(_NODE, case.claims)


def _measure(case: _Case) -> tuple[str, ...]:
    run = _run(case)
    run()
    outcome = run()
    if isinstance(outcome, allocator.Allocated) is not case.fits:
        raise AssertionError(f"{case.name}: {outcome}")
    answer = "fits" if case.fits else "does not fit"
    return case.name, answer, str(outcome.steps), case.upstream, case.aim, _microseconds(run)


def _microseconds(call: Callable[[], object]) -> str:
    return f"{timing.best(call, seconds=0.3) * 1e6:,.0f} us"


def _partitionable_steps() -> tuple[str, ...]:
    run = _run(_partitionable())
    run()
    return "7 of 8 partitions (scheduler_perf)", str(_SEARCH_STEPS_UPSTREAM), str(run().steps)


def _selector_rows() -> list[tuple[str, ...]]:
    devices = [
        device(f"dev-{number:05}").attributes(model=f"m{number % 20}", uuid=f"gpu-{number}", index=number % 8)
        for number in range(10_000)
    ]
    published = [
        resource_slice(f"s{start:05}", driver=_GPU, pool="p", slices=79)
        .on_node("n1")
        .devices(*devices[start : start + 128])
        for start in range(0, len(devices), 128)
    ]
    catalog = allocator.Catalog([entry.build() for entry in published])
    features = allocator.Features.parse_names(["all"])
    block = catalog.view(_NODE, features).blocks[0]
    expression = f'device.attributes["{_GPU}"].model in ["m1", "m7"] && device.attributes["{_GPU}"].index < 4'
    judge = expressions.Judge(expression, selectors.SelectorCompiler(features))

    def evaluate() -> None:
        for _ in range(100):
            judge.judge_block(block, budget.Budget(budget.Limits()))

    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        evaluate()
        seconds.append(time.perf_counter() - start)
    return [
        ("first", "50 ms", f"{seconds[0] * 1e3:.1f} ms"),
        ("repeated", "1 ms", f"{seconds[1] * 1e3:.2f} ms"),
    ]


if __name__ == "__main__":
    main()
