"""Token requests and reviews: tokens that are good at once, bound to what they should be, and refused requests."""

from typing import Any

import jwt
import pytest

from tests.unit.server import client
from tests.unit.server.client import PODS, Client

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ISSUER = "https://kubernetes.default.svc.cluster.local"


async def account(server: Client, name: str = "app") -> dict[str, Any]:
    answer = await server.call("POST", ACCOUNTS, {"metadata": {"name": name}})
    assert answer.code == 201
    return dict(answer.body)


async def request(server: Client, spec: dict[str, Any], metadata: dict[str, str] | None = None) -> Any:
    return await server.call("POST", f"{ACCOUNTS}/app/token", {"metadata": metadata or {}, "spec": spec})


def read(token: str) -> dict[str, Any]:
    return dict(jwt.decode(token, options={"verify_signature": False}))


async def test_a_token_is_good_at_once(server: Client) -> None:
    made = await account(server)
    answer = await request(server, {})
    assert answer.code == 201
    assert answer.body["spec"] == {"audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": None}
    assert answer.body["metadata"]["uid"] == made["metadata"]["uid"]
    token = answer.body["status"]["token"]
    assert read(token)["sub"] == "system:serviceaccount:default:app"
    who = await server.call("POST", WHOAMI, {}, headers={"authorization": f"Bearer {token}"})
    assert who.body["status"]["userInfo"]["username"] == "system:serviceaccount:default:app"
    review = await server.call("POST", REVIEWS, {"spec": {"token": token}})
    assert review.body["status"]["authenticated"] is True
    assert review.body["status"]["audiences"] == [ISSUER]


async def test_a_pods_own_token_lasts_longer_than_it_says(server: Client) -> None:
    await account(server)
    pod = client.pod("p")
    pod["spec"] |= {"serviceAccountName": "app", "nodeName": "absent"}
    assert (await server.call("POST", PODS, pod)).code == 201
    spec = {"expirationSeconds": 3607, "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}
    answer = await request(server, spec)
    claims = read(answer.body["status"]["token"])
    assert claims["exp"] - claims["iat"] == 365 * 24 * 3600
    assert claims["kubernetes.io"]["warnafter"] - claims["iat"] == 3607
    assert claims["kubernetes.io"]["node"] == {"name": "absent"}
    assert answer.body["status"]["expirationTimestamp"] == "2026-01-02T04:04:12Z"


POD = {"apiVersion": "v1", "kind": "Pod", "name": "p"}


@pytest.mark.parametrize(
    ("spec", "metadata", "code", "message"),
    [
        pytest.param({"expirationSeconds": 599}, {}, 422, "less than 10 minutes", id="too-short"),
        pytest.param({"expirationSeconds": 2**32 + 1}, {}, 422, "larger than 2^32 seconds", id="too-long"),
        pytest.param({"expirationSeconds": "long"}, {}, 400, "expirationSeconds", id="no-number"),
        pytest.param({}, {"name": "other"}, 422, "must match the service account name if specified", id="other-name"),
        pytest.param({}, {"uid": "other"}, 409, "does not match the UID of the service account", id="other-uid"),
        pytest.param({"boundObjectRef": POD | {"name": "q"}}, {}, 404, 'pods "q" not found', id="no-such-pod"),
        pytest.param({"boundObjectRef": POD}, {}, 400, "different serviceaccount name", id="pod-of-another-account"),
        pytest.param(
            {"boundObjectRef": {"apiVersion": "apps/v1", "kind": "Pod", "name": "p"}},
            {},
            400,
            "cannot bind token to object of type apps/v1, Kind=Pod",
            id="another-group",
        ),
        pytest.param(
            {"boundObjectRef": {"apiVersion": "v1", "kind": "Node"}}, {}, 400, "Name parameter required.", id="no-name"
        ),
    ],
)
async def test_what_is_asked_for_must_make_sense(
    server: Client, spec: dict[str, Any], metadata: dict[str, str], code: int, message: str
) -> None:
    await account(server)
    await account(server, "other")
    pod = client.pod("p")
    pod["spec"]["serviceAccountName"] = "other"
    assert (await server.call("POST", PODS, pod)).code == 201
    answer = await request(server, spec, metadata)
    assert answer.code == code
    assert message in answer.body["message"]


async def test_a_token_ends_with_its_account(server: Client) -> None:
    await account(server)
    token = (await request(server, {})).body["status"]["token"]
    assert (await server.call("DELETE", f"{ACCOUNTS}/app")).code == 200
    await account(server)
    assert (await server.call("POST", WHOAMI, {}, headers={"authorization": f"Bearer {token}"})).code == 401
    review = await server.call("POST", REVIEWS, {"spec": {"token": token}})
    assert review.body["status"]["user"] == {}
    assert "does not match claim" in review.body["status"]["error"]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"token": "nonsense"}, {"user": {}, "error": "invalid bearer token"}, id="nonsense"),
        pytest.param(
            {"token": client.TOKEN, "audiences": ["vault"]},
            {"user": {}, "error": "invalid bearer token"},
            id="not-for-others",
        ),
    ],
)
async def test_bad_tokens_are_told_apart(server: Client, spec: dict[str, Any], want: dict[str, Any]) -> None:
    answer = await server.call("POST", REVIEWS, {"spec": spec})
    assert (answer.code, answer.body["status"]) == (201, want)


async def test_no_token_is_no_question(server: Client) -> None:
    answer = await server.call("POST", REVIEWS, {"spec": {}})
    assert (answer.code, answer.body["message"]) == (400, "token is required for TokenReview in authentication")
