"""Times of taints that the driver leaves to the server: kept in updates, and not for slices that are created again."""

from typing import Any

from tests.conformance import test_publish as recorded

DRIVER = "driver.example.com"
NAME = f"00000-{DRIVER}-"
TIME = "2026-01-01T00:00:00Z"


def _pool(*taints: dict[str, Any]) -> dict[str, Any]:
    return {"slices": [{"devices": [{"name": "a", "taints": list(taints)}]}], "allNodes": True}


def _stored(suffix: str, generation: int, taint: dict[str, Any]) -> dict[str, Any]:
    pool = {"name": "pool", "generation": generation, "resourceSliceCount": 2}
    spec = {"driver": DRIVER, "pool": pool, "allNodes": True, "devices": [{"name": "a", "taints": [taint]}]}
    return {"metadata": {"name": f"{NAME}{suffix}", "uid": suffix}, "spec": spec}


async def test_a_slice_that_is_created_again_has_new_times() -> None:
    taint = {"key": "a.com/x", "effect": "NoExecute"}
    stage = recorded.Stage({"driver": DRIVER, "existing": [_stored("old", 1, {**taint, "timeAdded": TIME})]})
    try:
        answer = await stage.do({"do": "publish", "pools": {"pool": _pool(taint)}, "want": {}})
        [update] = answer["writes"]
        assert update["spec"]["devices"][0]["taints"] == [{**taint, "timeAdded": TIME}]
        foreign = _stored("new", 5, taint)
        foreign["metadata"]["name"] = f"00017-{DRIVER}-new"
        answer = await stage.do({"do": "putSlice", "slice": foreign, "want": {}})
        [create] = [each for each in answer["writes"] if each["verb"] == "create"]
        assert create["spec"]["devices"][0]["taints"] == [taint]
    finally:
        await stage.stop()
