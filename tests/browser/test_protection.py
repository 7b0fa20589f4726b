"""Protection of users: limited ones, hostile texts, tampered addresses, and questions before deletions."""

from playwright.async_api import expect

from tests.browser import views, world
from tests.browser.conftest import Stage


def test_a_limited_user_sees_only_its_namespace(stage: Stage) -> None:
    async def check() -> None:
        reply = await stage.client.request_token("speech", "viewer", spec={"expirationSeconds": 3600})
        token = reply["token"] if "token" in reply else reply["status"]["token"]
        async with stage.page(signs_in=False) as page:
            await page.goto(f"{stage.url}/pods")
            await page.get_by_label("Token", exact=True).fill(token)
            await page.get_by_role("button", name="Sign in").click()
            await views.settle(page)
            await expect(page.locator("#pod-table")).to_contain_text("serve-0")
            await expect(page.locator("#pod-table")).not_to_contain_text("train-0")
            await page.goto(f"{stage.url}/devices")
            await views.settle(page)
            await expect(page.locator("#map")).to_have_attribute("data-devices", "0")
            await page.goto(f"{stage.url}/pods/speech/whisper-large")
            await views.settle(page)
            await expect(page.locator("#fragment")).to_contain_text("you may not")
            await page.goto(f"{stage.url}/pods/speech/serve-0/delete")
            await expect(page.locator("h1")).to_have_text("You may not do this")
            for path in views.PAGES:
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
                await views.settle(page)
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
            for path in views.PAGES:
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
