"""The dashboard in a real Chromium: every page and action, live updates, accessibility, and the policy against scripts.

With $DRACHMA_PICTURES naming a folder, the tests also save the pictures of docs/dashboard.md there. Reduce them to 224
colours before they are committed: that is a third of their size.
"""

import asyncio
import importlib.resources
import json
import os
import pathlib
from typing import Any

import pytest
from playwright.async_api import Page, expect

from drachma.api import pod, replicaset
from tests.browser import world
from tests.browser.conftest import Stage

PAGES = (
    "/",
    "/devices",
    "/devices?view=table",
    "/device?driver=partition.example.com&pool=partitions&name=gpu-0",
    "/pods",
    "/pods/speech/whisper-large",
    "/pods/vision/train-0",
    "/pods/vision/train-0/delete",
    "/claims",
    "/claims/vision/spare",
    "/queues",
    "/cel?expression=device.driver%20==%20%22shared.example.com%22",
    "/whatif?pod=speech/whisper-large&remove_selectors=yes",
    "/whatif?queue=training&resource=cpu&quota=20",
    "/whatif?defragment=nodes",
    "/queues/estimates?assume=1h",
    "/reports",
)
SERIOUS = ("serious", "critical")


async def settle(page: Page) -> None:
    """Wait until the live stream is open and explanations are loaded."""
    await expect(page.locator("#live")).to_have_text("live")
    await expect(page.locator("[aria-busy]")).to_have_count(0)


async def save_picture(page: Page, name: str) -> None:
    folder = os.environ.get("DRACHMA_PICTURES")
    if folder:
        await page.screenshot(path=pathlib.Path(folder) / f"{name}.png", animations="disabled")


async def find_faults(page: Page, *rules: str) -> list[str]:
    """Return the accessibility faults that axe-core calls serious or worse, by all rules unless some are named."""
    # Evaluated by the browser's debugger, which the page's policy does not concern.
    source = importlib.resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    await page.evaluate(source)
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = list(rules)
    result: dict[str, Any] = await page.evaluate("(options) => axe.run(options)", options)
    return [
        f"{each['id']}: {node['target']}: {node['failureSummary']}"
        for each in result["violations"]
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("pages", [PAGES[::2], PAGES[1::2]], ids=["even", "odd"])
def test_pages_are_accessible_dark_ones_too_and_fit_a_phone(stage: Stage, pages: tuple[str, ...]) -> None:
    async def check() -> None:
        faults: dict[str, list[str]] = {}
        # Without motion, colours change at once.
        async with stage.page(reduced_motion="reduce") as page:
            for path in pages:
                await page.emulate_media(color_scheme="light")
                await page.goto(stage.url + path)
                await settle(page)
                faults[path] = await find_faults(page)
                await page.emulate_media(color_scheme="dark")
                faults[f"{path} in the dark"] = await find_faults(page, "color-contrast")
                await page.set_viewport_size({"width": 390, "height": 860})
                widths = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
                assert widths[0] <= widths[1], path
                await page.set_viewport_size({"width": 1280, "height": 860})
        assert {path: listed for path, listed in faults.items() if listed} == {}

    stage.run(check())


def test_pages_without_a_user_are_accessible(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page(color_scheme="dark") as page:
            for path in ("/signin", "/pods?status=nonsense"):
                await page.goto(stage.url + path)
                assert await find_faults(page) == []

    stage.run(check())


def test_why_a_pod_is_pending_in_two_clicks(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page() as page:
            await settle(page)
            await expect(page.locator("#problems")).to_contain_text("speech/whisper-large")
            await save_picture(page, "overview")
            await page.locator("#problems a", has_text="speech/whisper-large").click()
            await expect(page.locator("#fragment")).to_contain_text("6 nodes have no device that matches request gpu")
            await expect(page.locator("#fragment")).to_contain_text("What would make it fit")
            await expect(page.locator("#fragment")).to_contain_text("drop selector #0")
            await settle(page)
            await save_picture(page, "pod")
            await page.get_by_text("YAML that would fit").first.click()
            await expect(page.locator("pre code").first).to_contain_text("kind: ResourceClaim")
            await page.get_by_role("link", name="Try a change…").first.click()
            await page.get_by_label("without selectors").check()
            await page.get_by_role("button", name="Ask").click()
            await expect(page.locator("#answer")).to_contain_text("The pod would go to")
            await expect(page.locator("#answer .cell.changed")).to_have_count(3)
            await save_picture(page, "whatif")

    stage.run(check())


def test_the_map_zooms_colours_and_opens_devices(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page() as page:
            await page.goto(f"{stage.url}/devices")
            await settle(page)
            canvas = page.locator("#map")
            await expect(canvas).to_have_attribute("data-devices", "135")
            await save_picture(page, "devices")
            for name in ("team", "pod", "class", "model", "health"):
                await page.get_by_label("Colour by").select_option(name)
                await expect(page).to_have_url(f"{stage.url}/devices?colour={name}")
            await page.get_by_label("Colour by").select_option("team")
            await expect(page.locator("#map-legend")).to_contain_text("vision")
            await page.get_by_role("button", name="Zoom in").click()
            await page.get_by_role("button", name="Zoom out").click()
            await page.get_by_role("button", name="Show everything").click()
            await expect(page.locator("#map-where")).to_have_text("6 of 6 nodes")
            await page.get_by_label("Colour by").select_option("state")
            await page.get_by_role("button", name="unhealthy").click()
            await expect(page).to_have_url(f"{stage.url}/devices?state=unhealthy&colour=state")
            await page.get_by_role("button", name="unhealthy").click()
            await expect(page).to_have_url(f"{stage.url}/devices?colour=state")
            await page.get_by_label("Search").fill("share-1")
            await canvas.focus()
            await page.keyboard.press("ArrowRight")
            await expect(page.locator("#map-said")).to_contain_text("share-0")
            await page.keyboard.press("ArrowDown")
            await expect(page.locator("#map-said")).to_contain_text("node-0")
            await page.keyboard.press("Enter")
            await expect(page.locator("h1")).to_have_text("gpu-0")

    stage.run(check())


def test_changes_arrive_live_on_map_and_lists(stage: Stage) -> None:
    async def check() -> None:
        document = next(each for each in world.documents() if each["metadata"]["name"] == "train-0")
        document["metadata"]["name"] = "latecomer"
        async with stage.page() as page, stage.page() as other:
            await page.goto(f"{stage.url}/pods?q=latecomer")
            await other.goto(f"{stage.url}/devices")
            await settle(page)
            await settle(other)
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
            await settle(page)
            await page.route("**/live", lambda route: route.abort())
            await sleep(page, is_hidden=True)
            await expect(page.locator("#live")).to_have_text("paused")
            await sleep(page, is_hidden=False)
            await expect(page.locator("#live")).to_have_text("reconnecting")
            await world.create_all(stage.client, [document])
            await page.unroute("**/live")
            await expect(page.locator("#live")).to_have_text("live")
            await expect(page.locator("#pod-table")).to_contain_text("while-away")
            await stage.client.delete(pod.Pod, "while-away", namespace="batch")
            await expect(page.locator("#pod-table")).to_contain_text("No pod matches")

    stage.run(check())


async def sleep(page: Page, *, is_hidden: bool) -> None:
    """Hide or show a page as if another tab were chosen."""
    await page.evaluate(
        "(hidden) => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange')); }",
        is_hidden,
    )


def test_filters_stay_in_the_address_and_focus_stays_in_the_field(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page() as page:
            await page.goto(f"{stage.url}/pods")
            await settle(page)
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


def test_selectors_are_completed_and_errors_marked(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page() as page:
            await page.goto(f"{stage.url}/cel")
            await settle(page)
            field = page.locator("#expression")
            await field.focus()
            await page.keyboard.type("bandwi")
            await expect(page.get_by_role("option")).to_contain_text("100G")
            await field.fill("")
            await page.keyboard.type('device.capacity["shared')
            await expect(page.get_by_role("option")).to_have_count(1)
            await page.keyboard.press("ArrowDown")
            await page.keyboard.press("Enter")
            await expect(field).to_have_value('device.capacity["shared.example.com"].memory')
            await page.keyboard.type('.isGreaterThan(quantity("1Gi"))')
            await expect(page.locator("#cel-result")).to_contain_text("4 of 135 devices match")
            await expect(page.locator("#cel-matches tbody tr")).to_have_count(4)
            await field.fill("device.driver ==\n  device.nonsense")
            shown = page.locator("#cel-result pre")
            await expect(shown).to_contain_text("undefined field 'nonsense'")
            assert "  device.nonsense\n        ^" in str(await shown.text_content())
            await expect(page.locator("#mirror mark")).to_have_text(".nonsense")
            await save_picture(page, "selectors")

    stage.run(check())


def test_queues_show_quota_order_and_reasons(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page() as page:
            await page.goto(f"{stage.url}/queues")
            await settle(page)
            await expect(page.locator("#queues")).to_contain_text("Cohort company")
            await expect(page.locator("#queue-training")).to_contain_text("Waiting, in order")
            await expect(page.locator("#queue-training .quota")).to_have_attribute(
                "aria-label", "5 of 4 used, 1 of it borrowed"
            )
            await expect(page.locator("#queue-serving .quota")).to_have_attribute(
                "aria-label", "0 of 4 used, 1 lent to others"
            )
            await page.locator("#queue-training tbody a").first.click()
            await expect(page.locator("#workload")).to_contain_text("Any one of these would help")
            await expect(page.locator("#workload")).to_contain_text("withinClusterQueue of training is Never")
            await settle(page)
            await save_picture(page, "workload")
            assert await find_faults(page) == []
            await page.get_by_role("link", name="Try it").first.click()
            await expect(page.locator("#answer")).to_contain_text("Starts")

    stage.run(check())


def test_estimates_are_in_the_queue_view(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page() as page:
            await page.goto(f"{stage.url}/queues")
            await settle(page)
            await expect(page.locator("#queue-training .start").first).to_contain_text("not within 30 days")
            await page.get_by_label("Running time of jobs").fill("2h")
            await page.get_by_role("button", name="Estimate").click()
            await expect(page).to_have_url(f"{stage.url}/queues?assume=2h")
            await settle(page)
            await expect(page.locator("#queue-training .start").first).to_contain_text("(80 %:")
            style = "(table) => getComputedStyle(table).display"
            assert await page.locator("table.quotas").first.evaluate(style) == "table", "cards are for phones"
            await save_picture(page, "queues")

    stage.run(check())


def test_another_quota_is_tried(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page() as page:
            await page.goto(f"{stage.url}/whatif")
            await settle(page)
            await page.get_by_role("link", name="Another quota").click()
            await page.get_by_label("Cluster queue").fill("training")
            await page.get_by_label("Resource").fill("cpu")
            await page.get_by_label("Nominal quota").fill("40")
            await page.get_by_role("button", name="Try the quota").click()
            await expect(page.locator("#answer h2")).to_contain_text("training: 40 of cpu (machines) instead of 4")
            await expect(page.locator("#answer")).to_contain_text("Starts")
            await expect(page.locator("#answer")).to_contain_text("batch/job-")
            await page.get_by_label("Nominal quota").fill("-3")
            await page.get_by_role("button", name="Try the quota").click()
            await expect(page.get_by_role("alert")).to_contain_text("is negative")

    stage.run(check())


def test_moves_are_shown_with_pictures_before_and_after(stage: Stage) -> None:
    async def check() -> None:
        await world.create_all(stage.client, world.divisible_devices())
        async with stage.page() as page:
            await page.goto(f"{stage.url}/pods?q=movable")
            await settle(page)
            for number, amount in enumerate((60, 30, 20), start=1):
                await world.create_all(stage.client, [world.replica_set(amount)])
                await expect(page.locator("#pod-table tbody tr", has_text="node-4")).to_have_count(number)
            # Without the first pod, both devices have a small user, and one of them could be whole.
            await stage.client.delete(replicaset.ReplicaSet, "movable-60", namespace="batch", propagation="Background")
            await expect(page.locator("#pod-table tbody tr", has_text="node-4")).to_have_count(2)
            await page.goto(f"{stage.url}/whatif")
            await settle(page)
            await page.get_by_role("link", name="Move pods").click()
            await page.locator("select[name=defragment]").select_option("devices")
            await page.get_by_role("button", name="Plan the moves").click()
            await expect(page).to_have_url(f"{stage.url}/whatif?defragment=devices&wholes=")
            answer = page.locator("#answer")
            await expect(answer.locator("h2").first).to_contain_text("whole devices instead of")
            await expect(answer.locator("tbody tr").first).to_contain_text("is whole again")
            await expect(answer.locator(".compare tbody tr").first).to_contain_text("node-4")
            await expect(answer.locator(".compare tbody tr").first.locator(".cell.changed")).to_have_count(4)
            await answer.evaluate("(element) => element.scrollIntoView()")
            await save_picture(page, "defragmentation")
            assert await find_faults(page) == []

    stage.run(check())


def test_reports_open_in_the_dashboard(stage: Stage, tmp_path: pathlib.Path) -> None:
    async def check() -> None:
        async with stage.page() as page:
            for name, content in (("run.json", world.SIMULATION), ("replay.json", world.REPLAY)):
                (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
            await page.goto(f"{stage.url}/reports")
            await settle(page)
            await page.get_by_label("File").set_input_files(tmp_path / "run.json")
            report = page.locator("#report")
            await expect(report).to_contain_text("pack <script>alert(1)</script>")
            await expect(report).to_contain_text("Allowed by ClusterQueue a: spec.preemption.reclaimWithinCohort")
            await expect(report.locator("img.picture")).to_have_count(3)
            assert await report.locator("img.picture").last.evaluate("(image) => image.naturalWidth > 0")
            assert await find_faults(page) == []
            await save_picture(page, "report")
            await page.get_by_label("File").set_input_files(tmp_path / "replay.json")
            await expect(report).to_contain_text("6 of 7 decisions come out as recorded")
            await expect(report).to_contain_text("Insufficient cpu")
            assert await find_faults(page) == []
            await page.get_by_label("Or its text").fill("[]")
            await page.get_by_role("button", name="Open").click()
            await expect(page.get_by_role("alert")).to_contain_text("expected an object")

    stage.run(check())


def test_a_limited_user_sees_only_its_namespace(stage: Stage) -> None:
    async def check() -> None:
        reply = await stage.client.request_token("speech", "viewer", spec={"expirationSeconds": 3600})
        token = reply["token"] if "token" in reply else reply["status"]["token"]
        async with stage.page(signs_in=False) as page:
            await page.goto(f"{stage.url}/pods")
            await page.get_by_label("Token", exact=True).fill(token)
            await page.get_by_role("button", name="Sign in").click()
            await settle(page)
            await expect(page.locator("#pod-table")).to_contain_text("serve-0")
            await expect(page.locator("#pod-table")).not_to_contain_text("train-0")
            await page.goto(f"{stage.url}/devices")
            await settle(page)
            await expect(page.locator("#map")).to_have_attribute("data-devices", "0")
            await page.goto(f"{stage.url}/pods/speech/whisper-large")
            await settle(page)
            await expect(page.locator("#fragment")).to_contain_text("you may not")
            await page.goto(f"{stage.url}/pods/speech/serve-0/delete")
            await expect(page.locator("h1")).to_have_text("You may not do this")
            for path in PAGES:
                # Refused pages are clear pages too, and none has objects of other namespaces.
                answer = await page.request.get(stage.url + path)
                text = (await answer.text()).partition("<main")[2]
                for name in ("vision/train-0", "vision/spare", "partitions/gpu-0", "pool=partitions"):
                    text = text.replace(name, "")
                assert "vision" not in text, path
                assert "partitions" not in text, path
            await page.goto(f"{stage.url}/")
            await page.get_by_role("button", name="Sign out").click()
            await expect(page.get_by_role("button", name="Sign in")).to_be_visible()

    stage.run(check())


def test_hostile_texts_run_nothing(stage: Stage) -> None:
    async def check() -> None:
        odd = "device?driver=odd.example.com&pool=odd-pool&name=odd"
        long_name = world.LONG_NAME
        async with stage.page() as page:
            page.on("dialog", lambda dialog: stage.complaints.append(f"dialog: {dialog.message}"))
            for path in (
                *(f"/{odd}-{number}" for number in range(len(world.HOSTILE))),
                "/",
                "/devices?colour=model",
                "/devices?view=table",
                "/pods",
                "/pods/batch/hostile",
                f"/pods/batch/{long_name}",
                "/claims",
                "/claims/batch/hostile",
                f"/claims/batch/{long_name}",
                f"/device?driver=odd.example.com&pool={long_name}&name={'d' * 63}",
                "/devices?colour=class",
                "/devices?colour=pod",
                "/queues",
                "/queues?assume=1h",
                f"/workloads/batch/{long_name}",
                "/cel",
                "/whatif",
                "/whatif?pod=batch/hostile&selector=%3Cscript%3Ealert(1)%3C/script%3E",
                f"/whatif?nodes=1&like={long_name}",
                f"/whatif?queue={long_name}&resource=cpu&quota=9",
                "/whatif?defragment=nodes",
            ):
                await page.goto(stage.url + path)
                await settle(page)
                assert await page.locator("main script, main img").count() == 0, path
                text = await page.locator("main").inner_text()
                assert not set(text) & {"\u202e", "\u202c", "\u2066"}, path
                for width in (390, 1280):
                    await page.set_viewport_size({"width": width, "height": 860})
                    widths = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
                    assert widths[0] <= widths[1], (path, width, widths)
                if path.startswith(("/pods/batch/hostile", "/claims/batch", "/devices?colour=model", "/workloads")):
                    assert "<script>alert(1)</script>" in text, path
            await page.goto(f"{stage.url}/cel?expression=%3Cscript%3Ealert(1)%3C/script%3E")
            await expect(page.locator("#cel-result")).to_contain_text("Syntax error")

    async def prepare() -> None:
        await world.create_all(stage.client, world.hostile_objects())
        await world.write_hostile_statuses(stage.client)

    stage.run(prepare())
    try:
        stage.run(check())
    finally:
        stage.run(world.delete_all(stage.client, world.hostile_objects()))


def test_tampered_addresses_get_clear_pages(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page() as page:
            for path in PAGES:
                base, _, query = path.partition("?")
                for more in ("nonsense=1", "q=%00&q=2", "page=-1", "%ff=%ff", "pod=<script>"):
                    answer = await page.request.get(f"{stage.url}{base}?{query}&{more}")
                    text = await answer.text()
                    assert answer.status == 400, (path, more)
                    assert "This address or form cannot be used" in text
                    assert "Traceback" not in text
                    assert "<script>" not in text.replace("</script><script", "")
            for path in (
                "/pods/a/../../etc",
                "/pods/none/none",
                "/workloads/x/y",
                "/claims/x/y",
                "/nowhere",
                "/device",
            ):
                answer = await page.request.get(stage.url + path)
                assert answer.status == 404, path
                assert "Traceback" not in await answer.text()
            await page.goto(f"{stage.url}/pods?status=%3Cscript%3Ealert(1)%3C/script%3E")
            await expect(page.locator(".note")).to_contain_text("is not one of")
            await page.get_by_role("link", name="This page without parameters").click()
            await expect(page.locator("h1")).to_have_text("Pods")

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
                await settle(page)
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
            await settle(page)
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
                await settle(page)
            await expect(page.locator("#live")).to_have_text("reconnecting")
            await world.create_all(stage.client, [document])
            async with stage.second_dashboard(port):
                await expect(page.locator("#live")).to_have_text("live")
                await expect(page.locator("#pod-table")).to_contain_text("Running")
            await stage.client.delete(pod.Pod, "restarted", namespace="speech")

    stage.run(check())


def test_deleting_asks_first(stage: Stage) -> None:
    async def check() -> None:
        document = next(each for each in world.documents() if each["metadata"]["name"] == "spare")
        document["metadata"]["name"] = "doomed"
        await world.create_all(stage.client, [document])
        async with stage.page() as page:
            await page.goto(f"{stage.url}/claims/vision/doomed")
            await page.get_by_role("link", name="Delete…").click()
            await page.get_by_role("link", name="Keep it").click()
            await expect(page.locator("#claim-table")).to_contain_text("doomed")
            await page.goto(f"{stage.url}/claims/vision/doomed/delete")
            await page.get_by_role("button", name="Delete it").click()
            await expect(page.locator("#claim-table")).not_to_contain_text("doomed")

    stage.run(check())


def test_a_phone_scrolls_in_one_direction_and_the_theme_is_kept(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page(width=390, has_touch=True) as page:
            for path in ("/", "/pods", "/whatif?form=quota"):
                await page.goto(stage.url + path)
                await settle(page)
                widths = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
                assert widths[0] <= widths[1], path
            await page.get_by_role("button", name="Switch between light and dark").click()
            await page.goto(f"{stage.url}/pods")
            assert await page.evaluate("document.documentElement.dataset.theme") == "dark"
            await page.goto(f"{stage.url}/")
            await settle(page)
            await save_picture(page, "phone")
            await page.emulate_media(media="print")
            assert not await page.locator(".side").is_visible()
            background = await page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert background == "rgb(255, 255, 255)", "paper is white, in the dark theme too"

    stage.run(check())


def test_many_pages_of_one_user_share_one_view(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page() as page:
            answers = await asyncio.gather(*(page.request.get(f"{stage.url}/devices/map.json") for _ in range(20)))
            versions = {json.loads(await each.text())["generation"] for each in answers}
            assert len(versions) == 1

    stage.run(check())
