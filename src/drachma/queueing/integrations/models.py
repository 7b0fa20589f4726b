"""Table of the kinds of jobs that users install with other projects."""

from typing import Final

from drachma.queueing.configuration import frameworks
from drachma.queueing.integrations import kubeflow, ray
from drachma.queueing.integrations.appwrapper import AppWrapper
from drachma.queueing.integrations.trainjob import TrainJob
from drachma.queueing.jobs.suspendable import SuspendableJob

_MODELS: Final[tuple[type[SuspendableJob], ...]] = (
    AppWrapper,
    kubeflow.JAXJob,
    kubeflow.MPIJob,
    kubeflow.PaddleJob,
    kubeflow.PyTorchJob,
    kubeflow.TFJob,
    kubeflow.XGBoostJob,
    ray.RayCluster,
    ray.RayJob,
    ray.RayService,
    TrainJob,
)

ALL: Final = {
    name: model for name in frameworks.INSTALLED_JOBS for model in _MODELS if model.kind == frameworks.KINDS[name]
}
"""Models by the name of their kind in configurations."""
