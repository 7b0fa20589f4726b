"""The dashboard over HTTP, on an API server with RBAC in the same process: sign-in, permissions, pages and writes."""

import asyncio
import contextlib
import ipaddress
import json
import pathlib
import random
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from drachma.api import pod, resourceclaim
from drachma.client import access, http
from drachma.process import apiserver, serverfiles
from drachma.queueing.component import resources as queues
from drachma.runtime import clock
from drachma.server import rolereconciliation
from drachma.store import memory
from drachma.web import ProxyTrust, Settings, serving
from tests import patience
from tests.browser import world
from tests.scenarios import clusters

pytestmark = pytest.mark.asyncio(loop_scope="module")

ADMIN = "sesame"
VIEWER = "viewer-token"
GUEST = "guest-token"
KEY = "start-key"


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """An API server, its admin, and the dashboard in front of it."""

    client: http.HttpClient
    url: str
    settings: Settings

    @contextlib.asynccontextmanager
    async def browser(self, **headers: str) -> AsyncIterator[aiohttp.ClientSession]:
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(self.url, headers=headers, cookie_jar=jar) as session:
            yield session

    @contextlib.asynccontextmanager
    async def admin(self) -> AsyncIterator[aiohttp.ClientSession]:
        async with self.browser(Authorization=f"Bearer {ADMIN}") as session:
            await until_shows(session, "/pods", "serve-0")
            yield session


async def show(session: aiohttp.ClientSession, path: str, *, status: int = 200) -> str:
    """Return a page; fails if its status is another one."""
    async with session.get(path, allow_redirects=False) as answer:
        text = await answer.text()
        assert answer.status == status, (path, answer.status, text[-600:])
        return text


async def until_shows(session: aiohttp.ClientSession, path: str, text: str) -> str:
    async def look() -> str:
        return await show(session, path)

    return await patience.until_async(look, lambda seen: text in seen, what=f"{path} shows {text}")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """One server for all tests that change nothing of others."""
    async with staged(tmp_path_factory.mktemp("dashboard")) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def own_stage(tmp_path: pathlib.Path) -> AsyncIterator[Stage]:
    """A server for one test, which changes it."""
    async with staged(tmp_path) as made:
        yield made


@contextlib.asynccontextmanager
async def staged(folder: pathlib.Path, **changes: Any) -> AsyncIterator[Stage]:
    tokens = folder / "tokens.csv"
    tokens.write_text(f"{VIEWER},system:serviceaccount:speech:viewer,7\n{GUEST},guest,8\n")
    utc = clock.SystemClock().utc
    async with memory.MemoryStore() as store:
        options = serverfiles.AccessOptions(token_auth_file=tokens)
        granted = serverfiles.load_access(options, folder, store=store, utc=utc, admin_token=ADMIN)
        application = await apiserver.build(store, utc=utc, chance=random.Random(7), access=granted)
        await rolereconciliation.reconcile(application.dispatcher)
        async with clusters.open_server(application) as address:
            reached = access.Access(server=address, source="test", token=ADMIN)
            async with http.HttpClient(reached, clock=clock.SystemClock()) as client:
                listed = [each for each in world.documents() if not each["apiVersion"].startswith("kueue")]
                listed = [each for each in listed if each["kind"] not in ("Job",)]
                await world.create_all(client, [*listed, *world.limited_user()])
                settings = Settings(access=reached, start_key=KEY, check_seconds=0.05, **changes)
                async with serving.running(settings) as bound:
                    yield Stage(client=client, url=f"http://127.0.0.1:{bound.address.port}", settings=bound)


# Signing in


async def test_a_stranger_is_sent_to_the_sign_in_page_and_back(stage: Stage) -> None:
    async with stage.browser() as session:
        async with session.get("/pods?status=Pending", allow_redirects=False) as answer:
            assert answer.status == 303
            assert answer.headers["Location"] == "/signin?next=%2Fpods%3Fstatus%3DPending"
        form = {"token": ADMIN}
        async with session.post("/signin?next=%2Fpods%3Fstatus%3DPending", data=form, allow_redirects=False) as answer:
            assert answer.headers["Location"] == "/pods?status=Pending"
            cookie = answer.headers["Set-Cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=lax" in cookie
            assert ADMIN not in cookie
        await until_shows(session, "/pods?status=Pending", "whisper-large")


async def test_the_printed_address_signs_in_once_and_removes_the_key(stage: Stage) -> None:
    async with stage.browser() as session:
        assert serving.address(stage.settings) == f"{stage.url}/?key={KEY}"
        async with session.get(f"/?key={KEY}", allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/")
        await until_shows(session, "/", "kubernetes-admin")


@pytest.mark.parametrize(
    ("form", "want"),
    [
        pytest.param({"token": "wrong"}, "does not know this token", id="unknown-token"),
        pytest.param({}, "one of them is needed", id="nothing"),
        pytest.param({"token": "two words"}, "without spaces", id="not-a-token"),
        pytest.param({"kubeconfig": "a: ["}, "kubeconfig:", id="broken-yaml"),
        pytest.param({"kubeconfig": "kind: Config"}, "there is no context", id="no-context"),
    ],
)
async def test_bad_credentials_get_a_reason(stage: Stage, form: dict[str, str], want: str) -> None:
    async with stage.browser() as session, session.post("/signin", data=form) as answer:
        assert answer.status == 401
        assert want in await answer.text()


def kubeconfig(user: dict[str, Any]) -> str:
    context = {"cluster": "c", "user": "u", "namespace": "speech"}
    return json.dumps(
        {
            "current-context": "x",
            "contexts": [{"name": "x", "context": context}],
            "users": [{"name": "u", "user": user}],
            "clusters": [{"name": "c", "cluster": {"server": "https://elsewhere.example"}}],
        }
    )


async def test_a_kubeconfig_signs_in_as_its_user_on_this_cluster(stage: Stage) -> None:
    async with stage.browser() as session:
        async with session.post("/signin", data={"kubeconfig": kubeconfig({"token": VIEWER})}) as answer:
            assert answer.status == 200
        await until_shows(session, "/pods", "serve-0")


@pytest.mark.parametrize("field", ["exec", "tokenFile", "client-key", "auth-provider"])
async def test_a_kubeconfig_runs_no_program_and_reads_no_file_of_the_server(stage: Stage, field: str) -> None:
    text = kubeconfig({field: "/etc/passwd" if field != "exec" else {"command": "touch"}})
    async with stage.browser() as session, session.post("/signin", data={"kubeconfig": text}) as answer:
        assert answer.status == 401
        assert f"{field}: is outside of the file" in await answer.text()


async def test_signing_out_ends_the_session(stage: Stage) -> None:
    async with stage.browser() as session:
        page = await (await session.get(f"/?key={KEY}")).text()
        token = re.search(r'name="form_token" value="([^"]+)"', page)
        assert token is not None
        async with session.post("/signout", data={"form_token": "guess"}) as refused:
            assert refused.status == 403
        async with session.post("/signout", data={"form_token": token[1]}) as answer:
            assert answer.url.path == "/signin"
        await show(session, "/pods", status=303)


async def test_a_proxy_names_the_user_only_from_its_network(tmp_path: pathlib.Path) -> None:
    here, elsewhere = ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("10.0.0.0/8")
    headers = {"X-User": "system:serviceaccount:speech:viewer", "X-Groups": "team-speech"}
    (tmp_path / "here").mkdir()
    (tmp_path / "elsewhere").mkdir()
    trust = ProxyTrust(user_header="X-User", groups_header="X-Groups", networks=(here,))
    async with staged(tmp_path / "here", proxy=trust) as stage, stage.browser(**headers) as session:
        page = await show(session, "/")
        assert "system:serviceaccount:speech:viewer" in page
        assert "team-speech" in page
    trust = msgspec.structs.replace(trust, networks=(elsewhere,))
    async with staged(tmp_path / "elsewhere", proxy=trust) as stage, stage.browser(**headers) as session:
        await show(session, "/", status=303)


# Protection


async def test_other_hosts_and_other_sites_are_refused(stage: Stage) -> None:
    async with stage.browser() as session:
        async with session.get("/signin", headers={"Host": "evil.example"}) as answer:
            assert answer.status == 400
            assert "does not have that name" in await answer.text()
        async with session.get("/healthz", headers={"Host": "10.0.0.7:8001"}) as answer:
            assert await answer.text() == "ok\n"
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}):
            async with session.post("/signin", data={"token": ADMIN}, headers=headers) as answer:
                assert answer.status == 400
                assert "another site" in await answer.text()


async def test_every_answer_has_the_policy(stage: Stage) -> None:
    async with stage.browser() as session:
        for path in ("/signin", "/nowhere", "/assets/dashboard.css", "/healthz", "/live"):
            async with session.get(path, allow_redirects=False) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert "script-src 'self'" in policy
                assert "unsafe" not in policy


@pytest.mark.parametrize(
    "target", ["//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"]
)
async def test_sign_in_leads_to_no_other_site(stage: Stage, target: str) -> None:
    async with (
        stage.browser() as session,
        session.post("/signin", params={"next": target}, data={"token": ADMIN}, allow_redirects=False) as answer,
    ):
        assert answer.headers["Location"] == "/"


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("/pods?status=Bogus", "is not one of", id="unknown-choice"),
        pytest.param("/pods?page=0", "is not a number from 1", id="page-zero"),
        pytest.param("/pods?page=9999", "behind the last page", id="page-behind"),
        pytest.param("/pods?page=1e9", "is not a number", id="page-no-number"),
        pytest.param("/pods?nonsense=1", "no such parameter", id="unknown-parameter"),
        pytest.param("/pods?q=a&q=b", "is given twice", id="twice"),
        pytest.param("/pods?q=%00", "control characters", id="control-character"),
        pytest.param("/pods?q=" + "x" * 400, "400 characters", id="too-long"),
        pytest.param("/devices?colour=plaid", "is not one of", id="unknown-colour"),
        pytest.param("/devices/map.json?since=-1", "is not a number", id="negative-version"),
        pytest.param("/whatif?pod=nonsense", "is not NAMESPACE/NAME", id="pod-without-namespace"),
        pytest.param("/whatif?nodes=2", "name the node", id="nodes-like-nothing"),
        pytest.param("/whatif?queue=training", "needs a queue, a resource and a quota", id="quota-without-amount"),
        pytest.param("/whatif?defragment=racks", "is not one of", id="unknown-goal"),
        pytest.param("/queues?assume=soon", "parameter &#39;assume&#39;", id="no-duration"),
        pytest.param("/reports?file=x", "no such parameter", id="report-parameter"),
    ],
)
async def test_a_tampered_address_gets_a_clear_page(stage: Stage, path: str, want: str) -> None:
    async with stage.browser(Authorization=f"Bearer {ADMIN}") as session:
        page = await show(session, path, status=400)
        assert want in page
        assert "Traceback" not in page


@pytest.mark.parametrize(
    "path", ["/pods/speech/absent", "/claims/speech/absent", "/device?name=absent", "/workloads/a/b", "/nowhere"]
)
async def test_absent_things_get_a_clear_page(stage: Stage, path: str) -> None:
    async with stage.browser(Authorization=f"Bearer {ADMIN}") as session:
        await show(session, path, status=404)


# Pages


async def test_the_overview_counts_and_names_problems(stage: Stage) -> None:
    async with stage.admin() as session:
        page = await until_shows(session, "/", "Incomplete pool")
        assert "example.com/overheating=yes:NoExecute" in page
        assert '<a href="/pods/' in page
        assert "Pending pod" in page


async def test_hostile_texts_are_shown_harmlessly(stage: Stage) -> None:
    async with stage.admin() as session:
        for number, text in enumerate(world.HOSTILE):
            page = await show(session, f"/device?driver=odd.example.com&pool=odd-pool&name=odd-{number}")
            assert "<script>alert" not in page
            assert "<img src=x" not in page
            assert "\u202e" not in page
            assert text[-4:].rstrip(">\u202c") in page
        assert "⟨U+202E⟩evil" in await show(session, "/device?driver=odd.example.com&pool=odd-pool&name=odd-1")
        assert world.LONG_NAME in await show(session, "/pods?q=aaaa")
        assert world.LONG_NAME in await show(session, f"/pods/batch/{world.LONG_NAME}")


async def test_filters_are_in_the_address(stage: Stage) -> None:
    async with stage.admin() as session:
        page = await show(session, "/pods?namespace=speech&q=serve")
        assert "serve-0" in page
        assert "train-0" not in page
        assert "spare" in await show(session, "/claims?state=pending&namespace=vision")
        table = await show(session, "/devices?view=table&state=unhealthy")
        assert "hot" in table
        assert "share-0" not in table


async def test_a_pod_without_a_node_is_explained_and_a_change_tried(stage: Stage) -> None:
    async with stage.admin() as session:
        page = await show(session, "/pods/speech/whisper-large")
        assert 'data-load="/pods/speech/whisper-large/explanation"' in page
        explained = await show(session, "/pods/speech/whisper-large/explanation")
        assert 'class="reasons"' in explained
        assert (await show(session, "/whatif?pod=speech/whisper-large&remove_selectors=yes")).count("panel") > 2
        assert "does not exist" in await show(session, "/whatif?pod=speech/absent&count=1")


async def test_moves_are_planned(stage: Stage) -> None:
    async with stage.admin() as session:
        page = await show(session, "/whatif?defragment=nodes&wholes=1")
        assert "No move of pods frees nodes" in page
        assert "Devices before and after" not in page
        assert "is queueing on?" in await show(session, "/whatif?queue=training&resource=cpu&quota=99")


async def test_reports_are_read_and_refused(stage: Stage) -> None:
    async with stage.admin() as session:
        for text, want in (
            (json.dumps({"reports": [world.SIMULATION, world.SIMULATION]}), "Used share of cpu"),
            (json.dumps(world.REPLAY), "6 of 7 decisions come out as recorded"),
            ("{", "report: expected the output of drachma simulate run -o json"),
            ('{"title": 3}', "report: Expected"),
            ('{"reports": []}', "has 0 simulations"),
            ("", "the file is empty"),
        ):
            async with session.post("/reports", data={"report": text}) as answer:
                page = await answer.text()
            assert answer.status == 200
            assert want in page
            assert "<script>alert" not in page


async def test_a_claim_shows_its_requests(stage: Stage) -> None:
    async with stage.admin() as session:
        page = await show(session, "/claims/vision/spare")
        assert "Request gpu" in page
        assert world.GPUS in page
        assert "fragment" in await show(session, "/claims/vision/spare/explanation")


async def test_selectors_are_evaluated_on_devices(stage: Stage) -> None:
    async with stage.admin() as session:
        await until_shows(session, "/devices?view=table", "share-0")

        async def evaluate(expression: str) -> dict[str, Any]:
            async with session.get("/cel/evaluation", params={"expression": expression}) as answer:
                result: dict[str, Any] = await answer.json()
                return result

        result = await evaluate(f'device.driver == "{world.SHARED}"')
        assert (result["state"], result["count"]) == ("ok", 4)
        assert {each["device"] for each in result["matches"]} == {f"share-{number}" for number in range(4)}
        assert 0 < result["cost"] <= result["max_cost"] <= result["limit"]
        result = await evaluate("device.driver ==\n device.nonsense")
        assert result["issues"] == [{"line": 2, "column": 8, "message": "undefined field 'nonsense'"}]
        assert (await evaluate(""))["state"] == "empty"


async def test_a_cluster_without_queues_says_so(stage: Stage) -> None:
    async with stage.admin() as session:
        assert "has no queues" in await show(session, "/queues")
        assert queues.CLUSTER_QUEUES.plural == "clusterqueues"


# The map


async def test_the_map_sends_only_changes(own_stage: Stage) -> None:
    async with own_stage.admin() as session:
        await until_shows(session, "/devices?view=table", "share-0")
        full = json.loads(await show(session, "/devices/map.json"))
        assert full["full"]
        names = {tile["n"]: tile for tile in full["tiles"]}
        assert {tile["s"][each[0]] for tile in names.values() for each in tile["d"]} >= {"share-0", "hot", "gpu-0"}
        where = f"/devices/map.json?generation={full['generation']}&since={full['version']}"
        assert json.loads(await show(session, where))["tiles"] == []
        changed = world.documents()
        hot = next(each for each in changed if each["metadata"]["name"] == "odd-pool")
        hot["spec"]["devices"] = hot["spec"]["devices"][:1]
        hot["spec"]["pool"]["generation"] = 2
        kinds = {each.kind: each for each in await own_stage.client.resources() if each.group == "resource.k8s.io"}
        stored = await own_stage.client.get_document(kinds["ResourceSlice"], "odd-pool")
        hot["metadata"] = stored["metadata"]
        await own_stage.client.update_document(kinds["ResourceSlice"], hot)

        async def look() -> Any:
            return json.loads(await show(session, where))

        delta = await patience.until_async(look, lambda seen: seen["tiles"], what="the map has the change")
        assert [tile["n"] for tile in delta["tiles"]] == ["node-1"]
        assert not delta["full"]
        other = json.loads(await show(session, f"/devices/map.json?generation=999&since={full['version']}"))
        assert len(other["tiles"]) == len(full["tiles"])


# Live updates


async def test_a_change_is_announced_to_open_pages(own_stage: Stage) -> None:
    async with own_stage.admin() as session, session.get("/live") as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        await stream.content.readuntil(b"\n\n")
        hello = await stream.content.readuntil(b"\n\n")
        assert b"event: hello" in hello
        await own_stage.client.delete(pod.Pod, "serve-8", namespace="speech")
        async with asyncio.timeout(patience.SECONDS):
            while True:
                event = await stream.content.readuntil(b"\n\n")
                if b"event: change" in event and b'"pods"' in event:
                    break
        assert "serve-8" not in await show(session, "/pods?q=serve")


# A limited user


async def test_a_limited_user_sees_its_namespace_and_nothing_else(stage: Stage) -> None:
    async with stage.browser(Authorization=f"Bearer {VIEWER}") as session:
        assert "cannot list" in await until_shows(session, "/pods", "serve-0")
        for path in ("/pods", "/claims", "/devices?view=table", "/devices/map.json", "/queues", "/", "/cel"):
            page = await show(session, path)
            assert "train-0" not in page
            assert "spare" not in page
            assert "share-0" not in page
            assert "gpu-0" not in page
        await show(session, "/pods/vision/train-0", status=404)
        await show(session, f"/device?driver={world.SHARED}&pool=shared-pool&name=share-0", status=404)
        for path in ("/pods/speech/whisper-large/explanation", "/whatif?pod=speech/whisper-large&count=1"):
            page = await show(session, path)
            assert "you may not" in page
            assert "cannot list" in page


async def test_two_ways_to_sign_in_share_what_they_may_read(stage: Stage) -> None:
    async with stage.browser(Authorization=f"Bearer {GUEST}") as session:
        assert "No pod matches" in await until_shows(session, "/pods", "cannot list")
        async with stage.browser() as browser:
            await (await browser.post("/signin", data={"kubeconfig": kubeconfig({"token": GUEST})})).text()
            await until_shows(browser, "/pods", "serve-0")


async def test_a_namespace_that_the_user_names_is_read_if_allowed(stage: Stage) -> None:
    async with stage.browser() as session:
        page = await (await session.post("/signin", data={"token": GUEST})).text()
        token = re.search(r'name="form_token" value="([^"]+)"', page)
        assert token is not None
        for name in ("speech", "vision"):
            form = {"namespace": name, "form_token": token[1]}
            async with session.post("/namespaces", data=form) as answer:
                assert answer.status == 200
        assert "train-0" not in await until_shows(session, "/pods", "serve-0")
        async with session.post("/namespaces", data={"namespace": "Bad Name", "form_token": token[1]}) as answer:
            assert answer.status == 400
        explained = await show(session, "/pods/speech/whisper-large/explanation")
        assert "you may not" in explained


async def test_a_link_into_a_namespace_that_the_user_may_read_is_followed(own_stage: Stage) -> None:
    async with own_stage.browser(Authorization=f"Bearer {GUEST}") as session:
        await until_shows(session, "/pods?namespace=speech", "serve-0")
        await show(session, "/pods/speech/serve-0")
        assert "train-0" not in await show(session, "/pods?namespace=vision")
        await show(session, "/pods/vision/train-0", status=404)
        await show(session, "/pods/Not%20a%20name/train-0", status=404)


async def test_a_revoked_permission_empties_the_pages(own_stage: Stage) -> None:
    async with own_stage.browser() as session:
        await (await session.post("/signin", data={"kubeconfig": kubeconfig({"token": VIEWER})})).text()
        await until_shows(session, "/pods", "serve-0")
        kinds = {each.kind: each for each in await own_stage.client.resources()}
        await own_stage.client.delete(kinds["RoleBinding"], "viewer", namespace="speech")
        await until_shows(session, "/pods", "No pod matches")
        await show(session, "/pods/speech/serve-0", status=404)


async def test_only_who_may_delete_can_and_must_confirm(own_stage: Stage) -> None:
    async with own_stage.browser() as session:
        await (await session.post("/signin", data={"kubeconfig": kubeconfig({"token": VIEWER})})).text()
        await until_shows(session, "/pods", "serve-0")
        assert "you may not delete it" in await show(session, "/pods/speech/serve-0/delete", status=403)
    async with own_stage.browser() as session:
        await (await session.get(f"/?key={KEY}")).text()
        await until_shows(session, "/claims", "spare")
        page = await show(session, "/claims/vision/spare/delete")
        form = dict(re.findall(r'name="(form_token|uid)" value="([^"]+)"', page))
        async with session.post("/claims/vision/spare/delete", data={**form, "uid": "another"}) as answer:
            assert answer.status == 400
        async with session.post("/claims/vision/spare/delete", data={"uid": form["uid"]}) as answer:
            assert answer.status == 403
        await own_stage.client.get(resourceclaim.ResourceClaim, "spare", namespace="vision")
        async with session.post("/claims/vision/spare/delete", data=form) as answer:
            assert answer.status == 200
        await patience.until_async(
            lambda: show(session, "/claims"), lambda seen: "spare" not in seen, what="the claim is gone"
        )
