"""Time zones by name, without a way to other files."""

import pytest

from drachma.values import timezones


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "US/Pacific", "Etc/GMT+5"])
def test_zones_of_the_database(name: str) -> None:
    zone = timezones.find(name)
    assert zone is not None
    assert zone.key == name


@pytest.mark.parametrize("name", ["", ".", "..", "../../etc/passwd", "/etc/passwd", "Europe", "zone.tab", "utc\0", "ä"])
def test_names_that_the_database_does_not_have(name: str) -> None:
    assert timezones.find(name) is None
