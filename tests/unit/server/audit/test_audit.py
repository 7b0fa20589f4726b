"""The audit log: what is noted of which calls, and what never is."""

import json
import os
import pathlib
import stat
from collections.abc import Mapping
from typing import Any

import pytest

from drachma import errors
from drachma.server import audit
from drachma.server.access import authorization
from drachma.server.calls.call import BODY_LIMIT
from drachma.server.user import User
from tests.unit.server import client
from tests.unit.server.admission.policies import CONFIG_MAPS, bind, config_map, validating

_HEAD = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"


async def _server(
    path: pathlib.Path,
    rules: str,
    *,
    users: Mapping[str, User] | None = None,
    authoriser: authorization.Authoriser | None = None,
) -> client.Client:
    policy = audit.read((_HEAD + rules).encode(), title="p.yaml")
    log = audit.Log.open(str(path))
    server = await client.start(
        audit=lambda clock: audit.Auditor(policy, log, clock=clock), users=users, authoriser=authoriser
    )
    # The objects that every cluster has are created by calls, too.
    await log.flush()
    path.write_bytes(b"")
    return server


def _events(path: pathlib.Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_metadata(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "audit.log"
    server = await _server(path, "rules: [{level: Metadata}]")
    await server.call("POST", client.CLAIMS + "?fieldManager=me", client.claim())
    received, complete = _events(path)
    assert (received["stage"], complete["stage"]) == ("RequestReceived", "ResponseComplete")
    assert received["auditID"] == complete["auditID"]
    assert complete["requestURI"] == client.CLAIMS + "?fieldManager=me"
    assert complete["verb"] == "create"
    assert complete["user"]["username"] == "kubernetes-admin"
    assert complete["sourceIPs"] == ["127.0.0.1"]
    assert complete["objectRef"] == {
        "resource": "resourceclaims",
        "namespace": "default",
        "name": "c",
        "apiGroup": "resource.k8s.io",
        "apiVersion": "v1",
    }
    assert complete["responseStatus"] == {"metadata": {}, "code": 201}
    assert complete["requestReceivedTimestamp"] == "2026-01-02T03:04:05.000000Z"
    assert "requestObject" not in complete


async def test_file_is_private(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "audit.log"
    await _server(path, "rules: [{level: Metadata}]")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("level", "fields"),
    [
        pytest.param("Request", {"requestObject"}, id="request"),
        pytest.param("RequestResponse", {"requestObject", "responseObject"}, id="request-response"),
    ],
)
async def test_bodies(tmp_path: pathlib.Path, level: str, fields: set[str]) -> None:
    path = tmp_path / "audit.log"
    server = await _server(path, f"omitManagedFields: true\nomitStages: [RequestReceived]\nrules: [{{level: {level}}}]")
    await server.call("POST", client.CLAIMS, client.claim())
    (event,) = _events(path)
    assert event["level"] == level
    assert {field for field in ("requestObject", "responseObject") if field in event} == fields
    assert "managedFields" not in json.dumps(event)


@pytest.mark.parametrize(
    ("plural", "body"),
    [
        pytest.param(
            "secrets",
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "hush"}},
            id="secrets",
        ),
        pytest.param("configmaps", config_map("c", k="hush"), id="config-maps"),
    ],
)
async def test_secrets_are_never_noted(tmp_path: pathlib.Path, plural: str, body: dict[str, Any]) -> None:
    path = tmp_path / "audit.log"
    server = await _server(path, "rules: [{level: RequestResponse}]")
    await server.call("POST", f"/api/v1/namespaces/default/{plural}", body)
    await server.call("GET", f"/api/v1/namespaces/default/{plural}/{body['metadata']['name']}")
    assert len(_events(path)) == 4
    assert "hush" not in path.read_text()


async def test_first_rule_decides(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "audit.log"
    rules = """
rules:
- level: None
  verbs: [get, list]
- level: Metadata
  users: [somebody-else]
- level: Metadata
  resources: [{group: resource.k8s.io, resources: [resourceclaims, "resourceclaims/*"]}]
"""
    server = await _server(path, rules)
    await server.call("POST", client.CLAIMS, client.claim())
    await server.call("GET", client.CLAIMS)
    await server.call("POST", client.PODS, client.pod())
    patch = {"metadata": {"labels": {"a": "b"}}}
    await server.call("PATCH", f"{client.CLAIMS}/c/status", patch, content_type="application/merge-patch+json")
    complete = [event for event in _events(path) if event["stage"] == "ResponseComplete"]
    assert [(event["verb"], event["objectRef"].get("subresource")) for event in complete] == [
        ("create", None),
        ("patch", "status"),
    ]


async def test_refusals_and_annotations(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "audit.log"
    server = await _server(path, "omitStages: [RequestReceived]\nrules: [{level: Metadata, verbs: [create]}]")
    annotations = [{"key": "seen", "valueExpression": "string(object.metadata.name)"}]
    await validating(server, validations=[{"expression": "false", "message": "no"}], auditAnnotations=annotations)
    await bind(server, validationActions=["Deny", "Audit"])
    await server.call("POST", CONFIG_MAPS, config_map())
    event = _events(path)[-1]
    assert event["responseStatus"]["code"] == 422
    assert event["annotations"]["p/seen"] == "c"
    (failure,) = json.loads(event["annotations"]["validation.policy.admission.k8s.io/validation_failure"])
    assert failure == {
        "message": "no",
        "policy": "p",
        "binding": "b",
        "expressionIndex": 0,
        "validationActions": ["Deny", "Audit"],
    }


_ALLOWED = {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}
_FORBIDDEN = {"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": ""}


class _Masters(authorization.AlwaysAllow):
    """Allows everything to members of system:masters, and nothing to other users."""

    def authorise(self, attributes: authorization.Attributes) -> authorization.Opinion:
        is_master = "system:masters" in attributes.user.groups
        return authorization.ALLOWED if is_master else authorization.NO_OPINION


@pytest.mark.parametrize(
    ("method", "path", "headers", "want"),
    [
        pytest.param("GET", "/version?x=1", {}, ("get", 200, None, _ALLOWED), id="beside-the-resources"),
        pytest.param("POST", "/version", {}, ("post", 405, None, _ALLOWED), id="a-method-that-is-refused"),
        pytest.param("GET", "/nope", {}, ("get", 404, None, _ALLOWED), id="nothing-there"),
        pytest.param("GET", "/api/v1/nopes", {}, ("list", 404, "nopes", _ALLOWED), id="no-such-resource"),
        pytest.param("GET", "/api/v1/pods", {"accept": "text/html"}, ("list", 406, "pods", _ALLOWED), id="no-form"),
        pytest.param(
            "GET", "/metrics", {"authorization": "Bearer ann"}, ("get", 403, None, _FORBIDDEN), id="a-path-for-others"
        ),
        pytest.param(
            "GET",
            "/api/v1/nopes",
            {"authorization": "Bearer ann"},
            ("list", 403, "nopes", _FORBIDDEN),
            id="who-may-not-know",
        ),
        pytest.param(
            "GET",
            "/api/v1/pods",
            {"authorization": "Bearer ann"},
            ("list", 403, "pods", _FORBIDDEN),
            id="a-call-for-others",
        ),
        pytest.param(
            "GET",
            "/api/v1/pods",
            {"authorization": "Bearer ann", "impersonate-user": "bob"},
            ("list", 403, "pods", {}),
            id="who-may-not-be-somebody-else",
        ),
    ],
)
async def test_requests_without_a_call(
    tmp_path: pathlib.Path,
    method: str,
    path: str,
    headers: dict[str, str],
    want: tuple[str, int, str | None, dict[str, str]],
) -> None:
    log = tmp_path / "audit.log"
    server = await _server(log, "rules: [{level: Metadata}]", users={"ann": User(name="ann")}, authoriser=_Masters())
    await server.call(method, path, headers={"x-forwarded-for": "192.0.2.1", "audit-id": "mine", **headers})
    received, complete = _events(log)
    assert (received["stage"], complete["stage"]) == ("RequestReceived", "ResponseComplete")
    assert "annotations" not in received
    for event in (received, complete):
        assert event["auditID"] == "mine"
        assert event["requestURI"] == path
        assert event["sourceIPs"] == ["192.0.2.1", "127.0.0.1"]
        assert event["user"]["username"] == ("ann" if "authorization" in headers else "kubernetes-admin")
        assert "impersonatedUser" not in event
    resource = complete.get("objectRef", {}).get("resource")
    code = complete["responseStatus"]["code"]
    assert (complete["verb"], code, resource, complete.get("annotations", {})) == want


async def test_nobody_in_particular(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "audit.log"
    server = await _server(log, "rules: [{level: RequestResponse}]")
    await server.showing("wrong").call("GET", "/api/v1/pods")
    (event,) = _events(log)
    assert (event["stage"], event["user"]) == ("ResponseStarted", {})
    assert event["responseStatus"]["code"] == event["responseObject"]["code"] == 401


async def test_who_acts_as_somebody_else(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "audit.log"
    server = await _server(log, "rules: [{level: Metadata}]", authoriser=_Masters())
    headers = {"impersonate-user": "bob", "impersonate-group": "g"}
    for path in ("/api/v1/pods", "/metrics"):
        await server.call("GET", path, headers=headers)
    received, complete, _, beside = _events(log)
    assert received["user"]["username"] == "kubernetes-admin"
    assert "impersonatedUser" not in received
    for event in (complete, beside):
        assert event["user"]["username"] == "kubernetes-admin"
        assert event["impersonatedUser"] == {"username": "bob", "groups": ["g", "system:authenticated"]}
        assert event["authenticationMetadata"] == {"impersonationConstraint": "impersonate:user-info"}
        assert event["annotations"] == _FORBIDDEN


async def test_a_watch_begins_and_ends(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "audit.log"
    server = await _server(log, "rules: [{level: Metadata}]")
    async with server.watch(f"{client.CLAIMS}?watch=1") as watch:
        server.app.drain()
        assert await watch.event() is None
    # No response follows the last event, so nothing else waits until the thread of the log has written it.
    for auditor in server.app.dispatcher.services.phases.audit:
        await auditor.flush()
    assert [event["stage"] for event in _events(log)] == ["RequestReceived", "ResponseStarted", "ResponseComplete"]


@pytest.mark.parametrize(
    ("rule", "want"),
    [
        pytest.param("nonResourceURLs: [/version]", ["/version"], id="one-path"),
        pytest.param("nonResourceURLs: ['/health*']", ["/healthz", "/healthz/ping"], id="all-that-begin-so"),
        pytest.param("nonResourceURLs: ['*']", ["/version", "/healthz", "/healthz/ping"], id="all-beside-resources"),
        pytest.param("resources: [{resources: [pods]}]", ["/api/v1/pods"], id="a-resource"),
        pytest.param("resources: [{resources: ['pods/*']}]", ["/api/v1/pods"], id="a-resource-with-all-below"),
        pytest.param("resources: [{resources: ['*/status']}]", [], id="only-below"),
        pytest.param("resources: [{resourceNames: [x]}]", ["/api/v1/pods"], id="names-of-no-resource"),
        pytest.param("namespaces: ['']", ["/api/v1/pods"], id="of-no-namespace"),
        pytest.param("verbs: [list]", ["/api/v1/pods"], id="a-verb"),
    ],
)
async def test_rules_for_paths_and_resources(tmp_path: pathlib.Path, rule: str, want: list[str]) -> None:
    log = tmp_path / "audit.log"
    server = await _server(log, f"omitStages: [RequestReceived]\nrules: [{{level: Metadata, {rule}}}]")
    for path in ("/version", "/healthz", "/healthz/ping", "/api/v1/pods"):
        await server.call("GET", path)
    assert [event["requestURI"] for event in _events(log)] == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("[", "audit policy p.yaml: ", id="no-yaml"),
        pytest.param("apiVersion: v1\nkind: Policy\nrules: []", "not a Policy of audit.k8s.io/v1", id="another-kind"),
        pytest.param(_HEAD + "rules: [{level: All}]", "rules[0].level: 'All' is not one of", id="level"),
        pytest.param(
            _HEAD + "rules: [{level: None, omitStages: [Then]}]", "rules[0].omitStages: 'Then' is not one", id="stage"
        ),
        pytest.param(_HEAD + "rules: [{level: None, user: x}]", "unknown field `user`", id="unknown-field"),
        pytest.param(
            _HEAD + "rules: [{level: None, nonResourceURLs: [/x], namespaces: [y]}]", "cannot apply to both", id="both"
        ),
    ],
)
def test_bad_policies(text: str, want: str) -> None:
    with pytest.raises(errors.InvalidValueError) as caught:
        audit.read(text.encode(), title="p.yaml")
    assert want in str(caught.value)


@pytest.mark.parametrize("level", ["Metadata", "RequestResponse"])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"metadata":{"name":"\xff"}}', id="not-utf-8"),
        pytest.param(b'{"metadata":{"name":"\\ud800"}}', id="half-a-surrogate-pair"),
        pytest.param(b"[" * 100_000, id="deep"),
    ],
)
async def test_a_body_that_is_no_document_is_refused_and_noted(tmp_path: pathlib.Path, level: str, body: bytes) -> None:
    path = tmp_path / "audit.log"
    server = await _server(path, f"omitStages: [RequestReceived]\nrules: [{{level: {level}}}]")
    answer = await server.send("POST", client.CLAIMS, body)
    (event,) = _events(path)
    assert 400 <= answer.code < 500
    assert event["responseStatus"]["code"] == answer.code


async def test_a_body_that_is_too_large_is_noted(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "audit.log"
    server = await _server(path, "omitStages: [RequestReceived]\nrules: [{level: RequestResponse}]")
    answer = await server.send("POST", client.CLAIMS, b" " * (BODY_LIMIT + 1))
    (event,) = _events(path)
    assert (answer.code, event["responseStatus"]["code"], event["stage"]) == (413, 413, "ResponseComplete")
    assert (event["verb"], event["objectRef"]["resource"]) == ("create", "resourceclaims")


async def test_a_call_that_fails_is_noted(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "audit.log"
    server = await _server(path, "omitStages: [RequestReceived]\nrules: [{level: Metadata}]")

    async def fail(*_: object, **__: object) -> None:
        raise LookupError("a defect")

    monkeypatch.setattr(server.app.dispatcher, "_answer", fail)
    answer = await server.call("POST", client.CLAIMS, client.claim())
    (event,) = _events(path)
    assert (answer.code, event["responseStatus"]["code"]) == (500, 500)


@pytest.mark.parametrize(
    ("path", "error", "code"),
    [
        pytest.param(client.CLAIMS, TimeoutError(), 504, id="deadline-while-waiting-for-a-seat"),
        pytest.param(client.CLAIMS, LookupError("a defect"), 500, id="defect-before-the-call"),
        pytest.param("/version", LookupError("a defect"), 500, id="defect-without-a-call"),
    ],
)
async def test_a_request_that_fails_before_its_call_is_noted(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, path: str, error: Exception, code: int
) -> None:
    log = tmp_path / "audit.log"
    server = await _server(log, "omitStages: [RequestReceived]\nrules: [{level: Metadata}]")

    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr(server.app._flows, "start", fail)
    answer = await server.call("GET", path)
    (event,) = _events(log)
    assert (answer.code, event["responseStatus"]["code"]) == (code, code)


async def test_a_refused_watch_is_noted_once(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "audit.log"
    server = await _server(log, "omitStages: [RequestReceived]\nrules: [{level: Metadata}]")
    answer = await server.call("GET", f"{client.CLAIMS}?watch=1&labelSelector=a%3D%3D%3Db")
    (event,) = _events(log)
    assert (answer.code, event["responseStatus"]["code"]) == (400, 400)


async def test_a_log_that_cannot_be_written_refuses_no_request(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    policy = audit.read((_HEAD + "rules: [{level: Metadata}]").encode(), title="p.yaml")
    path = tmp_path / "audit.log"
    path.touch()
    log = audit.Log(os.open(path, os.O_RDONLY))
    server = await client.start(audit=lambda clock: audit.Auditor(policy, log, clock=clock))
    assert (await server.call("POST", client.CLAIMS, client.claim())).code == 201
    assert "audit event" in caplog.text
