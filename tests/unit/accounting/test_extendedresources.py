"""Device classes that back extended resources."""

import datetime as dt
from typing import Any

from msgspec import structs

from drachma.accounting import extendedresources
from drachma.testing import device_class

GPU = "example.com/gpu"


def test_the_newest_class_of_a_name_counts() -> None:
    def aged(name: str, year: int) -> Any:
        made = device_class(name).extended_resource(GPU).build()
        born = dt.datetime(year, 1, 1, tzinfo=dt.UTC)
        return structs.replace(made, metadata=structs.replace(made.metadata, creation_timestamp=born))

    classes = extendedresources.ExtendedResources()
    for each in (aged("b", 2020), aged("a", 2020), aged("old", 2010)):
        classes.put(each)
    assert classes.get(GPU) == aged("a", 2020)
    classes.remove("a")
    assert classes.get(GPU) == aged("b", 2020)
    classes.put(device_class("b").build())
    assert classes.get(GPU) == aged("old", 2010)
    assert classes.get("deviceclass.resource.kubernetes.io/b") == device_class("b").build()
    assert classes.get("deviceclass.resource.kubernetes.io/c") is None
    assert classes.get("example.com/nic") is None
