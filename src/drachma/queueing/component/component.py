"""All of queueing as one component: admission, and the controllers of workloads, queues, Jobs, JobSets and pods."""

from __future__ import annotations

from typing import Final

from drachma.queueing.admission.feasibility import Placement
from drachma.queueing.component import jobcontroller
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.admission import Admission
from drachma.queueing.component.caches import Caches
from drachma.queueing.component.configurationmap import ConfigurationMap
from drachma.queueing.component.elasticpodcontroller import ElasticPodController
from drachma.queueing.component.jobcontext import JobContext
from drachma.queueing.component.jobcontroller import JobController
from drachma.queueing.component.pendingview import PendingView
from drachma.queueing.component.podcontroller import PodController
from drachma.queueing.component.queuecontroller import QueueController
from drachma.queueing.component.queuelevels import QueueLevels
from drachma.queueing.component.queuemeasures import QueueMeasures
from drachma.queueing.component.reviews import Reviews
from drachma.queueing.component.workloadcontroller import WorkloadController
from drachma.runtime import Surroundings, controller
from drachma.runtime.informer import Handler

COMPONENT: Final = "kueue-admission"
"""Under which name events are recorded about workloads, as Kueue does."""


class QueueingComponent:
    """Built on informers that need not run yet.

    The configuration is that of the ConfigMap, where it is not ``is_fixed``: then somebody else sees to it. Where the
    policy requires that pods find nodes, ``placement`` says whether they do. Who waits is shown in a ``view``, where
    somebody has one. Measures say in which ``role`` the process works: ``leader``, or ``standalone``.
    """

    def __init__(
        self,
        surroundings: Surroundings,
        configured: ActiveConfiguration | None = None,
        *,
        is_fixed: bool = False,
        placement: Placement | None = None,
        view: PendingView | None = None,
        role: str = "standalone",
    ) -> None:
        configured = configured or ActiveConfiguration()
        recorder = surroundings.recorder(COMPONENT)
        if not is_fixed:
            ConfigurationMap(surroundings, configured, recorder=recorder)
        caches = Caches(surroundings.informers, configured)
        measures = QueueMeasures(surroundings.registry, role=role, measures_local=caches.measures_queue_of)
        caches.workloads.add_handler(Handler(updated=measures.changed))
        admission = Admission(
            surroundings, caches, configured, recorder=recorder, measures=measures, placement=placement, view=view
        )
        QueueLevels(surroundings.registry, caches, configured, admitter=lambda: admission.admitter, role=role)
        self.reviews: Final = Reviews(caches, configured, JobContext(surroundings.client, caches))
        """Answers to API servers that ask about writes, once the component runs."""
        self._surroundings: Final = surroundings
        self._parts: Final[tuple[controller.Controller, ...]] = (
            WorkloadController(surroundings, caches, configured, admission=admission, recorder=recorder),
            QueueController(surroundings, caches, configured, admission=admission),
            JobController(surroundings, caches, configured, recorder=recorder, kind=jobcontroller.JOBS),
            JobController(surroundings, caches, configured, recorder=recorder, kind=jobcontroller.JOB_SETS),
            PodController(surroundings, caches, configured, recorder=recorder),
            ElasticPodController(surroundings, caches, configured),
            admission,
        )

    async def run(self) -> None:
        """Queues until cancelled."""
        await controller.run_all(self._surroundings, self._parts)
