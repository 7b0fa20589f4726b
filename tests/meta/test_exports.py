"""Every package's front door is small, sorted and true."""

import importlib
import pkgutil

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


@pytest.mark.parametrize("module", [m.name for m in pkgutil.walk_packages(drachma.__path__, prefix="drachma.")])
def test_every_module_says_what_it_is(module: str) -> None:
    assert (importlib.import_module(module).__doc__ or "").strip()
