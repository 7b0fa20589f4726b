"""Pure parts of the fuzz run: the surface it reads, the objects it makes, and its judgement of answers."""

import json
import pathlib
import random

import pytest
from bench.fuzzing import auditlog, documents, rawhttp, requests, surface, verdicts

DOCUMENT = {
    "paths": {
        "/api/v1/namespaces/{namespace}/things/{name}": {
            "parameters": [{"name": "namespace", "in": "path"}, {"name": "pretty", "in": "query"}],
            "get": {"x-kubernetes-group-version-kind": {"group": "", "version": "v1", "kind": "Thing"}},
            "put": {
                "x-kubernetes-group-version-kind": {"group": "", "version": "v1", "kind": "Thing"},
                "parameters": [{"name": "dryRun", "in": "query"}],
            },
        }
    },
    "components": {
        "schemas": {
            "Thing": {
                "type": "object",
                "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Thing"}],
                "required": ["spec"],
                "properties": {"spec": {"$ref": "#/components/schemas/Spec"}},
            },
            "Spec": {
                "type": "object",
                "required": ["count", "again"],
                "properties": {
                    "count": {"type": "integer"},
                    "again": {"type": "array", "items": {"$ref": "#/components/schemas/Spec"}},
                },
            },
        }
    },
}


def test_operations_are_read_with_their_schema_and_parameters() -> None:
    served = surface.read_surface([DOCUMENT])
    path = "/api/v1/namespaces/{namespace}/things/{name}"
    assert served.operations == (
        surface.Operation("GET", path, "v1", "Thing", "Thing", ("pretty",)),
        surface.Operation("PUT", path, "v1", "Thing", "Thing", ("pretty", "dryRun")),
    )


def test_objects_follow_their_schema_however_deep_it_is() -> None:
    served = surface.read_surface([DOCUMENT])
    for seed in range(20):
        thing = documents.DocumentGenerator(served.schemas, rng=random.Random(seed)).generate("Thing")
        assert isinstance(thing["spec"]["count"], int)


def test_a_seed_gives_the_same_requests_again() -> None:
    served = surface.read_surface([DOCUMENT])

    def make(seed: int) -> list[requests.Request]:
        generator = requests.RequestGenerator(served, {"admin": 1}, rng=random.Random(seed))
        return [generator.next() for _ in range(200)]

    assert make(1) == make(1)
    assert make(1) != make(2)


def test_answers_are_used_again() -> None:
    served = surface.read_surface([DOCUMENT])
    rng = random.Random(1)
    generator = requests.RequestGenerator(served, {"admin": 1}, rng=rng)
    metadata = {"name": "remembered", "namespace": "default", "uid": "u-1", "resourceVersion": "77"}
    generator.memory.learn(json.dumps({"kind": "Thing", "metadata": metadata}).encode(), rng=rng)
    targets = [generator.next().target for _ in range(200)]
    assert any("/namespaces/default/things/remembered" in target for target in targets)


def test_what_changes_the_rules_of_the_run_is_a_dry_run() -> None:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{name}"
    operation = surface.Operation("DELETE", path, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", ())
    generator = requests.RequestGenerator(surface.Surface((operation,), {}), {"admin": 1}, rng=random.Random(1))
    writes = [request for request in (generator.next() for _ in range(300)) if "clusterrolebindings" in request.target]
    assert writes
    assert all("dryRun=All" in request.target for request in writes)


def _status(code: int, reason: str) -> bytes:
    return json.dumps({"kind": "Status", "code": code, "reason": reason, "message": "m"}).encode()


@pytest.mark.parametrize(
    ("target", "code", "body", "want"),
    [
        pytest.param("/api/v1/pods", 500, _status(500, "InternalError"), "server error 500", id="own-500"),
        pytest.param("/api/v1/pods", 500, b"Internal Server Error", "server error 500", id="500-without-status"),
        pytest.param("/api/v1/pods", 502, b"", "server error 502", id="502"),
        pytest.param("/api/v1/pods", 500, _status(500, ""), "", id="500-that-upstream-does-not-classify"),
        pytest.param("/api/v1/pods", 503, _status(503, "ServiceUnavailable"), "", id="503"),
        pytest.param("/api/v1/nodes/n/proxy/x", 502, b"", "", id="502-of-a-node"),
        pytest.param("/api/v1/nodes/n/proxy", 500, _status(500, "X"), "server error 500", id="500-of-proxy"),
        pytest.param("/api/v1/pods", 404, _status(404, "NotFound"), "", id="404"),
        pytest.param(
            "/x", 404, _status(400, ""), "a Status with code 400 in an answer with code 404", id="status-of-other-code"
        ),
        pytest.param("/x", 400, b'{"a', "a refusal that is not JSON", id="half-a-status"),
    ],
)
def test_answers_are_judged(target: str, code: int, body: bytes, want: str) -> None:
    assert verdicts.find_problem("GET", target, code, body) == want


@pytest.mark.parametrize(
    ("received", "want"),
    [
        pytest.param(b"", "", id="closed"),
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", "", id="refused"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 500 Oops\r\n\r\n", "server error 500", id="500-of-the-second"),
        pytest.param(b"\x00\x00", "an answer that is not HTTP", id="no-http"),
    ],
)
def test_answers_to_raw_bytes_are_judged(received: bytes, want: str) -> None:
    assert verdicts.find_raw_problem(received) == want


def test_raw_bytes_are_made_for_any_seed() -> None:
    assert all(rawhttp.generate("token", rng=random.Random(seed)) for seed in range(300))


def test_requests_that_the_audit_log_lacks_are_found(tmp_path: pathlib.Path) -> None:
    log, answered = tmp_path / "audit.log", tmp_path / "answered-0.txt"
    log.write_text(
        '{"auditID":"a","stage":"ResponseComplete"}\n{"auditID":"b","stage":"RequestReceived"}\n{"auditID"\n'
    )
    answered.write_text("a 200 GET '/x'\nb 404 GET '/y'\n")
    assert auditlog.check(log, [answered]) == (2, 1, ["b 404 GET '/y'"])
