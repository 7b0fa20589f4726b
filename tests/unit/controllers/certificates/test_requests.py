"""Requests for certificates on their way: approved, signed, deleted."""

import base64
import datetime as dt
import pathlib
from typing import Any

import pytest
from cryptography import x509

from drachma.api import certificatesigningrequest as csr
from drachma.api import meta
from drachma.client import target
from drachma.controllers import certificates as controllers
from drachma.controllers.certificates import cleaning
from drachma.runtime import Credentials, KeyPair, Surroundings, controller
from drachma.server.access import certificates
from tests import certificaterequests as builders
from tests.unit.controllers import worlds

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
CLIENT = ("digital signature", "client auth")
DOCUMENT: dict[str, Any] = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}


def asked(
    name: str = "r", *, request: str = "", signer: str = csr.KUBELET_CLIENT, usages: tuple[str, ...] = CLIENT
) -> csr.CertificateSigningRequest:
    text = request or builders.encoded("system:node:n", "system:nodes")
    spec = csr.CertificateSigningRequestSpec(request=text, signer_name=signer, usages=usages)
    return csr.CertificateSigningRequest(metadata=meta.ObjectMeta(name=name), spec=spec)


def signing(folder: pathlib.Path) -> worlds.Make:
    files = certificates.ensure(folder, hosts=["h"], now=dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
    pair = KeyPair(files.authority.read_bytes(), files.authority_key.read_bytes())

    def make(surroundings: Surroundings) -> controller.Controller:
        return controllers.RequestSigning(
            Surroundings(
                surroundings.client,
                shared_informers=surroundings.informers,
                clock=surroundings.clock,
                credentials=Credentials(signing=pair),
            )
        )

    return make


async def approve(world: worlds.World, name: str = "r", kind: str = "Approved") -> None:
    document = await world.client.get_document(csr.CertificateSigningRequest, name)
    document["status"] = {"conditions": [{"type": kind, "status": "True", "reason": "r"}]}
    await world.client.update_document(csr.CertificateSigningRequest, document, subresource="approval")
    await world.settle()


def kinds(of: csr.CertificateSigningRequest) -> list[tuple[str, str, str]]:
    return [(each.type, each.reason, each.message) for each in of.status.conditions]


async def test_a_kubelets_request_is_approved() -> None:
    async with worlds.world(controllers.RequestApproval) as world:
        request = await world.create(asked())
        await world.settle()
        message = "Auto approving kubelet client certificate after SubjectAccessReview."
        assert kinds(await world.get(request)) == [("Approved", "AutoApproved", message)]


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(asked(request=builders.encoded("ann", "system:nodes")), id="nobody's-node"),
        pytest.param(asked(usages=("digital signature", "server auth")), id="for-serving"),
        pytest.param(asked(signer=csr.KUBELET_SERVING), id="another-signer"),
        pytest.param(asked(signer="example.com/mine"), id="a-signer-elsewhere"),
    ],
)
async def test_others_wait_for_a_person(made: csr.CertificateSigningRequest) -> None:
    async with worlds.world(controllers.RequestApproval) as world:
        await world.create(made)
        await world.settle()
        assert kinds(await world.get(made)) == []


async def test_what_was_denied_stays_so() -> None:
    async with worlds.world() as world:
        request = await world.create(asked())
        await approve(world, kind="Denied")
        await world.start(controllers.RequestApproval)
        assert [kind for kind, *_ in kinds(await world.get(request))] == ["Denied"]


async def test_who_may_not_is_asked_about_again() -> None:
    reviews: list[str] = []

    def count(verb: str, kind: Any, *_: Any, **__: Any) -> None:
        if verb == "create_document" and isinstance(kind, target.Target):
            reviews.append(kind.kind)

    async with worlds.world(controllers.RequestApproval, wrap=worlds.meddling(count)) as world:
        await world.create(asked())
        await world.settle()
        assert reviews == ["SubjectAccessReview"]


async def test_what_was_approved_is_signed(tmp_path: pathlib.Path) -> None:
    async with worlds.world(signing(tmp_path)) as world:
        request = await world.create(asked())
        await world.settle()
        assert not (await world.get(request)).status.certificate
        await approve(world)
        certificate = x509.load_pem_x509_certificate(base64.b64decode((await world.get(request)).status.certificate))
        assert certificate.subject.rfc4514_string() == "CN=system:node:n,O=system:nodes"
        authority = x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes())
        certificate.verify_directly_issued_by(authority)


async def test_what_a_signer_does_not_sign_has_failed(tmp_path: pathlib.Path) -> None:
    async with worlds.world(signing(tmp_path)) as world:
        request = await world.create(asked(usages=("server auth",)))
        await approve(world)
        after = await world.get(request)
        assert not after.status.certificate
        failure = (
            "Failed",
            "SignerValidationFailure",
            "usages did not match [client auth digital signature key encipherment]",
        )
        assert kinds(after)[1:] == [failure]


async def test_other_signers_sign_elsewhere(tmp_path: pathlib.Path) -> None:
    async with worlds.world(signing(tmp_path)) as world:
        request = await world.create(asked(signer="example.com/mine"))
        await approve(world)
        assert not (await world.get(request)).status.certificate


def aged(hours: float, *, kind: str = "", certificate: str = "") -> csr.CertificateSigningRequest:
    then = NOW - dt.timedelta(hours=hours)
    conditions = (csr.CertificateSigningRequestCondition(type=kind, status="True", last_update_time=then),)
    return csr.CertificateSigningRequest(
        metadata=meta.ObjectMeta(name="r", creation_timestamp=then),
        status=csr.CertificateSigningRequestStatus(conditions=conditions if kind else (), certificate=certificate),
    )


@pytest.mark.parametrize(
    ("of", "want"),
    [
        pytest.param(aged(23), False, id="waiting"),
        pytest.param(aged(25), True, id="waiting-for-too-long"),
        pytest.param(aged(0.9, kind="Denied"), False, id="denied"),
        pytest.param(aged(1.1, kind="Denied"), True, id="denied-long-ago"),
        pytest.param(aged(1.1, kind="Failed"), True, id="failed-long-ago"),
        pytest.param(aged(1.1, kind="Approved"), False, id="approved"),
        pytest.param(aged(25, kind="Approved"), True, id="approved-and-never-issued"),
        pytest.param(aged(0.9, kind="Approved", certificate="eA=="), False, id="issued"),
        pytest.param(aged(1.1, kind="Approved", certificate="eA=="), True, id="issued-long-ago"),
        pytest.param(aged(99, kind="Other"), False, id="of-which-something-else-is-said"),
    ],
)
def test_when_one_is_over(of: csr.CertificateSigningRequest, want: bool) -> None:
    assert cleaning.is_over(of, NOW) is want


async def test_old_ones_are_deleted() -> None:
    async with worlds.world(controllers.RequestCleaning) as world:
        old = await world.create(asked("old"))
        await world.advance(24 * 3600.0)
        new = await world.create(asked("new"))
        await world.advance(3700.0)
        assert (await world.exists(old), await world.exists(new)) == (False, True)
