"""Privileges of the user who runs the tests."""

import os
import pathlib
import tempfile

import pytest

from drachma.node.setup.volumes.subpathmounts import SubPathMounts


def _can_mount() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        mounts = SubPathMounts(pathlib.Path(folder) / "points")
        descriptor = os.open(folder, os.O_PATH)
        try:
            mounts.bind(descriptor, volume="v", container="c", number=0)
        except OSError:
            return False
        finally:
            os.close(descriptor)
        mounts.release_all()
    return True


needs_mounts = pytest.mark.skipif(not _can_mount(), reason="this user may not mount")
