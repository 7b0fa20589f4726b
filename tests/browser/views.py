"""Pages of the dashboard, and steps and checks for each of them."""

import importlib.resources
import os
import pathlib
from typing import Any

from playwright.async_api import Page, expect

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


async def sleep(page: Page, *, is_hidden: bool) -> None:
    """Hide or show a page as if another tab were chosen."""
    await page.evaluate(
        "(hidden) => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange')); }",
        is_hidden,
    )


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
