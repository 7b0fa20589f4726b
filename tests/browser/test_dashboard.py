"""The dashboard in a real Chromium: what each page answers, and its actions.

With $DRACHMA_PICTURES naming a folder, the tests also save the pictures of docs/dashboard.md there. Reduce them to 224
colours before they are committed: that is a third of their size.
"""

import json
import pathlib

from playwright.async_api import expect

from drachma.api import replicaset
from tests.browser import views, world
from tests.browser.conftest import Stage


def test_why_a_pod_is_pending_in_two_clicks(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page() as page:
            await views.settle(page)
            await expect(page.locator("#problems")).to_contain_text("speech/whisper-large")
            await views.save_picture(page, "overview")
            await page.locator("#problems a", has_text="speech/whisper-large").click()
            await expect(page.locator("#fragment")).to_contain_text("6 nodes have no device that matches request gpu")
            await expect(page.locator("#fragment")).to_contain_text("What would make it fit")
            await expect(page.locator("#fragment")).to_contain_text("drop selector #0")
            await views.settle(page)
            await views.save_picture(page, "pod")
            await page.get_by_text("YAML that would fit").first.click()
            await expect(page.locator("pre code").first).to_contain_text("kind: ResourceClaim")
            await page.get_by_role("link", name="Try a change…").first.click()
            await page.get_by_label("without selectors").check()
            await page.get_by_role("button", name="Ask").click()
            await expect(page.locator("#answer")).to_contain_text("The pod would go to")
            await expect(page.locator("#answer .cell.changed")).to_have_count(3)
            await views.save_picture(page, "whatif")

    stage.run(check())


def test_the_map_zooms_colours_and_opens_devices(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page() as page:
            await page.goto(f"{stage.url}/devices")
            await views.settle(page)
            canvas = page.locator("#map")
            await expect(canvas).to_have_attribute("data-devices", "135")
            await views.save_picture(page, "devices")
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


def test_selectors_are_completed_and_errors_marked(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page() as page:
            await page.goto(f"{stage.url}/cel")
            await views.settle(page)
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
            await views.save_picture(page, "selectors")

    stage.run(check())


def test_queues_show_quota_order_and_reasons(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page() as page:
            await page.goto(f"{stage.url}/queues")
            await views.settle(page)
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
            await views.settle(page)
            await views.save_picture(page, "workload")
            assert await views.find_faults(page) == []
            await page.get_by_role("link", name="Try it").first.click()
            await expect(page.locator("#answer")).to_contain_text("Starts")

    stage.run(check())


def test_estimates_are_in_the_queue_view(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page() as page:
            await page.goto(f"{stage.url}/queues")
            await views.settle(page)
            await expect(page.locator("#queue-training .start").first).to_contain_text("not within 30 days")
            await page.get_by_label("Running time of jobs").fill("2h")
            await page.get_by_role("button", name="Estimate").click()
            await expect(page).to_have_url(f"{stage.url}/queues?assume=2h")
            await views.settle(page)
            await expect(page.locator("#queue-training .start").first).to_contain_text("(80 %:")
            style = "(table) => getComputedStyle(table).display"
            assert await page.locator("table.quotas").first.evaluate(style) == "table", "cards are for phones"
            await views.save_picture(page, "queues")

    stage.run(check())


def test_another_quota_is_tried(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page() as page:
            await page.goto(f"{stage.url}/whatif")
            await views.settle(page)
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
            await views.settle(page)
            for number, amount in enumerate((60, 30, 20), start=1):
                await world.create_all(stage.client, [world.replica_set(amount)])
                await expect(page.locator("#pod-table tbody tr", has_text="node-4")).to_have_count(number)
            # Without the first pod, both devices have a small user, and one of them could be whole.
            await stage.client.delete(replicaset.ReplicaSet, "movable-60", namespace="batch", propagation="Background")
            await expect(page.locator("#pod-table tbody tr", has_text="node-4")).to_have_count(2)
            await page.goto(f"{stage.url}/whatif")
            await views.settle(page)
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
            await views.save_picture(page, "defragmentation")
            assert await views.find_faults(page) == []

    stage.run(check())


def test_reports_open_in_the_dashboard(stage: Stage, tmp_path: pathlib.Path) -> None:
    async def check() -> None:
        async with stage.page() as page:
            for name, content in (("run.json", world.SIMULATION), ("replay.json", world.REPLAY)):
                (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
            await page.goto(f"{stage.url}/reports")
            await views.settle(page)
            await page.get_by_label("File").set_input_files(tmp_path / "run.json")
            report = page.locator("#report")
            await expect(report).to_contain_text("pack <script>alert(1)</script>")
            await expect(report).to_contain_text("Allowed by ClusterQueue a: spec.preemption.reclaimWithinCohort")
            await expect(report.locator("img.picture")).to_have_count(3)
            assert await report.locator("img.picture").last.evaluate("(image) => image.naturalWidth > 0")
            assert await views.find_faults(page) == []
            await views.save_picture(page, "report")
            await page.get_by_label("File").set_input_files(tmp_path / "replay.json")
            await expect(report).to_contain_text("6 of 7 decisions come out as recorded")
            await expect(report).to_contain_text("Insufficient cpu")
            assert await views.find_faults(page) == []
            await page.get_by_label("Or its text").fill("[]")
            await page.get_by_role("button", name="Open").click()
            await expect(page.get_by_role("alert")).to_contain_text("expected an object")

    stage.run(check())
