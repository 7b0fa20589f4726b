"""Keys of service account tokens: made once, read from files, and shown to relying parties without secrets."""

import pathlib

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from drachma import errors
from drachma.server.access import signingkeys

RSA = rsa.generate_private_key(65537, 2048)
CURVES = [
    pytest.param(ec.SECP256R1(), "ES256", id="p256"),
    pytest.param(ec.SECP384R1(), "ES384", id="p384"),
    pytest.param(ec.SECP521R1(), "ES512", id="p521"),
]


def private_pem(key: signingkeys.PrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def public_pem(key: signingkeys.PrivateKey) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form)


def test_a_key_is_made_once_for_its_owners_eyes(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "pki" / "sa.key"
    made = signingkeys.ensure(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert private_pem(signingkeys.ensure(path)) == private_pem(made)


def test_a_file_can_have_several_keys_of_both_kinds(tmp_path: pathlib.Path) -> None:
    other = signingkeys.generate()
    path = tmp_path / "keys.pem"
    path.write_bytes(b"a remark\n" + public_pem(RSA) + private_pem(other))
    found = [signingkeys.public_key(key) for key in signingkeys.load_public(path)]
    assert [key.algorithm for key in found] == ["RS256", "ES256"]
    assert private_pem(signingkeys.load_private(path)) == private_pem(other)


@pytest.mark.parametrize(("curve", "algorithm"), CURVES)
def test_a_curve_has_one_algorithm(curve: ec.EllipticCurve, algorithm: str) -> None:
    assert signingkeys.make_keys(ec.generate_private_key(curve)).signer.algorithm == algorithm


def test_other_curves_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown curve secp256k1"):
        signingkeys.make_keys(ec.generate_private_key(ec.SECP256K1()))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----\n", id="nonsense"),
        pytest.param(private_pem(ed25519.Ed25519PrivateKey.generate()), id="another-kind-of-key"),
    ],
)
def test_what_is_no_key_is_refused(tmp_path: pathlib.Path, data: bytes) -> None:
    path = tmp_path / "sa.key"
    path.write_bytes(data)
    with pytest.raises(errors.RefusedFileError, match=str(path)):
        signingkeys.load_private(path)
    with pytest.raises(errors.RefusedFileError, match=str(path)):
        signingkeys.load_public(path)


@pytest.mark.parametrize("key", [pytest.param(RSA, id="rsa"), pytest.param(signingkeys.generate(), id="curve")])
def test_what_is_shown_has_no_secrets(key: signingkeys.PrivateKey) -> None:
    public = signingkeys.make_keys(key).signer
    document = public.document()
    assert document["kid"] == public.id
    assert document["use"] == "sig"
    assert not {"d", "p", "q", "dp", "dq", "qi"} & set(document)
