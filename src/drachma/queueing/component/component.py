"""Queueing as one component: admission, and the controllers of workloads, queues, jobs and pods."""

from __future__ import annotations

from typing import Final

from drachma.api import gates as features
from drachma.queueing.admission.feasibility import Placement
from drachma.queueing.component import jobcontroller, parentcontroller
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.admission import Admission
from drachma.queueing.component.caches import Caches
from drachma.queueing.component.configurationmap import ConfigurationMap
from drachma.queueing.component.dispatchcontroller import DispatchController
from drachma.queueing.component.elasticpodcontroller import ElasticPodController
from drachma.queueing.component.jobcontroller import JobController
from drachma.queueing.component.jobwrites import JobWrites
from drachma.queueing.component.nodefailurecontroller import NodeFailureController
from drachma.queueing.component.ownerreader import OwnerReader
from drachma.queueing.component.parentcontroller import ParentController
from drachma.queueing.component.pendingview import PendingView
from drachma.queueing.component.podcontroller import PodController
from drachma.queueing.component.provisioningcontroller import ProvisioningController
from drachma.queueing.component.queuecontroller import QueueController
from drachma.queueing.component.queuelevels import QueueLevels
from drachma.queueing.component.queuemeasures import QueueMeasures
from drachma.queueing.component.remoteclusters import Connect
from drachma.queueing.component.reviews import Reviews
from drachma.queueing.component.statusrequests import StatusRequests
from drachma.queueing.component.topologypodcontroller import TopologyPodController
from drachma.queueing.component.workloadcontroller import WorkloadController
from drachma.queueing.component.workloadwriter import WorkloadWriter
from drachma.queueing.component.workloadwrites import WorkloadLocks
from drachma.runtime import Surroundings, controller, workqueue
from drachma.runtime.informer import Handler

COMPONENT: Final = "kueue-admission"
"""Component name of events about workloads, which is Kueue's."""


class QueueingComponent:
    """All of queueing, built on informers that need not run yet.

    The configuration follows the ConfigMap, unless ``is_fixed``. If the policy requires that pods find nodes,
    ``placement`` checks that. ``view`` shows pending workloads. ``connect`` reaches other clusters;
    without it workloads are not dispatched. ``role`` is a label of all metrics: ``leader`` or
    ``standalone``.
    """

    def __init__(
        self,
        surroundings: Surroundings,
        configured: ActiveConfiguration | None = None,
        *,
        is_fixed: bool = False,
        placement: Placement | None = None,
        view: PendingView | None = None,
        connect: Connect | None = None,
        role: str = "standalone",
    ) -> None:
        configured = configured or ActiveConfiguration()
        recorder = surroundings.recorder(COMPONENT)
        if not is_fixed:
            ConfigurationMap(surroundings, configured, recorder=recorder)
        caches = Caches(
            surroundings.informers,
            configured,
            has_first_alpha=surroundings.gates.on(features.Gate.FIRST_ALPHA),
            has_group_claims=surroundings.gates.on(features.Gate.WORKLOAD_RESOURCE_CLAIMS),
        )
        measures = QueueMeasures(surroundings.registry, role=role, measures_local=caches.measures_queue_of)
        caches.workloads.add_handler(Handler(updated=measures.count_transitions))
        workload_queue: workqueue.Queue[str] = workqueue.Queue(
            "kueue_workload", clock=surroundings.clock, metrics=surroundings.queues
        )
        statuses = StatusRequests(surroundings)
        locks = WorkloadLocks()
        workload_writer = WorkloadWriter(surroundings, recorder, locks=locks)
        job_writes = JobWrites(surroundings, recorder, caches=caches, locks=locks)
        admission = Admission(
            surroundings,
            caches,
            configured,
            recorder=recorder,
            measures=measures,
            workloads=workload_queue,
            statuses=statuses,
            locks=locks,
            placement=placement,
            view=view,
        )
        QueueLevels(surroundings.registry, caches, configured, admitter=lambda: admission.admitter, role=role)
        self.reviews: Final = Reviews(caches, configured, OwnerReader(surroundings.client))
        """Answers to admission reviews of API servers, once the component runs."""
        self._surroundings: Final = surroundings
        self._parts: Final[tuple[controller.Controller, ...]] = (
            WorkloadController(
                surroundings, caches, configured, admission=admission, recorder=recorder, queue=workload_queue
            ),
            QueueController(surroundings, caches, configured, admission=admission, statuses=statuses),
            *(
                JobController(surroundings, caches, configured, writes=job_writes, kind=kind)
                for kind in jobcontroller.ALL
            ),
            *(
                ParentController(surroundings, caches, configured, writes=job_writes, kind=kind)
                for kind in parentcontroller.ALL
            ),
            PodController(surroundings, caches, configured, writes=job_writes),
            ElasticPodController(surroundings, caches, configured),
            TopologyPodController(surroundings, caches, configured),
            NodeFailureController(surroundings, caches, configured, writer=workload_writer),
            *(
                ()
                if connect is None
                else (DispatchController(surroundings, caches, configured, writer=workload_writer, connect=connect),)
            ),
            ProvisioningController(surroundings, caches, configured, writer=workload_writer),
            admission,
        )

    async def run(self) -> None:
        """Run until cancelled."""
        await controller.run_all(self._surroundings, self._parts)
