"""The certificate of a node is renewed before it ends."""

import asyncio
import base64
import datetime as dt
import pathlib
import random
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from drachma import errors
from drachma.api import certificatesigningrequest
from drachma.client import access, http
from drachma.process import nodeidentity
from drachma.testing import manualclock

KEY = ec.generate_private_key(ec.SECP256R1())
DAY = dt.timedelta(days=1)


def _signed(begin: dt.datetime, *, key: Any = None) -> bytes:
    """A certificate that is good for a day."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "system:node:n1")])
    builder = x509.CertificateBuilder(name, name, (key or KEY.public_key()), 1, begin, begin + DAY)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


class Signer:
    """A server that signs what it is asked for, unless it is down."""

    def __init__(self, time: manualclock.ManualClock) -> None:
        self._clock = time
        self.is_down = False
        self.requests: list[dict[str, Any]] = []
        self.shown: list[access.KeyPair] = []

    async def create_document(self, _kind: object, document: dict[str, Any]) -> dict[str, Any]:
        if self.is_down:
            raise errors.UnreachableError("nobody there")
        self.requests.append(document)
        return {"metadata": {"name": f"csr-{len(self.requests)}"}}

    async def get(self, kind: type[Any], _name: str) -> Any:
        request = x509.load_pem_x509_csr(base64.b64decode(self.requests[-1]["spec"]["request"]))
        encoded = base64.b64encode(_signed(self._clock.utc(), key=request.public_key())).decode()
        return kind(status=certificatesigningrequest.CertificateSigningRequestStatus(certificate=encoded))

    def show(self, key_pair: access.KeyPair) -> None:
        self.shown.append(key_pair)


async def test_the_next_certificate_comes_in_time(tmp_path: pathlib.Path) -> None:
    clock = manualclock.ManualClock()
    private = KEY.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    way_in = access.Access(
        server="https://127.0.0.1:1", source="test", key_pair=access.KeyPair(_signed(clock.utc()), private)
    )
    file = tmp_path / "kubeconfig"
    signer = Signer(clock)
    renewal = nodeidentity.Renewal(way_in, "n1", file=file, time=clock, rng=random.Random(1))
    task = asyncio.create_task(renewal.run(signer, signer))  # type: ignore[arg-type]
    try:
        await manualclock.settle()
        await clock.advance(0.69 * DAY.total_seconds())
        assert not signer.shown
        signer.is_down = True
        await clock.advance(0.22 * DAY.total_seconds())
        assert not signer.shown
        signer.is_down = False
        await clock.advance(600)
        (shown,) = signer.shown
        assert http.find_access(file).key_pair == shown
        assert nodeidentity.is_usable(file, now=clock.utc())
        assert not nodeidentity.is_usable(file, now=clock.utc() + DAY)
        await clock.advance(0.91 * DAY.total_seconds())
        assert len(signer.shown) == 2
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("seed", range(5))
def test_the_time_of_renewal(seed: int) -> None:
    begin = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    part = (nodeidentity.renewal_time(_signed(begin), random.Random(seed)) - begin) / DAY
    assert 0.7 <= part <= 0.9


def test_a_file_that_is_not_there(tmp_path: pathlib.Path) -> None:
    assert not nodeidentity.is_usable(tmp_path / "kubeconfig", now=dt.datetime.now(dt.UTC))
