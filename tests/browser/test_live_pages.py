"""Live updates of pages: changes of the cluster, lost connections, hidden pages, restarts of the server."""

import asyncio
import json

from playwright.async_api import expect

from drachma.api import pod
from tests.browser import views, world
from tests.browser.conftest import Stage


def test_changes_arrive_live_on_map_and_lists(stage: Stage) -> None:
    async def check() -> None:
        document = next(each for each in world.documents() if each["metadata"]["name"] == "train-0")
        document["metadata"]["name"] = "latecomer"
        async with stage.page() as page, stage.page() as other:
            await page.goto(f"{stage.url}/pods?q=latecomer")
            await other.goto(f"{stage.url}/devices")
            await views.settle(page)
            await views.settle(other)
            before = await other.locator("#device-count").text_content()
            version = await other.locator("#map").get_attribute("data-version")
            await world.create_all(stage.client, [document])
            await expect(page.locator("#pod-table")).to_contain_text("Running")
            await expect(other.locator("#device-count")).not_to_have_text(str(before))
            await expect(other.locator("#map")).not_to_have_attribute("data-version", str(version))
            await stage.client.delete(pod.Pod, "latecomer", namespace="vision")
            await expect(page.locator("#pod-table")).to_contain_text("No pod matches")
            await expect(other.locator("#device-count")).to_have_text(str(before))

    stage.run(check())


def test_a_lost_connection_comes_back_and_the_page_catches_up(stage: Stage) -> None:
    async def check() -> None:
        document = next(each for each in world.documents() if each["metadata"]["name"] == "gated")
        document["metadata"]["name"] = "while-away"
        async with stage.page() as page:
            await page.goto(f"{stage.url}/pods?q=while-away")
            await views.settle(page)
            await page.route("**/live", lambda route: route.abort())
            await views.sleep(page, is_hidden=True)
            await expect(page.locator("#live")).to_have_text("paused")
            await views.sleep(page, is_hidden=False)
            await expect(page.locator("#live")).to_have_text("reconnecting")
            await world.create_all(stage.client, [document])
            await page.unroute("**/live")
            await expect(page.locator("#live")).to_have_text("live")
            await expect(page.locator("#pod-table")).to_contain_text("while-away")
            await stage.client.delete(pod.Pod, "while-away", namespace="batch")
            await expect(page.locator("#pod-table")).to_contain_text("No pod matches")

    stage.run(check())


def test_filters_stay_in_the_address_and_focus_stays_in_the_field(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page() as page:
            await page.goto(f"{stage.url}/pods")
            await views.settle(page)
            await page.keyboard.press("/")
            await page.keyboard.type("serve-3")
            await expect(page).to_have_url(f"{stage.url}/pods?q=serve-3")
            await expect(page.locator("#pod-table tbody tr")).to_have_count(1)
            assert await page.evaluate("document.activeElement.name") == "q"
            await page.get_by_label("Status").select_option("Running")
            await expect(page).to_have_url(f"{stage.url}/pods?q=serve-3&status=Running")
            await page.reload()
            await expect(page.get_by_label("Search")).to_have_value("serve-3")
            await page.keyboard.press("?")
            await expect(page.get_by_role("dialog")).to_be_visible()

    stage.run(check())


def test_every_page_is_live(stage: Stage) -> None:
    async def check() -> None:
        documents = {each["metadata"]["name"]: each for each in world.documents() if "metadata" in each}
        pod_document, job = documents["whisper-large"], documents["evaluate"]
        pod_document["metadata"]["name"], job["metadata"]["name"] = "newcomer", "newjob"
        paths = ("/", "/claims", "/queues", "/pods?q=newcomer", "/pods/speech/newcomer")
        async with stage.page() as first:
            pages = [first] + [await first.context.new_page() for _ in paths[1:]]
            await world.create_all(stage.client, [pod_document])
            for page, path in zip(pages, paths, strict=True):
                await page.goto(stage.url + path)
                await views.settle(page)
            overview, claims, queues, listed, own = pages
            await expect(listed.locator("#pod-table")).to_contain_text("newcomer")
            waiting = await overview.locator("#cards").inner_text()
            await world.create_all(stage.client, [job])
            await expect(queues.locator("#queues")).to_contain_text("job-newjob")
            await expect(overview.locator("#cards")).not_to_have_text(waiting)
            await stage.client.delete(pod.Pod, "newcomer", namespace="speech")
            await expect(listed.locator("#pod-table")).to_contain_text("No pod matches")
            await expect(claims.locator("#claim-table")).not_to_contain_text("newcomer")
            await expect(own.locator("#notice")).to_contain_text("This page is gone")

    stage.run(check())


def test_a_page_recovers_after_an_hour_of_sleep(stage: Stage) -> None:
    async def check() -> None:
        document = next(each for each in world.documents() if each["metadata"]["name"] == "gated")
        document["metadata"]["name"] = "overnight"
        async with stage.page() as page:
            await page.clock.install()
            await page.goto(f"{stage.url}/pods?q=overnight")
            await views.settle(page)
            await page.context.set_offline(True)
            await world.create_all(stage.client, [document])
            await page.clock.fast_forward("01:00:00")
            await expect(page.locator("#pod-table")).to_contain_text("No pod matches")
            await page.context.set_offline(False)
            await page.clock.fast_forward("00:01:00")
            await expect(page.locator("#live")).to_have_text("live")
            await expect(page.locator("#pod-table")).to_contain_text("overnight")
            await stage.client.delete(pod.Pod, "overnight", namespace="batch")

    stage.run(check())


def test_a_page_recovers_after_a_restart_of_the_server(stage: Stage) -> None:
    async def check() -> None:
        answer = await stage.client.request_token("speech", "viewer", spec={"expirationSeconds": 3600})
        token = answer["token"] if "token" in answer else answer["status"]["token"]
        # A proxy adds the token to every request, so no session is lost with the server.
        headers = {"Authorization": f"Bearer {token}"}
        document = next(each for each in world.documents() if each["metadata"]["name"] == "serve-0")
        document["metadata"]["name"] = "restarted"
        port = stage.free_port()
        async with stage.page(signs_in=False, extra_http_headers=headers) as page:
            async with stage.second_dashboard(port) as url:
                await page.goto(f"{url}/pods?q=restarted")
                await views.settle(page)
            await expect(page.locator("#live")).to_have_text("reconnecting")
            await world.create_all(stage.client, [document])
            async with stage.second_dashboard(port):
                await expect(page.locator("#live")).to_have_text("live")
                await expect(page.locator("#pod-table")).to_contain_text("Running")
            await stage.client.delete(pod.Pod, "restarted", namespace="speech")

    stage.run(check())


def test_many_pages_of_one_user_share_one_view(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page() as page:
            answers = await asyncio.gather(*(page.request.get(f"{stage.url}/devices/map.json") for _ in range(20)))
            versions = {json.loads(await each.text())["generation"] for each in answers}
            assert len(versions) == 1

    stage.run(check())
