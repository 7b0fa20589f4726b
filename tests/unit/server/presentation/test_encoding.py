"""Objects in other versions are converted once, and what is kept of that is bounded."""

from typing import Any

from drachma.server.presentation import encoding
from tests.unit.server import client

OLDER = "/apis/resource.k8s.io/v1beta1/namespaces/default/resourceclaims/c"


async def conversions(server: client.Client) -> Any:
    surface = server.app.dispatcher.surface
    route = surface.route("GET", OLDER)
    assert route is not None
    return surface.served(route.resource).derive(encoding.Encoder)._conversions


async def test_of_an_object_the_last_conversion_is_kept() -> None:
    server = await client.start()
    await server.call("POST", client.CLAIMS, client.claim())
    kept = await conversions(server)
    for number in ("1", "2", "3"):
        patch = {"metadata": {"labels": {"number": number}}}
        await server.call("PATCH", f"{client.CLAIMS}/c", patch, content_type="application/merge-patch+json")
        for _ in range(2):
            answer = await server.call("GET", OLDER)
            assert answer.body["metadata"]["labels"] == {"number": number}
        assert len(kept) == 1


async def test_what_is_kept_counts_in_bytes() -> None:
    server = await client.start()
    document = client.claim()
    document["metadata"]["annotations"] = {"long": "x" * 10_000}
    await server.call("POST", client.CLAIMS, document)
    await server.call("GET", OLDER)
    assert (await conversions(server)).size > 10_000
