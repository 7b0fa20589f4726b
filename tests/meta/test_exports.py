"""Every package's front door is small, sorted and true."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import drachma

PACKAGES = ["drachma"] + [
    module.name for module in pkgutil.walk_packages(drachma.__path__, prefix="drachma.") if module.ispkg
]


@pytest.mark.parametrize("name", PACKAGES)
def test_front_door(name: str) -> None:
    package = importlib.import_module(name)
    assert (package.__doc__ or "").strip(), "a package says what it is"
    exported = getattr(package, "__all__", [])
    assert list(exported) == sorted(exported)
    assert all(hasattr(package, entry) for entry in exported)


def test_the_public_api_loads_when_it_is_used() -> None:
    script = (
        "import sys, drachma\n"
        "print([name for name in sys.modules if name.startswith('drachma.')])\n"
        "print([getattr(drachma, name) is not None for name in drachma.__all__])"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    before, after = answer.stdout.splitlines()
    assert before == "[]"
    assert after == str([True] * len(drachma.__all__))


@pytest.mark.parametrize("module", [m.name for m in pkgutil.walk_packages(drachma.__path__, prefix="drachma.")])
def test_every_module_says_what_it_is(module: str) -> None:
    assert (importlib.import_module(module).__doc__ or "").strip()
