"""Obstacles: the first thing that keeps a device from a request, looking at the device by itself.

The order is the one in which upstream looks: selectors of the class, then of the request, nodes, capacity, taints, who
has the device, what is left of its capacity and counters, compatibility groups. What the devices of several requests
must have in common comes after that, in :mod:`drachma.allocator.explanation.agreement`.
"""

from __future__ import annotations

from drachma.allocator import allocator as allocators
from drachma.allocator import budget, capacity, expressions, pool
from drachma.allocator import problem as problems
from drachma.allocator.explanation import amount, cause, reach, reading
from drachma.api import resourceclaim
from drachma.api.gates import Gate
from drachma.claims import taints


class Inspector:
    """Tells what is in the way of single devices of a problem."""

    def __init__(self, source: allocators.Allocator, problem: problems.Problem, *, budget: budget.Budget) -> None:
        self._features = source.features
        self._state = source.allocated
        self._problem = problem
        self._view = problem.view
        self._spent = budget

    def first_obstacle(self, option: problems.Option, position: int) -> cause.Cause | None:
        """Return the first cause that rejects the device, or None. Raises ExhaustedError at the end of the budget."""
        block, place = self._view.locate(position)
        return (
            self._selection(option, block, place, position=position)
            or self._suitability(option, block, place, position=position)
            or self._availability(option, block, place, position=position)
        )

    def _selection(
        self, option: problems.Option, block: pool.Block, place: int, *, position: int
    ) -> cause.Cause | None:
        if block.conditional >> place & 1 and not self._features.device_binding:
            detail = "the device has binding conditions"
            return cause.FeatureOff(feature=Gate.DEVICE_BINDING_CONDITIONS, detail=detail)
        shape = option.shape
        for number, judge in enumerate(shape.class_judges):
            yes, failing = judge.judge_block(block, self._spent)
            if failing >> place & 1:
                return self._failure(option, position)
            if not yes >> place & 1:
                readings = _readings(judge, block, place)
                return cause.ClassSelector(
                    class_name=shape.class_name, number=number, expression=judge.expression, read=readings
                )
        for number, judge in enumerate(shape.request_judges):
            yes, failing = judge.judge_block(block, self._spent)
            if failing >> place & 1:
                return self._failure(option, position)
            if not yes >> place & 1:
                readings = _readings(judge, block, place)
                return cause.RequestSelector(number=number, expression=judge.expression, read=readings)
        return None

    def _suitability(
        self, option: problems.Option, block: pool.Block, place: int, *, position: int
    ) -> cause.Cause | None:
        device = block.devices[place]
        if position in self._view.placement_errors:
            return cause.Failure(message=self._view.placement_errors[position])
        if self._view.misplaced >> position & 1:
            return reach.OWN_CHOICE
        if self._features.consumable_capacity:
            obstacle = self._capacity(option, block, place, position=position)
            if obstacle is not None:
                return obstacle
        if block.consuming >> place & 1 and not self._features.partitionable_devices:
            return cause.FeatureOff(feature=Gate.PARTITIONABLE_DEVICES, detail="the device draws from counters")
        if self._features.device_taints:
            untolerated = tuple(
                cause.Taint(key=str(taint.key), value=str(taint.value), effect=str(taint.effect))
                for taint in device.taints
                if taints.first_untolerated((taint,), option.way.tolerations) is not None
            )
            if untolerated:
                return cause.Tainted(taints=untolerated)
        if block.skipping >> place & 1:
            return self._node_operations()
        return None

    def _availability(
        self, option: problems.Option, block: pool.Block, place: int, *, position: int
    ) -> cause.Cause | None:
        if self._problem.taken >> position & 1 and not option.way.admin_access:
            return cause.Held(claims=self._state.holders(block, place))
        in_part = self._state.partly_used(block) >> place & 1
        if in_part and self._features.consumable_capacity:
            device = block.devices[place]
            consumed = option.shape.amounts(device) or {}
            for (name, needed), available in zip(
                consumed.items(), self._problem.room(option, position)[1], strict=True
            ):
                if needed.nanos > available:
                    return cause.CapacityShort(
                        capacity=name,
                        needed=str(needed),
                        left=amount.spell(available, like=capacity.value_of(device.capacity[name])),
                        claims=self._state.holders(block, place),
                    )
        if in_part and self._problem.shared >> position & 1:
            # A further share of a device that is in use draws nothing more.
            return None
        return self._counters(block, place) if self._features.partitionable_devices else None

    def _capacity(self, option: problems.Option, block: pool.Block, place: int, *, position: int) -> cause.Cause | None:
        device = block.devices[place]
        requirements = option.way.capacity
        requests = {} if requirements is None else requirements.requests
        for name in requests:
            if name not in device.capacity:
                return cause.CapacityUnsuitable(
                    capacity=name, requested=str(requests[name]), detail="the device does not have it"
                )
        try:
            consumed = option.shape.amounts(device)
        except capacity.CapacityError:
            return self._failure(option, position)
        if consumed is None:
            return self._unsuitable(requests, block, place)
        for name, needed in consumed.items():
            there = capacity.value_of(device.capacity[name])
            if needed > there:
                return cause.CapacityShort(capacity=name, needed=str(needed), left=str(there))
        return None

    def _unsuitable(self, requests: capacity.Amounts, block: pool.Block, place: int) -> cause.Cause:
        """Return the first requested amount that a policy refuses. There is at least one."""
        device = block.devices[place]
        for name, request in requests.items():
            alone = resourceclaim.CapacityRequirements(requests={name: request})
            part = {name: device.capacity[name]}
            fractional = self._features.fractional_capacity_range
            if capacity.consumption(alone, part, fractional=fractional) is None:
                return cause.CapacityUnsuitable(
                    capacity=name, requested=str(request), detail="its request policy does not allow that amount"
                )
        return cause.CapacityUnsuitable(capacity="", requested="", detail="a request policy refuses its own default")

    def _node_operations(self) -> cause.Cause | None:
        declared = Gate.OPTIONAL_NODE_OPERATIONS in self._view.node.declared_features
        if declared and self._features.optional_node_operations:
            return None
        detail = "its slice skips node operations" + ("" if declared else ", and the node does not declare it can")
        return cause.FeatureOff(feature=Gate.OPTIONAL_NODE_OPERATIONS, detail=detail)

    def _counters(self, block: pool.Block, place: int) -> cause.Cause | None:
        table = block.counters
        if table is None or not block.consuming >> place & 1:
            return None
        available = self._state.counters_left(block)
        draws = dict(table.draws[place])
        # Where a counter is overdrawn already, nothing of the pool that draws from any counter can be had.
        short = [number for number, remainder in enumerate(available) if remainder < 0] or [
            number for number, needed in draws.items() if available[number] < needed
        ]
        if short:
            number = short[0]
            set_name, name = table.names[number]
            like = amount.counter_amount(block, set_name, name)
            return cause.CounterExhausted(
                pool=str(block.pool_id),
                counter_set=set_name,
                counter=name,
                needed=amount.spell(draws.get(number, 0), like=like),
                left=amount.spell(available[number], like=like),
                claims=self._drawing(block, number),
            )
        if self._features.compatibility_groups and table.uses_groups:
            open_groups = self._state.groups_left(block)
            for number, groups in table.bonds[place]:
                if not open_groups[number] & groups:
                    name = table.set_names[number]
                    own = [
                        entry.compatibility_groups
                        for entry in block.devices[place].consumes_counters
                        if entry.counter_set == name
                    ]
                    return cause.GroupsIncompatible(
                        pool=str(block.pool_id), counter_set=name, groups=tuple(map(str, own[0]))
                    )
        return None

    def _drawing(self, block: pool.Block, number: int) -> tuple[str, ...]:
        """Return the claims that hold devices which draw from a counter."""
        table = block.counters
        claims: set[str] = set()
        for place in range(len(block.devices)):
            if table is not None and any(counter == number and draw for counter, draw in table.draws[place]):
                claims.update(self._state.holders(block, place))
        return tuple(sorted(claims))

    def _failure(self, option: problems.Option, position: int) -> cause.Failure:
        return cause.Failure(message=str(self._problem.failure(option, position)))


def _readings(judge: expressions.Judge, block: pool.Block, place: int) -> tuple[cause.Reading, ...]:
    reads = None if judge.selector is None else judge.selector.reads
    return reading.readings(reads, block.devices[place], driver=block.pool_id.driver)
