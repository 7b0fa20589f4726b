"""A table of profiles: which partitions come of it, and what keeps them apart."""

import pytest

from drachma import errors
from drachma.driver.partitions import Profile, partitions

TABLE = (
    Profile(name="1g.10gb", takes={"memory": "10Gi"}, slots=1, begins=(0, 1, 2, 3), capacity={"memory": "10Gi"}),
    Profile(name="2g.20gb", takes={"memory": "20Gi"}, slots=2, begins=(0, 2), capacity={"memory": "20Gi"}),
    Profile(name="4g.40gb", takes={"memory": "40Gi"}, slots=4, begins=(0,), capacity={"memory": "40Gi"}),
)


def test_every_place_of_every_profile_is_a_device() -> None:
    made = partitions("gpu-0", amounts={"memory": "40Gi"}, slots=4, profiles=TABLE, attributes={"model": "m"})
    assert [each.build().name for each in made.devices] == [
        "gpu-0-1g-10gb-0",
        "gpu-0-1g-10gb-1",
        "gpu-0-1g-10gb-2",
        "gpu-0-1g-10gb-3",
        "gpu-0-2g-20gb-0",
        "gpu-0-2g-20gb-2",
        "gpu-0-4g-40gb-0",
    ]
    half = made.devices[5].build()
    assert half.attributes["profile"].string_value == "2g.20gb"
    assert half.attributes["model"].string_value == "m"
    (consumption,) = half.consumes_counters
    assert {name: str(counter.value) for name, counter in consumption.counters.items()} == {
        "memory": "20Gi",
        "slot-2": "1",
        "slot-3": "1",
    }
    assert set(made.counter_set.counters) == {"memory", "slot-0", "slot-1", "slot-2", "slot-3"}


@pytest.mark.parametrize(
    ("profile", "want"),
    [
        pytest.param(
            Profile(name="p", takes={"cores": 1}),
            "partitions of 'gpu-0', profile 'p': takes 'cores', and the device has memory",
            id="an-amount-that-is-not-there",
        ),
        pytest.param(
            Profile(name="p", takes={"memory": "80Gi"}),
            "partitions of 'gpu-0', profile 'p': takes 80Gi of 'memory', and the device has 40Gi",
            id="more-than-there-is",
        ),
        pytest.param(
            Profile(name="p", slots=2, begins=(3,)),
            "partitions of 'gpu-0', profile 'p': begins at slot 3 and fills 2, and the device has 4",
            id="beyond-the-last-slot",
        ),
    ],
)
def test_a_table_that_does_not_fit_the_device_is_refused(profile: Profile, want: str) -> None:
    with pytest.raises(errors.InvalidValueError) as caught:
        partitions("gpu-0", amounts={"memory": "40Gi"}, slots=4, profiles=[profile])
    assert str(caught.value) == want
