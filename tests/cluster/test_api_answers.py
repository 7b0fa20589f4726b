"""Creates and updates of random objects: drachma's API server answers as kube-apiserver does, byte for byte."""

import copy
import random
from typing import Any

from tests.cluster import apianswers, objects
from tests.scenarios import wire
from tests.unit.server import client

REQUESTS = 500


async def test_answers_are_those_of_kubernetes(admin: wire.Wire, cleared: None) -> None:
    ours = await client.start()
    versions: dict[str, tuple[str, str]] = {}
    for seed in apianswers.SEEDS:
        place = objects.path(seed)
        stored, own = admin.call("POST", place, seed), await ours.call("POST", place, seed)
        assert (stored.code, own.code) == (201, 201), (stored.body, own.body)
        versions[place] = (stored.body["metadata"]["resourceVersion"], own.body["metadata"]["resourceVersion"])
    rng = random.Random(1)
    differences = []
    for _ in range(REQUESTS):
        request = apianswers.make(rng)
        ours.clock.advance(1)
        path = f"{request.path}?dryRun=All"
        bodies = [_with_version(request, versions, index) for index in (0, 1)]
        theirs = admin.call(request.method, path, bodies[0])
        answer = await ours.call(request.method, path, bodies[1])
        want, got = apianswers.comparable(*theirs), apianswers.comparable(answer.code, answer.body)
        if "Syntax error" in str(want) and "Syntax error" in str(got):
            # The compiler stops at the first one, and does not list what could follow.
            want, got = {"code": theirs.code}, {"code": answer.code}
        if want != got:
            differences.append(f"{request}\nwant {want}\ngot  {got}")
    assert not differences, f"{len(differences)} differ:\n" + "\n\n".join(differences[:5])


def _with_version(request: apianswers.Request, versions: dict[str, tuple[str, str]], server: int) -> Any:
    """Return the body with the version of the object that a server has, which some kinds want in updates."""
    body = copy.deepcopy(request.body)
    if request.method == "PUT" and isinstance(body.get("metadata"), dict):
        body["metadata"]["resourceVersion"] = versions[request.path.removesuffix("/seed")][server]
    return body
