"""Accessibility of every page by axe-core, in light and dark and on a phone."""

import pytest

from tests.browser import views
from tests.browser.conftest import Stage


@pytest.mark.parametrize("pages", [views.PAGES[::2], views.PAGES[1::2]], ids=["even", "odd"])
def test_pages_are_accessible_dark_ones_too_and_fit_a_phone(stage: Stage, pages: tuple[str, ...]) -> None:
    async def check() -> None:
        faults: dict[str, list[str]] = {}
        # Without motion, colours change at once.
        async with stage.page(reduced_motion="reduce") as page:
            for path in pages:
                await page.emulate_media(color_scheme="light")
                await page.goto(stage.url + path)
                await views.settle(page)
                faults[path] = await views.find_faults(page)
                await page.emulate_media(color_scheme="dark")
                faults[f"{path} in the dark"] = await views.find_faults(page, "color-contrast")
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
                assert await views.find_faults(page) == []

    stage.run(check())


def test_a_phone_scrolls_in_one_direction_and_the_theme_is_kept(stage: Stage) -> None:
    async def check() -> None:
        async with stage.page(width=390, has_touch=True) as page:
            for path in ("/", "/pods", "/whatif?form=quota"):
                await page.goto(stage.url + path)
                await views.settle(page)
                widths = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
                assert widths[0] <= widths[1], path
            await page.get_by_role("button", name="Switch between light and dark").click()
            await page.goto(f"{stage.url}/pods")
            assert await page.evaluate("document.documentElement.dataset.theme") == "dark"
            await page.goto(f"{stage.url}/")
            await views.settle(page)
            await views.save_picture(page, "phone")
            await page.emulate_media(media="print")
            assert not await page.locator(".side").is_visible()
            background = await page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert background == "rgb(255, 255, 255)", "paper is white, in the dark theme too"

    stage.run(check())
