"""Permissions for approving and signing certificate requests."""

import base64
from typing import Any

import pytest

from tests import certificaterequests
from tests.unit.server import people
from tests.unit.server.client import Client
from tests.unit.server.people import MERGE, rule

GROUP = "certificates.k8s.io"
REQUESTS = f"/apis/{GROUP}/v1/certificatesigningrequests"
WRITES = rule("update patch", "certificatesigningrequests/approval certificatesigningrequests/status", group=GROUP)
SIGNER = "example.com/mine"
APPROVED = {"status": {"conditions": [{"type": "Approved", "status": "True"}]}}


@pytest.fixture
async def admin() -> Client:
    return await people.start()


def request(*groups: str, signer: str = SIGNER) -> dict[str, Any]:
    spec = {"request": certificaterequests.encoded("ann", *groups), "signerName": signer, "usages": ["client auth"]}
    return {"metadata": {"name": "r"}, "spec": spec}


@pytest.mark.parametrize("name", [SIGNER, "example.com/*"])
async def test_who_approves_must_be_allowed_to_for_the_signer(admin: Client, name: str) -> None:
    await admin.call("POST", REQUESTS, request())
    await people.grant(admin, "ann", WRITES)
    ann = admin.showing("ann")
    refused = await ann.call("PATCH", f"{REQUESTS}/r/approval", APPROVED, content_type=MERGE)
    detail = f'user not permitted to approve requests with signerName "{SIGNER}"'
    assert (refused.code, refused.body["message"]) == (
        403,
        f'certificatesigningrequests.{GROUP} "r" is forbidden: {detail}',
    )
    await people.grant(admin, "ann", rule("approve", "signers", group=GROUP, resourceNames=[name]), name="approves")
    assert (await ann.call("PATCH", f"{REQUESTS}/r/approval", APPROVED, content_type=MERGE)).code == 200


async def test_who_signs_must_be_allowed_to_for_the_signer(admin: Client) -> None:
    await admin.call("POST", REQUESTS, request())
    await people.grant(admin, "ann", WRITES)
    ann = admin.showing("ann")
    failed = {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}
    refused = await ann.call("PATCH", f"{REQUESTS}/r/status", failed, content_type=MERGE)
    assert (refused.code, refused.body["message"].rpartition(": ")[2]) == (
        403,
        f'user not permitted to sign requests with signerName "{SIGNER}"',
    )
    unchanged = {"metadata": {"labels": {"a": "b"}}}
    assert (await ann.call("PATCH", f"{REQUESTS}/r/status", unchanged, content_type=MERGE)).code == 200
    await people.grant(admin, "ann", rule("sign", "signers", group=GROUP), name="signs")
    assert (await ann.call("PATCH", f"{REQUESTS}/r/status", failed, content_type=MERGE)).code == 200


async def test_nobody_is_made_a_master(admin: Client) -> None:
    signer = "kubernetes.io/kube-apiserver-client"
    refused = await admin.call("POST", REQUESTS, request("system:masters", signer=signer))
    assert (refused.code, refused.body["message"].partition(" is forbidden: ")[2]) == (
        403,
        f"use of {signer} signer with system:masters group is not allowed",
    )
    assert (await admin.call("POST", REQUESTS, request("staff", signer=signer))).code == 201


@pytest.mark.parametrize(
    ("subresource", "status", "want"),
    [
        pytest.param(
            "status",
            {"conditions": [{"type": "Approved", "status": "True"}]},
            'status.conditions: Forbidden: updates may not add a condition of type "Approved"',
            id="who-signs-does-not-approve",
        ),
        pytest.param(
            "status",
            {"certificate": base64.b64encode(b"x").decode()},
            'status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block',
            id="no-certificate",
        ),
        pytest.param(
            "approval",
            {"conditions": [{"type": "Denied", "status": "False"}]},
            'status.conditions[0].status: Unsupported value: "False": supported values: "True"',
            id="half-denied",
        ),
        pytest.param(
            "approval",
            {"conditions": [{"type": "Denied", "status": "True"}, {"type": "Approved", "status": "True"}]},
            'status.conditions: Invalid value: "{conditions[{\\"type\\": \\"Approved\\"}], '
            'conditions[{\\"type\\": \\"Denied\\"}]}": must specify at most one of: '
            '`conditions[{"type": "Approved"}]`, `conditions[{"type": "Denied"}]`',
            id="both",
        ),
    ],
)
async def test_what_cannot_be_said_of_one(admin: Client, subresource: str, status: Any, want: str) -> None:
    await admin.call("POST", REQUESTS, request())
    refused = await admin.call("PATCH", f"{REQUESTS}/r/{subresource}", {"status": status}, content_type=MERGE)
    assert (refused.code, refused.body["message"].partition(" is invalid: ")[2]) == (422, want)


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param(
            {"signerName": "kubernetes.io/legacy-unknown"},
            "the legacy signerName is not allowed via this API version",
            id="legacy",
        ),
        pytest.param(
            {"signerName": "mine"},
            "must be a fully qualified domain and path of the form 'example.com/signer-name'",
            id="no-path",
        ),
        pytest.param(
            {"signerName": "mine/a"}, "should be a domain with at least two segments separated by dots", id="no-domain"
        ),
        pytest.param(
            {"usages": ["client auth", "client auth"]}, 'spec.usages[1]: Duplicate value: "client auth"', id="twice"
        ),
        pytest.param(
            {"expirationSeconds": 60}, "may not specify a duration less than 600 seconds (10 minutes)", id="no-time"
        ),
        pytest.param({"request": ""}, "PEM block type must be CERTIFICATE REQUEST", id="no-request"),
    ],
)
async def test_what_cannot_be_asked_for(admin: Client, change: dict[str, Any], want: str) -> None:
    made = request()
    made["spec"].update(change)
    refused = await admin.call("POST", REQUESTS, made)
    assert refused.code == 422
    assert refused.body["message"].endswith(want)


async def test_decisions_stay_when_one_is_signed(admin: Client) -> None:
    await admin.call("POST", REQUESTS, request())
    await admin.call("PATCH", f"{REQUESTS}/r/approval", APPROVED, content_type=MERGE)
    told = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "mine"}]}}
    kept = await admin.call("PATCH", f"{REQUESTS}/r/status", told, content_type=MERGE)
    assert (kept.code, "reason" in kept.body["status"]["conditions"][0]) == (200, False)


async def test_they_are_selected_by_signer(admin: Client) -> None:
    await admin.call("POST", REQUESTS, request())
    names = [
        [
            each["metadata"]["name"]
            for each in (await admin.call("GET", f"{REQUESTS}?fieldSelector={text}")).body["items"]
        ]
        for text in (f"spec.signerName={SIGNER}", "spec.signerName=example.com/other")
    ]
    assert names == [["r"], []]
