"""What the SDK does around prepare and unprepare, on real files: asked again, killed, rebooted, wiped."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import prometheus_client
import pytest

from drachma import driver, errors
from drachma.api import codec, resourceclaim
from drachma.driver.plugin.contract import PreparedDevice
from drachma.driver.preparing.checkpoint import Checkpoint
from drachma.driver.preparing.claimfiles import ClaimFiles
from drachma.driver.preparing.preparer import BOUNDS, Preparer
from drachma.nodewire import deviceuse
from drachma.runtime import clock, measures

NAME = "gpu.example.com"


class Recorder(driver.Driver):
    """A driver that notes what it is asked; ``failure`` is raised while it is set."""

    name = NAME
    writes_metadata = True

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.failure: Exception | None = None
        self.active = self.most_active = 0

    async def prepare(self, claim: driver.Claim) -> Mapping[driver.AllocatedDevice, driver.Edits | driver.Prepared]:
        self.calls.append(f"prepare {claim.reference.name}")
        self.active += 1
        self.most_active = max(self.active, self.most_active)
        await asyncio.sleep(0)
        self.active -= 1
        if self.failure is not None:
            raise self.failure
        return {
            device: driver.Prepared(edits=driver.edits(env={"GPU": device.name}), attributes={"index": 1})
            for device in claim.devices
        }

    async def unprepare(self, reference: driver.ClaimReference) -> None:
        self.calls.append(f"unprepare {reference.name}")
        if self.failure is not None:
            raise self.failure

    async def health(self) -> list[driver.Health]:
        return [driver.Health(pool="p", device="d", status=driver.Status.HEALTHY)]


class Patient(Recorder):
    concurrency = 4


class Published:
    """Devices that are published; ``None`` for all."""

    def __init__(self) -> None:
        self.devices: set[str] | None = None

    async def check(self, uses: Sequence[deviceuse.DeviceUse]) -> None:
        missing = [each for each in uses if self.devices is not None and each.device not in self.devices]
        if missing:
            raise errors.DeviceUnavailableError(deviceuse.unavailable(missing, "n"))


class Node:
    """A machine with the driver's files; ``restart`` is another process of it."""

    def __init__(self, folder: Path, made: Recorder) -> None:
        self.folder = folder
        self.driver = made
        self.boot_id = "boot-1"
        self.published = Published()
        self.restart()

    def restart(self) -> None:
        self.checkpoint = Checkpoint(self.folder / "plugins")
        self.preparer = Preparer(
            self.driver,
            checkpoint=self.checkpoint,
            files=ClaimFiles(NAME, cdi=self.cdi, data=self.folder / "plugins", has_metadata=True),
            availability=self.published,
            lock=None,
            boot_id=self.boot_id,
            durations=measures.Histograms(
                "d", "", ("operation", "is_error"), bounds=BOUNDS, registry=prometheus_client.CollectorRegistry()
            ),
            time=clock.SystemClock(),
        )

    @property
    def cdi(self) -> Path:
        return self.folder / "cdi"

    async def prepare(self, *claims: resourceclaim.ResourceClaim) -> list[Any]:
        return list((await self.preparer.prepare(claims)).values())

    async def unprepare(self, *names: str) -> list[Exception | None]:
        references = [driver.ClaimReference("ns", name, f"uid-{name}") for name in names]
        return list((await self.preparer.unprepare(references)).values())

    def files(self) -> list[str]:
        return sorted(path.name for path in self.cdi.glob("*")) if self.cdi.exists() else []


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path, Recorder())


def _claim(name: str = "c", device: str = "gpu-0", **more: Any) -> resourceclaim.ResourceClaim:
    result = {"request": "r/sub", "driver": NAME, "pool": "p", "device": device, **more}
    claim = codec.decode(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
            "spec": {},
            "status": {"allocation": {"devices": {"results": [result]}}},
        }
    )
    assert isinstance(claim, resourceclaim.ResourceClaim)
    return claim


CDI_FILE = f"{NAME}-claim_uid-c.json"
METADATA_FILE = f"{NAME}_metadata_uid-c_r.json"


async def test_one_cdi_file_for_a_claim(node: Node) -> None:
    assert await node.prepare(_claim()) == [
        (
            PreparedDevice(
                requests=("r/sub",),
                pool="p",
                device="gpu-0",
                cdi_device_ids=(f"{NAME}/claim=claim-uid-c-0", f"{NAME}/metadata=uid-c_r"),
            ),
        )
    ]
    assert node.files() == [CDI_FILE, METADATA_FILE]
    assert json.loads((node.cdi / CDI_FILE).read_text()) == {
        "cdiVersion": "0.3.0",
        "kind": f"{NAME}/claim",
        "devices": [{"name": "claim-uid-c-0", "containerEdits": {"env": ["GPU=gpu-0"]}}],
    }


async def test_metadata_says_what_a_container_was_given(node: Node) -> None:
    await node.prepare(_claim())
    (mount,) = json.loads((node.cdi / METADATA_FILE).read_text())["devices"][0]["containerEdits"]["mounts"]
    container_path = f"/var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/r/{NAME}-metadata.json"
    assert mount["containerPath"] == container_path
    decoder, text = json.JSONDecoder(), Path(mount["hostPath"]).read_text()
    newest, end = decoder.raw_decode(text)
    older, _ = decoder.raw_decode(text[end:].lstrip())
    assert newest == {
        "apiVersion": "metadata.resource.k8s.io/v1beta1",
        "kind": "DeviceMetadata",
        "metadata": {"name": "c", "namespace": "ns", "uid": "uid-c", "generation": 1},
        "requests": [
            {
                "name": "r/sub",
                "devices": [{"driver": NAME, "pool": "p", "name": "gpu-0", "attributes": {"index": {"int": 1}}}],
            }
        ],
    }
    assert older == {**newest, "apiVersion": "metadata.resource.k8s.io/v1alpha1"}


def _told(node: Node) -> list[dict[str, Any]]:
    """What a container reads about its devices, by version."""
    path = node.folder / "plugins" / "dra-device-metadata" / "ns_c" / "r" / "metadata.json"
    decoder, text, documents = json.JSONDecoder(), path.read_text(), []
    while text:
        document, end = decoder.raw_decode(text)
        documents.append(document)
        text = text[end:].lstrip()
    return documents


async def test_metadata_can_be_told_later(node: Node) -> None:
    first = await node.prepare(_claim())
    path = node.folder / "plugins" / "dra-device-metadata" / "ns_c" / "r" / "metadata.json"
    inode = path.stat().st_ino
    addresses = {"interfaceName": "eth1", "ips": ["10.1.2.3/24"]}
    told = driver.DeviceMetadata(pool="p", device="gpu-0", network_data=addresses)
    node.preparer.update_metadata(driver.ClaimReference("ns", "c", "uid-c"), "r/sub", [told])
    for document in _told(node):
        assert document["metadata"]["generation"] == 2
        assert document["requests"] == [
            {"name": "r/sub", "devices": [{"driver": NAME, "pool": "p", "name": "gpu-0", "networkData": addresses}]}
        ]
    assert path.stat().st_ino == inode, "a container has it mounted"
    # What was told later is not lost: nothing is prepared again because of it.
    node.restart()
    assert await node.prepare(_claim()) == first
    assert node.driver.calls == ["prepare c"]
    assert _told(node)[0]["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("uid", "request_", "device", "want"),
    [
        pytest.param("uid-c", "other", "gpu-0", "claim ns/c, request 'other': nothing is told about it", id="request"),
        pytest.param(
            "uid-x", "r", "gpu-0", "claim ns/c, request 'r': the claim of uid uid-x is not prepared", id="uid"
        ),
        pytest.param("uid-c", "r", "gpu-9", "claim ns/c, request 'r': has no device p/gpu-9", id="device"),
    ],
)
async def test_metadata_is_told_of_what_is_prepared_only(
    node: Node, uid: str, request_: str, device: str, want: str
) -> None:
    await node.prepare(_claim())
    told = driver.DeviceMetadata(pool="p", device=device, attributes={"index": 2})
    with pytest.raises(errors.DriverError, match=want):
        node.preparer.update_metadata(driver.ClaimReference("ns", "c", uid), request_, [told])
    assert _told(node)[0]["metadata"]["generation"] == 1


def test_a_driver_without_metadata_tells_nothing_later(tmp_path: Path) -> None:
    files = ClaimFiles(NAME, cdi=tmp_path / "cdi", data=tmp_path, has_metadata=False)
    with pytest.raises(errors.DriverError, match=f"driver {NAME}: writes_metadata is not set"):
        files.update_metadata(driver.ClaimReference("ns", "c", "uid-c"), "r", [])


async def test_asked_again_the_driver_is_not(node: Node) -> None:
    first = await node.prepare(_claim())
    node.restart()
    assert await node.prepare(_claim()) == first
    assert node.driver.calls == ["prepare c"]


@pytest.mark.parametrize("loss", ["reboot", "cdi-file", "cdi-content", "metadata", "metadata-content"])
async def test_what_is_lost_is_prepared_again(node: Node, loss: str) -> None:
    first = await node.prepare(_claim())
    match loss:
        case "reboot":
            node.boot_id = "boot-2"
        case "cdi-file":
            (node.cdi / CDI_FILE).unlink()
        case "cdi-content":
            (node.cdi / CDI_FILE).write_text("{}")
        case "metadata":
            (node.folder / "plugins" / "dra-device-metadata" / "ns_c" / "r" / "metadata.json").unlink()
        case "metadata-content":
            (node.folder / "plugins" / "dra-device-metadata" / "ns_c" / "r" / "metadata.json").write_text("{")
    node.restart()
    assert await node.prepare(_claim()) == first
    assert node.driver.calls == ["prepare c", "prepare c"]
    assert node.files() == [CDI_FILE, METADATA_FILE]


async def test_another_allocation_is_prepared_after_the_old_one_is_undone(node: Node) -> None:
    await node.prepare(_claim(device="gpu-0"))
    ((device,),) = await node.prepare(_claim(device="gpu-1"))
    assert device.device == "gpu-1"
    assert node.driver.calls == ["prepare c", "unprepare c", "prepare c"]


async def test_unprepare_leaves_nothing_and_can_be_repeated(node: Node) -> None:
    await node.prepare(_claim())
    assert await node.unprepare("c") == [None]
    assert node.files() == []
    assert not list((node.folder / "plugins" / "dra-device-metadata").iterdir())
    node.restart()
    assert await node.unprepare("c") == [None]
    assert node.driver.calls == ["prepare c", "unprepare c"]


async def test_a_claim_that_was_never_prepared_does_not_concern_the_driver(node: Node) -> None:
    assert await node.unprepare("stranger") == [None]
    assert node.driver.calls == []


@pytest.mark.parametrize(
    ("reference", "want"),
    [
        pytest.param(("ns", "c", "*"), None, id="pattern"),
        pytest.param(("ns", "../../precious", "u"), "names have no '/'", id="name"),
        pytest.param(("../../precious/x", "c", "u"), "names have no '/'", id="namespace"),
        pytest.param(("ns", "c", "../u"), "names have no '/'", id="uid"),
    ],
)
async def test_no_name_leads_to_files_of_others(node: Node, reference: tuple[str, str, str], want: str | None) -> None:
    await node.prepare(_claim("other"))
    (node.folder / "precious").mkdir()
    before = sorted(node.folder.rglob("*"))
    (problem,) = (await node.preparer.unprepare([driver.ClaimReference(*reference)])).values()
    assert (problem is None) if want is None else (want in str(problem))
    assert sorted(node.folder.rglob("*")) == before


async def test_what_began_is_undone_though_it_failed(node: Node) -> None:
    node.driver.failure = RuntimeError("hardware gone")
    (problem,) = await node.prepare(_claim())
    assert str(problem) == "hardware gone"
    node.driver.failure = None
    node.restart()
    assert await node.unprepare("c") == [None]
    assert node.driver.calls == ["prepare c", "unprepare c"]
    assert node.checkpoint.get("uid-c") is None


async def test_what_cannot_be_undone_is_tried_again(node: Node) -> None:
    await node.prepare(_claim())
    node.driver.failure = RuntimeError("busy")
    (problem,) = await node.unprepare("c")
    assert str(problem) == "busy"
    assert node.files() == [CDI_FILE, METADATA_FILE]
    node.driver.failure = None
    assert await node.unprepare("c") == [None]


async def test_one_claim_that_fails_does_not_concern_others(node: Node) -> None:
    strange = codec.decode(
        {
            **codec.encode(_claim("b")),
            "status": {
                "allocation": {
                    "devices": {
                        "results": [{"request": "r", "driver": NAME, "pool": "p", "device": "x"}],
                        "config": [{"source": "FromClaim", "opaque": {"driver": NAME, "parameters": {}}}],
                    }
                }
            },
        }
    )
    assert isinstance(strange, resourceclaim.ResourceClaim)
    good, bad = await node.prepare(_claim("a"), strange)
    assert good[0].device == "gpu-0"
    assert str(bad) == f"claim ns/b, config #0 (FromClaim): driver {NAME} takes no parameters"


async def test_a_driver_that_prepares_something_else_is_told(node: Node) -> None:
    class Confused(Recorder):
        async def prepare(self, claim: driver.Claim) -> Mapping[driver.AllocatedDevice, driver.Edits | driver.Prepared]:
            return {driver.AllocatedDevice(request="x", pool="y", name="z"): driver.edits(env={"A": "b"})}

    confused = Node(node.folder, Confused())
    (problem,) = await confused.prepare(_claim())
    assert "prepared what is no device of it" in str(problem)


async def test_edits_that_cannot_be_written_are_an_error_of_the_claim(node: Node) -> None:
    class Careless(Recorder):
        async def prepare(self, claim: driver.Claim) -> Mapping[driver.AllocatedDevice, driver.Edits | driver.Prepared]:
            return {device: driver.Edits(env=("no variable",)) for device in claim.devices}

    careless = Node(node.folder, Careless())
    (problem,) = await careless.prepare(_claim())
    assert "invalid environment variable" in str(problem)
    assert node.files() == []


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="cut"),
        pytest.param(b'{"version": 1, "checksum": "0", "claims": "[]"}', id="another-checksum"),
    ],
)
async def test_a_damaged_checkpoint_is_put_aside_and_everything_undone_on_demand(node: Node, content: bytes) -> None:
    await node.prepare(_claim())
    (node.folder / "plugins" / "checkpoint.json").write_bytes(content)
    node.restart()
    assert await node.unprepare("c") == [None]
    assert node.driver.calls == ["prepare c", "unprepare c"]
    assert (node.folder / "plugins" / "checkpoint.json.damaged-1").read_bytes() == content
    assert node.files() == []


async def test_a_checkpoint_of_a_later_version_is_read(node: Node) -> None:
    await node.prepare(_claim())
    path = node.folder / "plugins" / "checkpoint.json"
    content = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode({**content, "version": 9, "news": True}))
    node.restart()
    await node.prepare(_claim())
    assert node.driver.calls == ["prepare c"]


async def test_another_process_may_write_the_checkpoint(node: Node) -> None:
    other = Node(node.folder, node.driver)
    await node.prepare(_claim("a"))
    await other.prepare(_claim("b", "gpu-1"))
    await node.prepare(_claim("b", "gpu-1"))
    assert await other.unprepare("a") == [None]
    assert node.driver.calls == ["prepare a", "prepare b", "unprepare a"]


async def test_one_claim_at_a_time_unless_the_driver_can_do_more(tmp_path: Path) -> None:
    serial, patient = Node(tmp_path / "serial", Recorder()), Node(tmp_path / "patient", Patient())
    claims = [_claim(f"c{number}", f"gpu-{number}") for number in range(6)]
    await serial.prepare(*claims)
    await patient.prepare(*claims)
    assert (serial.driver.most_active, patient.driver.most_active) == (1, 4)


async def test_calls_for_one_claim_come_after_each_other(tmp_path: Path) -> None:
    patient = Node(tmp_path, Patient())
    await asyncio.gather(*(patient.prepare(_claim()) for _ in range(5)))
    assert patient.driver.calls == ["prepare c"]


async def test_a_device_that_is_not_published_is_not_prepared(node: Node) -> None:
    node.published.devices = {"gpu-1"}
    (problem,) = await node.prepare(_claim())
    assert str(problem) == f"device unavailable: {NAME}/p/gpu-0 is not published for node n"
    assert node.driver.calls == []
    assert node.checkpoint.get("uid-c") is None


async def test_a_prepared_claim_stays_prepared_though_its_device_is_withdrawn(node: Node) -> None:
    first = await node.prepare(_claim())
    node.published.devices = set()
    assert await node.prepare(_claim()) == first


@pytest.mark.parametrize("began_only", [False, True])
async def test_a_device_that_another_claim_has_is_not_prepared_until_that_is_undone(
    node: Node, *, began_only: bool
) -> None:
    node.driver.failure = RuntimeError("no") if began_only else None
    await node.prepare(_claim("a"))
    node.driver.failure = None
    node.restart()
    (problem,) = await node.prepare(_claim("b"))
    assert str(problem) == (
        f"claim ns/b: device in use: {NAME}/p/gpu-0 is prepared for ResourceClaim ns/a (uid uid-a), "
        "and free when that claim is unprepared"
    )
    await node.unprepare("a")
    ((device,),) = await node.prepare(_claim("b"))
    assert device.device == "gpu-0"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"shareID": "1"}, {"shareID": "2"}, id="shared"),
        pytest.param({}, {"adminAccess": True}, id="an-administrator-looks"),
        pytest.param({"adminAccess": True}, {}, id="after-an-administrator"),
    ],
)
async def test_claims_that_may_have_one_device_are_prepared(
    node: Node, first: dict[str, Any], second: dict[str, Any]
) -> None:
    await node.prepare(_claim("a", **first))
    ((device,),) = await node.prepare(_claim("b", **second))
    assert device.device == "gpu-0"


async def test_a_claim_from_before_the_reboot_holds_no_device(node: Node) -> None:
    await node.prepare(_claim("a"))
    node.boot_id = "boot-2"
    node.restart()
    ((device,),) = await node.prepare(_claim("b"))
    assert device.device == "gpu-0"


async def test_of_two_claims_at_once_one_gets_the_device(tmp_path: Path) -> None:
    patient = Node(tmp_path, Patient())
    results = await patient.prepare(_claim("a"), _claim("b"))
    assert sorted(isinstance(each, Exception) for each in results) == [False, True]
    assert len(patient.driver.calls) == 1


async def test_health_comes_again_when_there_is_news(node: Node) -> None:
    reports = node.preparer.watch_health()
    first = await anext(reports)
    following = asyncio.ensure_future(anext(reports))
    await asyncio.sleep(0)
    node.preparer.changed()
    assert await following == first
