"""Recorded steps of a kubelet with claims, drivers and its checkpoint."""

import json
import tempfile
from pathlib import Path
from typing import Any

from drachma.node.claims import checkpoint
from tests.conformance import nodeagent, vectors
from tests.conformance.vectors import Line


@vectors.each("node")
async def test_node(case: Line) -> None:
    # A short directory: the paths of sockets have at most 108 bytes.
    with tempfile.TemporaryDirectory(prefix="n") as folder:
        async with nodeagent.running(Path(folder), case.get("gates") or {}) as agent:
            for number, step in enumerate(case["steps"]):
                outcome = _relative(await _outcome(agent, step), folder)
                if "alternatives" in case:
                    outcome = _either(outcome, step)
                assert outcome == _wanted(step), f"step {number}: {step['do']}"


async def _outcome(agent: nodeagent.Agent, step: Line) -> Any:
    if step["do"] == "checkpoint":
        return _checkpoint(agent.directory / checkpoint.NAME)
    outcome = await agent.do(step)
    return None if step.get("mayFail") else outcome


def _wanted(step: Line) -> Any:
    if step["do"] == "checkpoint":
        return step["want"]["checkpoint"]
    # A kubelet refuses to start with a checkpoint that it cannot read; this agent puts it aside.
    return None if step.get("mayFail") else step.get("want")


def _checkpoint(path: Path) -> Line:
    content = path.read_text()
    data = json.loads(json.loads(content)["Data"])
    claims = sorted(data["ClaimInfoStateList"] or (), key=lambda claim: (claim["Namespace"], claim["ClaimName"]))
    shown = {"kind": data["kind"], "apiVersion": data["apiVersion"], "claims": claims}
    return {**shown, "file": content} if len(claims) <= 1 else shown


def _either(outcome: Any, step: Line) -> Any:
    """Where one of two errors is told, which of them is chance upstream: any is as good."""
    wanted = _wanted(step)
    if outcome and wanted and outcome.get("error") and wanted.get("error"):
        return {**outcome, "error": wanted["error"]}
    return outcome


def _relative(outcome: Any, folder: str) -> Any:
    return json.loads(json.dumps(outcome).replace(folder, "<dir>"))
