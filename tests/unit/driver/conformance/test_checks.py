"""Every rule finds out the driver that breaks it, and nothing is held against one that breaks none."""

import pathlib
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from drachma.api import node
from drachma.driver.conformance import checks, report, stage
from drachma.driver.conformance.apifaults import ApiFaults
from drachma.driver.conformance.report import Outcome
from drachma.driver.conformance.rules import apifaults
from drachma.process import embedded
from drachma.store import memory
from tests.unit.driver.conformance import defects, faultyclient

WAITED_FOR_IN_VAIN = ("gives-up-writing", "publishes-once", "wrong-count")
"""Defects of drivers that never do what a sound one does at once."""


@asynccontextmanager
async def _staged(defect: str) -> AsyncIterator[stage.Stage]:
    with tempfile.TemporaryDirectory(prefix="b") as name:
        folder = pathlib.Path(name)
        async with embedded.server(memory.MemoryStore()) as server:
            await server.client.create_document(
                node.Node, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker"}}
            )
            faults = ApiFaults()
            between = faultyclient.wrap(server.client, faults)
            driver = defects.DefectiveDriver(between, folder, node="worker", defect=defect)
            yield stage.Stage(
                server.client,
                driver,
                node="worker",
                registration=lambda: driver.registration if driver.registration.exists() else None,
                cdi=folder / "cdi",
                faults=faults,
                admin_parameters=defects.ADMIN_PARAMETERS,
            )


async def _outcomes(defect: str, *names: str) -> dict[str, Outcome]:
    async with _staged(defect) as staged:
        made = await checks.run(staged, checks.chosen(names) if names else checks.ALL)
    return {result.name: result.outcome for result in made.results}


@pytest.fixture(autouse=True)
def _in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ends are in this process: what is slow need not be so slow here."""
    monkeypatch.setattr(apifaults, "SLOW_SECONDS", 0.05)


async def test_a_driver_without_defects_passes() -> None:
    assert set((await _outcomes("")).values()) == {Outcome.PASSED}


@pytest.mark.parametrize(
    ("defect", "check", "want"),
    [
        pytest.param(defect, check, want, id=defect)
        for defect, check, want in [
            ("other-type", "registration", Outcome.FAILED),
            ("bad-name", "registration", Outcome.FAILED),
            ("no-version", "registration", Outcome.FAILED),
            ("refuses-registration", "registration", Outcome.FAILED),
            ("two-slices", "slices", Outcome.FAILED),
            ("wrong-count", "slices", Outcome.FAILED),
            ("not-owned", "slices-owned", Outcome.WARNED),
            ("counts-generations", "slices-stable", Outcome.FAILED),
            ("renews-slices", "slices-stable", Outcome.FAILED),
            ("other-device", "prepare", Outcome.FAILED),
            ("no-file", "prepare", Outcome.FAILED),
            ("invalid-file", "prepare", Outcome.FAILED),
            ("unqualified-id", "prepare", Outcome.FAILED),
            ("answers-nothing", "prepare", Outcome.FAILED),
            ("tells-subrequests", "prepare-subrequest", Outcome.FAILED),
            ("another-id-each-time", "prepare-again", Outcome.FAILED),
            ("other-version-differs", "versions", Outcome.FAILED),
            ("answers-one-claim", "prepare-several", Outcome.FAILED),
            ("leaves-files", "unprepare", Outcome.FAILED),
            ("unprepares-once", "unprepare-again", Outcome.FAILED),
            ("fails-on-unknown", "unprepare-unknown", Outcome.FAILED),
            ("prepares-unknown", "unknown-claim", Outcome.FAILED),
            ("other-status", "unknown-claim-status", Outcome.WARNED),
            ("ignores-slices", "unpublished-device", Outcome.FAILED),
            ("gives-twice", "device-in-use", Outcome.WARNED),
            ("ignores-source", "admin-parameters", Outcome.FAILED),
            ("ignores-uid", "other-uid", Outcome.FAILED),
            ("ignores-allocation", "not-allocated", Outcome.FAILED),
            ("ignores-parameters", "invalid-parameters", Outcome.WARNED),
            ("mixes-claims-up", "claims-at-once", Outcome.FAILED),
            ("remembers-in-memory", "killed-after-prepare", Outcome.FAILED),
            ("forgets-when-restarted", "killed-before-unprepare", Outcome.FAILED),
            ("writes-once", "lost-files", Outcome.FAILED),
            ("needs-directory", "lost-directory", Outcome.WARNED),
            ("prepares-unread", "claim-refused", Outcome.FAILED),
            ("has-no-patience", "claim-slow", Outcome.FAILED),
            ("reads-to-undo", "unprepare-alone", Outcome.FAILED),
            ("ends-without-server", "start-alone", Outcome.WARNED),
            ("publishes-once", "slices-deleted", Outcome.FAILED),
            ("gives-up-writing", "slices-conflict", Outcome.FAILED),
            ("health-of-strangers", "health", Outcome.FAILED),
            ("health-ends", "health", Outcome.FAILED),
            ("leaves-socket", "stop", Outcome.WARNED),
        ]
    ],
)
async def test_a_driver_with_a_defect_is_found_out(
    defect: str, check: str, want: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    class HastyStage(stage.Stage):
        """Once the driver has started, nothing is waited for long."""

        async def start(self) -> None:
            await super().start()
            monkeypatch.setattr(stage, "WAIT_SECONDS", 1.0)

    if defect in WAITED_FOR_IN_VAIN:
        monkeypatch.setattr(stage, "Stage", HastyStage)
    assert await _outcomes(defect, check) == {check: want}


def test_the_report_says_what_the_rule_is() -> None:
    made = report.Report(
        driver="d.example.com",
        versions=("v1.DRAPlugin",),
        results=(
            report.Result(name="one", rule="r", source="s", outcome=Outcome.PASSED),
            report.Result(
                name="another", rule="the rule", source="KEP", outcome=Outcome.FAILED, detail="what was seen"
            ),
        ),
    )
    assert report.text(made) == (
        "driver d.example.com: v1.DRAPlugin\n"
        "  one      ok\n"
        "  another  FAILED\n"
        "      what was seen\n"
        "      rule: the rule (KEP)\n"
        "1 passed, 1 failed\n"
    )
    assert not made.has_passed
