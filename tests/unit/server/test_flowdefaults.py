"""The flow schemas and priority levels of a new cluster."""

from drachma.server import flowdefaults
from tests.unit.server.client import Client

GROUP = "/apis/flowcontrol.apiserver.k8s.io/v1"


async def names(server: Client, plural: str) -> set[str]:
    return {each["metadata"]["name"] for each in (await server.call("GET", f"{GROUP}/{plural}")).body["items"]}


async def test_every_schema_has_its_level(server: Client) -> None:
    await flowdefaults.populate(server.app.dispatcher)
    schemas = (await server.call("GET", f"{GROUP}/flowschemas")).body["items"]
    levels = {each["spec"]["priorityLevelConfiguration"]["name"] for each in schemas}
    assert levels == await names(server, "prioritylevelconfigurations")
    assert {"exempt", "catch-all"} <= {each["metadata"]["name"] for each in schemas}


async def test_what_is_there_stays_and_what_is_missing_comes_again(server: Client) -> None:
    await flowdefaults.populate(server.app.dispatcher)
    before = await names(server, "flowschemas")
    await server.call("DELETE", f"{GROUP}/flowschemas/probes")
    patch = {"metadata": {"labels": {"a": "b"}}}
    await server.call("PATCH", f"{GROUP}/flowschemas/exempt", patch, content_type="application/merge-patch+json")
    await flowdefaults.populate(server.app.dispatcher)
    assert await names(server, "flowschemas") == before
    exempt = (await server.call("GET", f"{GROUP}/flowschemas/exempt")).body
    assert exempt["metadata"]["labels"] == {"a": "b"}


async def test_those_that_must_be_there_cannot_be_others(server: Client) -> None:
    await flowdefaults.populate(server.app.dispatcher)
    patch = {"spec": {"matchingPrecedence": 9}}
    for path in ("flowschemas/catch-all", "flowschemas/exempt"):
        refused = await server.call("PATCH", f"{GROUP}/{path}", patch, content_type="application/merge-patch+json")
        assert "must equal the fixed value" in refused.body["message"]
    lent = {"spec": {"exempt": {"lendablePercent": 5}}}
    level = f"{GROUP}/prioritylevelconfigurations/exempt"
    assert (await server.call("PATCH", level, lent, content_type="application/merge-patch+json")).code == 200
