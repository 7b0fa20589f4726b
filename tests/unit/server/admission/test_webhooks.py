"""Validating and mutating webhooks, asked by a whole server over TLS."""

import asyncio
import json
import pathlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from tests.unit.server import client
from tests.unit.server.admission import webhookserver
from tests.unit.server.admission.policies import CONFIG_MAPS, MERGE, config_map, register, rule
from tests.unit.server.admission.webhookserver import WebhookServer


@pytest_asyncio.fixture
async def webhook(tmp_path: pathlib.Path) -> AsyncIterator[WebhookServer]:
    async with webhookserver.running(tmp_path) as server:
        yield server


def _hook(webhook: WebhookServer, path: str = "/hook", **changes: Any) -> dict[str, Any]:
    return {
        "name": f"{path.strip('/')}.example.com",
        "clientConfig": webhook.client(path),
        "rules": [rule("configmaps")],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 30,
        **changes,
    }


async def _validating(server: client.Client, *hooks: dict[str, Any], name: str = "w") -> None:
    await register(
        server, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", name, webhooks=list(hooks)
    )


async def _mutating(server: client.Client, *hooks: dict[str, Any], name: str = "w") -> None:
    await register(server, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", name, webhooks=list(hooks))


async def _create(server: client.Client, body: dict[str, Any] | None = None, query: str = "") -> client.Answer:
    return await server.call("POST", CONFIG_MAPS + query, body or config_map(k="v"))


class TestValidating:
    """Webhooks that can only refuse."""

    @pytest.mark.parametrize(
        ("response", "code", "message"),
        [
            pytest.param({}, 201, None, id="allowed"),
            pytest.param({"allowed": False}, 400, "denied the request without explanation", id="unexplained"),
            pytest.param(
                {"allowed": False, "status": {"message": "no", "code": 418, "reason": "Teapot"}},
                418,
                "denied the request: no",
                id="explained",
            ),
            pytest.param(
                {"allowed": False, "status": {"reason": "Why", "code": 200}},
                400,
                "denied the request: Why",
                id="reason",
            ),
        ],
    )
    async def test_verdict(
        self, server: client.Client, webhook: WebhookServer, response: Any, code: int, message: str | None
    ) -> None:
        webhook.responses["/hook"] = response
        await _validating(server, _hook(webhook))
        answer = await _create(server)
        assert answer.code == code
        if message:
            assert answer.body["message"] == f'admission webhook "hook.example.com" {message}'

    async def test_all_are_asked_at_once(self, server: client.Client, webhook: WebhookServer) -> None:
        together = asyncio.Barrier(3)

        async def wait(request: web.Request) -> web.StreamResponse:
            review = await request.json()
            await together.wait()
            return web.json_response(
                {**review, "response": {"uid": review["request"]["uid"], "allowed": request.path != "/b"}}
            )

        webhook.responses = dict.fromkeys(("/a", "/b", "/c"), wait)
        await _validating(server, *(_hook(webhook, path) for path in ("/a", "/b", "/c")))
        answer = await _create(server)
        assert answer.body["message"].startswith('admission webhook "b.example.com" denied')
        assert len(webhook.reviews) == 3

    async def test_nobody_waits_for_others(self, server: client.Client, webhook: WebhookServer) -> None:
        webhook.responses["/hook"] = webhookserver.hang
        await _validating(server, _hook(webhook))
        waiting = asyncio.create_task(_create(server))
        while not webhook.reviews:
            await asyncio.sleep(0)
        assert (await server.call("POST", client.CLAIMS, client.claim())).code == 201
        assert not waiting.done()
        waiting.cancel()

    async def test_uid_and_name_stay_while_others_are_asked(
        self, server: client.Client, webhook: WebhookServer
    ) -> None:
        webhook.responses["/hook"] = {}
        await _validating(server, _hook(webhook))
        body = config_map()
        body["metadata"] = {"generateName": "gen-"}
        made = (await _create(server, body)).body["metadata"]
        (review,) = webhook.reviews
        assert review["request"]["object"]["metadata"]["uid"] == made["uid"]
        assert review["request"]["object"]["metadata"]["name"] == made["name"]
        assert "name" not in review["request"]

    async def test_asked_anew_about_what_is_new(self, server: client.Client, webhook: WebhookServer) -> None:
        """Another write comes first while the webhook thinks: it is shown what would come of that."""
        await _create(server)
        path = f"{CONFIG_MAPS}/c"
        thinking, go_on = asyncio.Event(), asyncio.Event()

        async def think(request: web.Request) -> web.StreamResponse:
            review = await request.json()
            if review["request"]["object"]["data"].get("slow"):
                thinking.set()
                await go_on.wait()
            return web.json_response({**review, "response": {"uid": review["request"]["uid"], "allowed": True}})

        webhook.responses["/hook"] = think
        await _validating(server, _hook(webhook))
        slow = asyncio.create_task(server.call("PATCH", path, {"data": {"slow": "1"}}, content_type=MERGE))
        await thinking.wait()
        assert (await server.call("PATCH", path, {"data": {"quick": "1"}}, content_type=MERGE)).code == 200
        go_on.set()
        assert (await slow).body["data"] == {"k": "v", "slow": "1", "quick": "1"}
        assert [review["request"]["object"]["data"] for review in webhook.reviews] == [
            {"k": "v", "slow": "1"},
            {"k": "v", "quick": "1"},
            {"k": "v", "slow": "1", "quick": "1"},
        ]

    async def test_old_reviews(self, server: client.Client, webhook: WebhookServer) -> None:
        webhook.responses["/hook"] = {"uid": "whatever"}
        await _validating(server, _hook(webhook, admissionReviewVersions=["v2", "v1beta1"]))
        assert (await _create(server)).code == 201
        assert webhook.reviews[0]["apiVersion"] == "admission.k8s.io/v1beta1"

    async def test_deletion(self, server: client.Client, webhook: WebhookServer) -> None:
        await _create(server)
        webhook.responses["/hook"] = {"allowed": False}
        await _validating(server, _hook(webhook))
        assert (await server.call("DELETE", f"{CONFIG_MAPS}/c")).code == 400
        (review,) = webhook.reviews
        assert review["request"]["object"] is None
        assert review["request"]["oldObject"]["data"] == {"k": "v"}
        assert review["request"]["operation"] == "DELETE"

    async def test_converted(self, server: client.Client, webhook: WebhookServer) -> None:
        webhook.responses["/hook"] = {}
        rules = [rule("resourceclaims", groups=("resource.k8s.io",), apiVersions=["v1beta1"])]
        await _validating(server, _hook(webhook, rules=rules))
        assert (await server.call("POST", client.CLAIMS, client.claim())).code == 201
        request = webhook.reviews[0]["request"]
        assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v1beta1", "v1")
        assert request["object"]["spec"]["devices"]["requests"][0]["deviceClassName"] == "gpu.example.com"

    async def test_dry_run(self, server: client.Client, webhook: WebhookServer) -> None:
        webhook.responses["/hook"] = {}
        await _validating(server, _hook(webhook, sideEffects="NoneOnDryRun"))
        assert (await _create(server, query="?dryRun=All")).code == 201
        request = webhook.reviews[0]["request"]
        assert request["dryRun"] is True
        assert request["options"]["dryRun"] == ["All"]

    async def test_conditions(self, server: client.Client, webhook: WebhookServer) -> None:
        webhook.responses["/hook"] = {"allowed": False}
        conditions = [{"name": "x", "expression": "object.data.k == 'v'"}]
        await _validating(server, _hook(webhook, matchConditions=conditions))
        assert (await _create(server)).code == 400
        assert (await _create(server, config_map("d", k="w"))).code == 201
        answer = await _create(server, config_map("e"))
        assert (answer.code, answer.body["message"]) == (
            403,
            "configmaps \"e\" is forbidden: expression 'object.data.k == 'v'' resulted in error: no such key: data",
        )


def _lie(*, api_version: str = "admission.k8s.io/v1", **response: Any) -> webhookserver.Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        own = {"uid": (await request.json())["request"]["uid"], "allowed": True, **response}
        return web.json_response({"kind": "AdmissionReview", "apiVersion": api_version, "response": own})

    return answer


async def _silent(_request: web.Request) -> web.StreamResponse:
    return web.json_response({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"})


async def _nonsense(_request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"{nonsense")


async def _broken(_request: web.Request) -> web.StreamResponse:
    return web.Response(status=500, text="I am broken")


async def _elsewhere(_request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("https://127.0.0.1:1/")


@pytest.mark.parametrize(
    ("handler", "want"),
    [
        pytest.param(_lie(uid="1"), 'invalid webhook response: expected response.uid="', id="wrong-uid"),
        pytest.param(
            _lie(api_version="admission.k8s.io/v2"),
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v2",
            id="wrong-version",
        ),
        pytest.param(_silent, "webhook response was absent", id="no-response"),
        pytest.param(_lie(patch="W10=", patchType="JSONPatch"), "may not return response.patch", id="patch"),
        pytest.param(_nonsense, "failed to call webhook: couldn't get version/kind; json parse error", id="nonsense"),
        pytest.param(
            _broken,
            'an error on the server ("I am broken") has prevented the request from succeeding',
            id="server-error",
        ),
        pytest.param(_elsewhere, "responded with the status code 302", id="redirect"),
        pytest.param(webhookserver.flood, "the answer has more than 10485760 bytes", id="flood"),
        pytest.param(webhookserver.hang, "context deadline exceeded", id="hangs"),
    ],
)
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_webhooks_that_fail(
    server: client.Client, webhook: WebhookServer, handler: Any, want: str, policy: str
) -> None:
    webhook.responses["/hook"] = handler
    # Only who hangs is waited for; a busy machine takes its time to read what others say.
    seconds = 1 if handler is webhookserver.hang else 30
    await _validating(server, _hook(webhook, failurePolicy=policy, timeoutSeconds=seconds))
    answer = await _create(server)
    if policy == "Ignore":
        assert answer.code == 201
    else:
        assert answer.code == 500
        assert answer.body["message"].startswith('Internal error occurred: failed calling webhook "hook.example.com": ')
        assert want in answer.body["message"]


async def test_nobody_there(server: client.Client, webhook: WebhookServer) -> None:
    client_config = {"url": "https://127.0.0.1:1/hook", "caBundle": webhook.bundle}
    await _validating(server, _hook(webhook, clientConfig=client_config))
    assert (await _create(server)).body["message"] == (
        'Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: '
        'Post "https://127.0.0.1:1/hook?timeout=30s": dial tcp 127.0.0.1:1: connect: connection refused'
    )


async def test_another_authority(server: client.Client, webhook: WebhookServer, tmp_path: pathlib.Path) -> None:
    webhook.responses["/hook"] = {}
    async with webhookserver.running(tmp_path / "other") as other:
        await _validating(server, _hook(webhook, clientConfig={"url": f"{webhook.url}/hook", "caBundle": other.bundle}))
        message = (await _create(server)).body["message"]
    assert message.endswith("tls: failed to verify certificate: x509: certificate signed by unknown authority")
    assert not webhook.reviews


async def test_a_service_is_reached_at_its_endpoints(server: client.Client, webhook: WebhookServer) -> None:
    number = int(webhook.url.rpartition(":")[2])
    spec = {"ports": [{"name": "https", "port": 443}]}
    await server.call("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "s"}, "spec": spec})
    ready = {"addresses": ["127.0.0.1"]}
    away = {"addresses": ["127.0.0.2"], "conditions": {"ready": False}}
    endpoints = {
        "metadata": {"name": "e", "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": "IPv4",
        "endpoints": [away, ready],
        "ports": [{"name": "other", "port": 1}, {"name": "https", "port": number}],
    }
    await server.call("POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", endpoints)
    webhook.responses["/x"] = {"allowed": False}
    service = {"service": {"name": "s", "namespace": "default", "path": "/x"}, "caBundle": webhook.bundle}
    await _validating(server, _hook(webhook, clientConfig=service))
    assert (await _create(server)).code == 400
    assert len(webhook.reviews) == 1


@pytest.mark.parametrize(
    "endpoint",
    [
        pytest.param({"nodeName": "simulated"}, id="by-node"),
        pytest.param({"targetRef": {"kind": "Pod", "namespace": "default", "name": "p"}}, id="by-pod"),
    ],
)
async def test_simulated_pods_are_never_dialled(
    server: client.Client, webhook: WebhookServer, endpoint: dict[str, Any]
) -> None:
    number = int(webhook.url.rpartition(":")[2])
    nodes, pods = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
    await server.call("POST", nodes, {"metadata": {"name": "simulated"}})
    info = {"status": {"nodeInfo": {"containerRuntimeVersion": "simulated://1"}}}
    patched = await server.call("PATCH", f"{nodes}/simulated/status", info, content_type="application/merge-patch+json")
    assert patched.code == 200, patched.body
    spec: dict[str, Any] = {"nodeName": "simulated", "containers": [{"name": "c", "image": "i"}]}
    made = await server.call("POST", pods, {"metadata": {"name": "p"}, "spec": spec})
    assert made.code == 201, made.body
    service_spec = {"ports": [{"port": 443}]}
    await server.call("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "s"}, "spec": service_spec})
    endpoints = {
        "metadata": {"name": "e", "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["127.0.0.1"], **endpoint}],
        "ports": [{"port": number}],
    }
    await server.call("POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", endpoints)
    service = {"service": {"name": "s", "namespace": "default", "path": "/x"}, "caBundle": webhook.bundle}
    await _validating(server, _hook(webhook, clientConfig=service))
    message = (await _create(server)).body["message"]
    assert 'service "s": its pods are simulated: 127.0.0.1 is not dialled; delete the webhook configuration' in message
    assert not webhook.reviews


async def test_a_service_that_is_not_there(server: client.Client, webhook: WebhookServer) -> None:
    service = {"service": {"name": "s", "namespace": "default", "path": "/x"}}
    await _validating(server, _hook(webhook, clientConfig=service))
    assert (
        (await _create(server))
        .body["message"]
        .endswith('failed to call webhook: Post "https://s.default.svc:443/x": service "s" not found')
    )


class TestMutating:
    """Webhooks that can change things."""

    async def test_patches_follow_each_other(self, server: client.Client, webhook: WebhookServer) -> None:
        webhook.responses["/a"] = {"patch": [{"op": "add", "path": "/data/a", "value": "1"}]}
        webhook.responses["/b"] = {"patch": [{"op": "move", "from": "/data/a", "path": "/data/b"}]}
        await _mutating(server, _hook(webhook, "/b"), name="z")
        await _mutating(server, _hook(webhook, "/a"), name="y")
        assert (await _create(server)).body["data"] == {"k": "v", "b": "1"}
        assert [review["request"]["object"]["data"] for review in webhook.reviews] == [
            {"k": "v"},
            {"k": "v", "a": "1"},
        ]

    async def test_what_is_added_is_nobodys(self, server: client.Client, webhook: WebhookServer) -> None:
        webhook.responses["/hook"] = {"patch": [{"op": "add", "path": "/data/added", "value": "1"}]}
        await _mutating(server, _hook(webhook))
        fields = [entry["fieldsV1"] for entry in (await _create(server)).body["metadata"]["managedFields"]]
        assert "f:added" not in json.dumps(fields)

    @pytest.mark.parametrize(
        ("patch", "want"),
        [
            pytest.param(
                [{"op": "remove", "path": "/nope/x"}],
                'remove operation does not apply: doc is missing path: "/nope/x": missing value',
                id="does-not-apply",
            ),
            pytest.param([{"op": "replace", "path": "/data", "value": 1}], "json: cannot unmarshal", id="wrong-type"),
            pytest.param([{"op": "replace", "path": "/kind", "value": "Pod"}], "is no ConfigMap of v1", id="kind"),
        ],
    )
    async def test_bad_patches(self, server: client.Client, webhook: WebhookServer, patch: Any, want: str) -> None:
        webhook.responses["/hook"] = {"patch": patch}
        await _mutating(server, _hook(webhook, failurePolicy="Ignore"))
        answer = await _create(server)
        assert answer.code == 500
        assert want in answer.body["message"]

    async def test_scales_are_changed_as_such(self, server: client.Client, webhook: WebhookServer) -> None:
        path = "/apis/apps/v1/namespaces/default/deployments"
        pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "x:1"}]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": pod}
        await server.call("POST", path, {"metadata": {"name": "d"}, "spec": spec})
        webhook.responses["/hook"] = {"patch": [{"op": "replace", "path": "/spec/replicas", "value": 2}]}
        await _mutating(server, _hook(webhook, rules=[rule("deployments/scale", groups=("apps",))]))
        scaled = await server.call("PATCH", f"{path}/d/scale", {"spec": {"replicas": 7}}, content_type=MERGE)
        assert (scaled.code, scaled.body["spec"]) == (200, {"replicas": 2})
        assert webhook.reviews[0]["request"]["object"]["kind"] == "Scale"
        webhook.responses["/hook"] = {"patch": [{"op": "replace", "path": "/spec/replicas", "value": "x"}]}
        assert (
            await server.call("PATCH", f"{path}/d/scale", {"spec": {"replicas": 7}}, content_type=MERGE)
        ).code == 500

    async def test_undecodable_patch_counts_as_failure(self, server: client.Client, webhook: WebhookServer) -> None:
        webhook.responses["/hook"] = _lie(patch="!!!", patchType="JSONPatch")
        await _mutating(server, _hook(webhook))
        message = (await _create(server)).body["message"]
        assert "received undecodable patch in webhook response" in message

    @pytest.mark.parametrize(("policy", "calls"), [("Never", ["/a", "/b"]), ("IfNeeded", ["/a", "/b", "/a"])])
    async def test_reinvocation(
        self, server: client.Client, webhook: WebhookServer, policy: str, calls: list[str]
    ) -> None:
        seen: list[str] = []

        def recorded(response: dict[str, Any]) -> webhookserver.Handler:
            async def handle(request: web.Request) -> web.StreamResponse:
                seen.append(request.path)
                review = await request.json()
                return web.json_response(
                    {**review, "response": {"uid": review["request"]["uid"], "allowed": True, **response}}
                )

            return handle

        patch = {"patch": "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2RhdGEveCIsInZhbHVlIjoiMSJ9XQ==", "patchType": "JSONPatch"}
        webhook.responses["/a"], webhook.responses["/b"] = recorded({}), recorded(patch)
        await _mutating(server, _hook(webhook, "/a", reinvocationPolicy=policy), _hook(webhook, "/b"))
        assert (await _create(server)).body["data"] == {"k": "v", "x": "1"}
        assert seen == calls

    async def test_plugins_look_again(self, server: client.Client, webhook: WebhookServer) -> None:
        """The server restores defaults of a pod that a webhook removes."""
        webhook.responses["/hook"] = {"patch": [{"op": "remove", "path": "/spec/tolerations"}]}
        await _mutating(server, _hook(webhook, rules=[rule("pods", operations=["CREATE"])]))
        answer = await server.call("POST", client.PODS, client.pod())
        assert len(answer.body["spec"]["tolerations"]) == 2

    async def test_a_deletion_cannot_be_changed(self, server: client.Client, webhook: WebhookServer) -> None:
        await _create(server)
        webhook.responses["/hook"] = {"patch": [{"op": "add", "path": "/data/x", "value": "1"}]}
        await _mutating(server, _hook(webhook))
        answer = await server.call("DELETE", f"{CONFIG_MAPS}/c")
        assert answer.body["message"].endswith(
            "attempted to modify the object, which is not supported for this operation"
        )
