"""What queueing measures of local queues."""

import prometheus_client

from drachma.queueing.admitter import Admitter
from drachma.queueing.component.queuemeasures import QueueMeasures
from drachma.queueing.kinds import decoding, localqueue
from drachma.queueing.pastusage import UsageRates
from drachma.queueing.settings import Settings

_NAME = "kueue_local_queue_admission_fair_sharing_usage"


def _local_queue(name: str) -> localqueue.LocalQueue:
    shown = {"consumedResources": {"cpu": "3"}, "lastUpdate": "2026-01-01T00:00:00Z"}
    document = {
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"clusterQueue": "team", "fairSharing": {"weight": "2"}},
        "status": {"fairSharing": {"weightedShare": 0, "admissionFairSharingStatus": shown}},
    }
    return decoding.decode(document, localqueue.LocalQueue)


def test_past_usage_of_the_local_queues_that_are_measured() -> None:
    registry = prometheus_client.CollectorRegistry()
    levels = QueueMeasures(registry).levels
    queues = [_local_queue("red"), _local_queue("blue")]
    levels.measured_local_queues = lambda: queues[:1]

    def measured(name: str) -> float | None:
        return registry.get_sample_value(_NAME, {"name": name, "namespace": "ns", "cluster_queue": "team"})

    levels.admitter = Admitter()
    assert measured("red") is None, "nobody remembers"
    levels.admitter = Admitter(settings=Settings(usage_rates=UsageRates(60, 10, {"cpu": 4})))
    levels.admitter.set_queues((), local_queues=queues)
    assert measured("red") == 6
    assert measured("blue") is None
