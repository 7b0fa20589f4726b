"""Jobs whose pods have claim templates of v1alpha2: quota counts them by their resource class."""

from tests import firstalpha
from tests.scenarios import queues
from tests.scenarios.test_first_alpha import CLASS, PARAMETERS, SLICE

TEMPLATE = """
kind: ResourceClaimTemplate
apiVersion: resource.k8s.io/v1alpha2
metadata: {name: large-card}
spec:
  spec:
    resourceClassName: cards
    parametersRef: {apiGroup: resource.k8s.io, kind: ResourceClaimParameters, name: large}
"""
MAPPED = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "resources": {"deviceClassMappings": [{"name": "cards", "deviceClassNames": ["cards"]}]},
}


async def test_templates_of_the_first_alpha_are_counted_by_their_class() -> None:
    async with queues.queues(configuration=MAPPED, gates=firstalpha.GATES) as cluster:
        await cluster.create_queue(cpu=100, cards=1)
        await cluster.apply(SLICE.replace("worker-1", "node-0"), CLASS)
        await cluster.create_job("early", template="large-card", seconds=600)
        assert await cluster.is_suspended("early"), "the template and its parameters do not exist"
        await cluster.apply(TEMPLATE, PARAMETERS)
        await cluster.advance(10)
        assert not await cluster.is_suspended("early")
        usage = (await cluster.workload_of("early")).status.admission
        assert usage is not None
        amounts = usage.pod_set_assignments[0].resource_usage
        assert {name: str(amount) for name, amount in amounts.items()} == {"cpu": "1", "cards": "1"}
        await cluster.create_job("second", template="large-card", seconds=600)
        assert await cluster.is_suspended("second"), "the quota is used"
