"""Mutations of recorded inputs: every mutation must get an answer or a refusal, never an error of our own.

``python -m bench mutations`` tries many; tests try a few of each recording, always the same.
"""

import copy
import json
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import msgspec

from drachma import cel, errors
from drachma.api import codec
from drachma.offline import allocatorcase
from tests.conformance import celforms, test_validation, vectors
from tests.conformance.vectors import Line
from tests.unit.server import client

VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    33,
    2**31,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    1.5,
    1e300,
    "",
    " ",
    "a",
    "A_b",
    "0",
    "-1",
    "1e3",
    "1Ki",
    "0.0000000001",
    "9223372036854775807Ei",
    "a/b",
    "a/b/c",
    "/",
    "*",
    "1.2.3",
    "v1.2.3-a+b",
    "\x00",
    "\ud7ff",
    "é" * 40,
    "x" * 300,
    [],
    {},
    [None],
    [{}],
    [[]],
    {"": ""},
    {"a": None},
)
"""Values that replace others: limits, other types, and texts that many fields refuse."""


DEAREST: Final = 10_000
"""Recorded cost of the dearest expression that is mutated: others take seconds, in order to reach the limit."""


def mutate(document: Any, rng: random.Random) -> Any:
    """Return a copy of a JSON document with one to three changes."""
    changed = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        parents = [parent for parent in _containers(changed) if parent]
        if not parents:
            return changed
        _change(rng.choice(parents), rng, parents)
    return changed


def _containers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _containers(each)
    elif isinstance(value, list):
        yield value
        for each in value:
            yield from _containers(each)


def _change(parent: Any, rng: random.Random, parents: list[Any]) -> None:
    key = rng.choice(list(parent)) if isinstance(parent, dict) else rng.randrange(len(parent))
    donor = rng.choice(parents)
    donated = copy.deepcopy(rng.choice(list(donor.values()) if isinstance(donor, dict) else donor))
    match rng.randrange(6):
        case 0:
            parent[key] = copy.deepcopy(rng.choice(VALUES))
        case 1:
            parent[key] = donated
        case 2:
            del parent[key]
        case 3 if isinstance(parent, dict):
            parent[rng.choice(("", "a", "unknown", "x" * 300, "a/b", str(key).upper()))] = donated
        case 3 | 4 if isinstance(parent, list):
            parent.extend(copy.deepcopy(parent[: rng.choice((1, 2, 40))]))
        case 4:
            parent[key] = [parent[key]] * rng.choice((1, 2, 40)) if rng.random() < 0.5 else {"a": parent[key]}
        case _:
            if isinstance(parent[key], str):
                parent[key] = _splice(parent[key], rng)
            else:
                parent[key] = copy.deepcopy(rng.choice(VALUES))


def _splice(text: str, rng: random.Random) -> str:
    place = rng.randrange(len(text) + 1)
    inserted = rng.choice(("", " ", ".", "-", "/", "0", "é", "\x00", '"', "(", ")", "]", "[0]", "!", " && ", "%", "\\"))
    return text[:place] + inserted + text[place + rng.randrange(3) :]


async def answer_allocation(case: Line) -> None:
    """Answer an allocator case, which may be refused."""
    allocatorcase.AllocatorCase(case).answer()


async def answer_expression(case: Line) -> None:
    """Compile an expression and evaluate it on its device, both ways."""
    compiled = cel.compile_expression(str(case["expression"]), celforms.device_environment(case))
    subject = celforms.device(case)
    compiled.evaluate(subject)
    compiled.evaluate_stepwise(subject.variables)


async def answer_conversion(case: Line) -> None:
    """Read an object, and write it in every version; each version reads as the same object."""
    stored = codec.decode(case["v1"])
    for version in ("v1", "v1beta2", "v1beta1"):
        try:
            written = codec.encode(stored, api_version=f"resource.k8s.io/{version}")
        except errors.DecodeError as error:
            if "does not exist in" not in str(error):
                raise AssertionError(f"{version}: {error}") from error
        else:
            again = codec.encode(codec.decode(written), api_version=f"resource.k8s.io/{version}")
            assert again == written, f"{version}: {written} became {again}"


async def answer_update(case: Line) -> None:
    """Validate an update."""
    for problem in test_validation.update_errors(case):
        str(problem)


async def answer_create(case: Line) -> None:
    """Create an object on a server."""
    server = await client.start()
    answer = await server.call("POST", f"{case['path']}?dryRun=All", case["object"])
    assert answer.code < 500, answer.body


Attempt = Callable[[Line], Awaitable[None]]

_ALLOCATION: Final = ("node", "slices", "classes", "claims", "allocatedDevices", "allocatedCapacity")

ATTEMPTS: Final[dict[str, tuple[tuple[str, ...], Attempt]]] = {
    "allocator": (_ALLOCATION, answer_allocation),
    "allocator-random": (_ALLOCATION, answer_allocation),
    "cel-device": (("expression", "attributes", "capacity", "driver"), answer_expression),
    "cel-random": (("expression", "attributes", "capacity", "driver"), answer_expression),
    "conversion": (("v1",), answer_conversion),
    "validation-update": (("object", "old"), answer_update),
    "apiserver-create": (("object",), answer_create),
}
"""By recording: the parts that are mutated, and the function that answers."""


async def attempt(name: str, case: Line) -> str:
    """Return how a mutated case ended; raises whatever is no refusal."""
    try:
        await ATTEMPTS[name][1](case)
    except (errors.DrachmaError, msgspec.ValidationError):
        return "refused"
    return "answered"


def cases(name: str, *, seed: int, count: int) -> Iterator[Line]:
    """Yield mutated lines of a recording; none if the recording is absent."""
    lines = [line for line in vectors.read(name) or () if int(line.get("actualCost", 0)) < DEAREST]
    if not lines:
        return
    rng = random.Random(f"{name} {seed}")
    parts = ATTEMPTS[name][0]
    for _ in range(count):
        line = rng.choice(lines)
        selection = {part: line[part] for part in parts if part in line}
        yield {**line, **mutate(selection, rng)}


def text(case: Line) -> str:
    """Return a case as text for a report."""
    return json.dumps(case)[:3000]
