"""Problem: the decisions of one search, as levels of options over the positions of a view.

Every request of every claim is a level, in upstream's order; every way to satisfy it is an option. Building a problem
is also where requests are checked and ``All`` is resolved, in upstream's order, because that decides which error is
reported. After that the only errors left are those that depend on where a search goes.
"""

from __future__ import annotations

from typing import NamedTuple

from drachma import errors
from drachma.allocator import allocated, budget, capacity, constraint, counters, noderoom, pool, screening
from drachma.allocator import claim as claims
from drachma.allocator import classes as deviceclasses
from drachma.allocator import view as views
from drachma.api import deviceclass

Amounts = tuple[int, ...]


class Option:
    """One way to satisfy a request."""

    __slots__ = (
        "candidates",
        "checks",
        "claim",
        "count",
        "errors",
        "found_class",
        "level",
        "listed",
        "number",
        "shape",
        "short",
        "way",
    )

    def __init__(
        self,
        way: claims.Alternative,
        found_class: deviceclass.DeviceClass,
        *,
        shape: screening.RequestShape,
        screen: screening.Screen,
        claim: int,
    ) -> None:
        self.way = way
        self.found_class = found_class
        self.shape = shape
        self.claim = claim
        self.level = 0
        """Which level it belongs to."""
        self.number = 0
        """Which of the level's options it is."""
        self.candidates = screen.candidates
        """Devices that may be allocated, as far as that is known before the search."""
        self.errors = screen.errors
        """Devices that end the search with an error."""
        self.count = way.count
        self.listed: tuple[int, ...] | None = None
        """With ``All``: every device wanted, candidate or not."""
        self.short = 0
        """With ``All``: candidates of which others have consumed too much."""
        self.checks: tuple[constraint.Check, ...] = ()
        if way.everything:
            self.listed = tuple(views.positions(screen.selected))
            self.count = len(self.listed)
            self.errors = 0

    @property
    def is_tame(self) -> bool:
        """True if its devices cannot end the search with an error."""
        return not self.errors and not any(check.failing for check in self.checks)


class Level(NamedTuple):
    """One request of one claim."""

    claim: int
    options: tuple[Option, ...]
    is_choice: bool


class Setting(NamedTuple):
    """Cluster state that a problem is built from."""

    classes: deviceclasses.Classes
    state: allocated.AllocatedState
    screener: screening.Screener
    spent: budget.Budget


class Problem:
    """Everything a search needs to know. Searches read it and change nothing in it."""

    __slots__ = (
        "_in_part",
        "_node_needs",
        "_node_room",
        "_rooms",
        "_setting",
        "bonds",
        "claims",
        "counters",
        "draws",
        "groups",
        "has_admin_access",
        "left",
        "levels",
        "node_left",
        "shared",
        "starts",
        "taken",
        "view",
    )

    def __init__(
        self,
        view: views.View,
        compiled_claims: tuple[claims.Claim, ...],
        setting: Setting,
        *,
        room: noderoom.NodeRoom | None = None,
    ) -> None:
        """Raises AllocationError for what upstream refuses before it searches."""
        self._node_room = room
        self._node_needs: dict[tuple[screening.RequestShape, int, int], Amounts] = {}
        self.node_left: Amounts = () if room is None else (*(amount for _, amount in room.left), 0)
        """Amounts of the node's own resources that devices may use, and none of resources that it does not have.

        Empty if that is not a part of the problem.
        """
        self.view = view
        self.claims = compiled_claims
        self._setting = setting
        self._rooms: dict[tuple[screening.RequestShape, int], tuple[Amounts, Amounts]] = {}
        features = setting.screener.features
        self.shared = view.shared if features.consumable_capacity else 0
        """Devices that several requests may have a share of."""
        exclusive = in_part = 0
        for block, offset in zip(view.blocks, view.offsets, strict=True):
            exclusive |= setting.state.taken(block) << offset
            in_part |= setting.state.partly_used(block) << offset
        self.taken = view.arrange(exclusive)
        """Devices that claims hold exclusively."""
        self._in_part = view.arrange(in_part)
        self.has_admin_access = False
        levels: list[Level] = []
        for number, claim in enumerate(compiled_claims):
            levels += self._levels(claim, number)
        self.levels = tuple(levels)
        self.starts = [claim.start for claim in compiled_claims]
        """Constraint state of each claim before its first device."""
        self.left: Amounts = ()
        """Remaining amounts of all counters that candidates draw from."""
        self.counters: list[tuple[str, ...]] = []
        """Names of the counters in ``left``: driver, pool, counter set and counter."""
        self.draws: dict[int, counters.Draws] = {}
        """Draws of candidates from ``left``, by position."""
        self.groups: Amounts = ()
        self.bonds: dict[int, counters.Bonds] = {}
        if features.partitionable_devices and view.consuming:
            self._take_in_counters()
        for depth, level in enumerate(self.levels):
            for number, option in enumerate(level.options):
                option.level, option.number = depth, number
                if option.candidates & self._in_part and features.consumable_capacity:
                    self._take_in_capacity(option)
                constraints = compiled_claims[option.claim].constraints
                if constraints:
                    option.checks = constraint.checks(
                        constraints,
                        option.way,
                        view=view,
                        among=option.candidates,
                        screener=setting.screener,
                        budget=setting.spent,
                    )

    def failure(self, option: Option, position: int) -> errors.AllocationError:
        """Return the error of a device that is among the option's errors."""
        return screening.failure(
            option.shape,
            self.view,
            position,
            claim=self.claims[option.claim].label,
            request=option.way.name,
            device=str(self.view.device_id(position)),
        )

    def extend(self, option: Option, position: int, constraint_state: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the constraint state with one more device, or None if the device breaks a constraint.

        Raises AllocationError where a derived attribute of the device cannot be computed.
        """
        extended = list(constraint_state)
        for check in option.checks:
            if check.failing >> position & 1:
                raise check.failure(self.view, position)
            elements = check.extend(extended[check.number], position)
            if elements is None:
                return None
            extended[check.number] = elements
        return tuple(extended)

    def room(self, option: Option, position: int) -> tuple[Amounts, Amounts]:
        """Return what the option takes of each capacity of a device, and what is left of it."""
        key = (option.shape, position)
        room = self._rooms.get(key)
        if room is None:
            device = self.view.device(position)
            amounts = option.shape.amounts(device) or {}
            consumed = self._setting.state.consumed(self.view.device_id(position))
            available = tuple(
                capacity.value_of(device.capacity[name]).nanos - (consumed[name].nanos if name in consumed else 0)
                for name in amounts
            )
            room = self._rooms[key] = (tuple(amount.nanos for amount in amounts.values()), available)
        return room

    def node_needs(self, option: Option, position: int) -> Amounts:
        """Return what a device needs of each of the node's own resources in ``node_left``."""
        room = self._node_room
        if room is None:
            return ()
        key = (option.shape, option.claim, position)
        amounts = self._node_needs.get(key)
        if amounts is None:
            device = self.view.device(position)
            consumed = option.shape.amounts(device) or {} if self.shared >> position & 1 else {}
            needs = room.needs(option.claim, device, consumed)
            resource_names = {name for name, _ in room.left}
            unknown = sum(amount for name, amount in needs.items() if name not in resource_names)
            amounts = self._node_needs[key] = (*(needs.get(name, 0) for name, _ in room.left), unknown)
        return amounts

    def _levels(self, claim: claims.Claim, number: int) -> list[Level]:
        levels: list[Level] = []
        least = 0
        for request in claim.requests:
            if request.problem:
                raise errors.AllocationError(request.problem)
            options = tuple(self._option(way, claim, number) for way in self._available(request))
            least += min(option.count for option in options)
            levels.append(Level(number, options, request.first_available))
        if least > claims.MAX_RESULTS:
            raise errors.AllocationError(
                f"claim {claim.label}: number of requested devices {least} "
                f"exceeds the claim limit of {claims.MAX_RESULTS}"
            )
        if claim.late_problem:
            raise errors.AllocationError(claim.late_problem)
        return levels

    def _available(self, request: claims.Request) -> tuple[claims.Alternative, ...]:
        """Return the alternatives to consider. If no class exists, the first alternative names the missing one."""
        alternatives = request.alternatives
        if not self._setting.screener.features.absent_classes or not request.first_available:
            return alternatives
        existing = tuple(way for way in alternatives if self._setting.classes.get(way.class_name) is not None)
        return existing or alternatives[:1]

    def _option(self, way: claims.Alternative, claim: claims.Claim, number: int) -> Option:
        if way.problem:
            raise errors.AllocationError(way.problem)
        classes = self._setting.classes
        device_class = classes.get(way.class_name)
        if device_class is None:
            raise errors.AllocationError(
                f"claim {claim.label}, request {way.name}: could not retrieve device class {way.class_name}: "
                f"{classes.missing(way.class_name)}"
            )
        if way.late_problem:
            raise errors.AllocationError(way.late_problem)
        shape = way.shape(device_class, self._setting.screener)
        screen = shape.screen(self.view, self._setting.spent)
        if way.everything:
            self._check_all(way, claim, shape=shape)
        if way.admin_access:
            self.has_admin_access = True
        return Option(way, device_class, shape=shape, screen=screen, claim=number)

    def _check_all(self, way: claims.Alternative, claim: claims.Claim, *, shape: screening.RequestShape) -> None:
        """Refuse ``All`` where some pool is not to be trusted (KEP-4381), or a device cannot be looked at."""
        natural = self.view.natural
        failing = shape.screen(natural, self._setting.spent).errors
        subject = f"claim {claim.label}, request {way.name}: asks for all devices, but resource pool"
        offset = 0
        for gathered in natural.pools:
            block = gathered.block
            if block is None:
                raise errors.AllocationError(f"{subject} {gathered.pool_id} is currently being updated")
            if block.invalid:
                raise errors.AllocationError(f"{subject} {gathered.pool_id} is currently invalid")
            for place in views.positions(failing >> offset & block.everything):
                raise screening.failure(
                    shape,
                    natural,
                    place + offset,
                    claim=claim.label,
                    request=way.name,
                    device=block.devices[place].name,
                )
            offset += len(block.devices)

    def _take_in_counters(self) -> None:
        candidates = 0
        for level in self.levels:
            for option in level.options:
                candidates |= option.candidates
        state = self._setting.state
        amounts: list[int] = []
        groups: list[int] = []
        # Where a pool's counters and groups start in the lists; nowhere if nothing may be drawn from it.
        starts: dict[pool.Block, tuple[int, int] | None] = {}
        blocked = 0
        # A further share of a device that is in use draws nothing more.
        for position in views.positions(candidates & self.view.consuming & ~(self._in_part & self.shared)):
            block, place = self.view.locate(position)
            if block.counters is None:
                continue
            grouped = self._setting.screener.features.compatibility_groups and block.counters.uses_groups
            if block not in starts:
                available = state.counters_left(block)
                starts[block] = None
                # Where too much is allocated already, upstream rejects whatever draws from the pool.
                if min(available, default=0) >= 0:
                    starts[block] = len(amounts), len(groups)
                    amounts += available
                    self.counters += ((*block.pool_id, *names) for names in block.counters.names)
                    groups += state.groups_left(block) if grouped else ()
            start = starts[block]
            if start is None:
                blocked |= 1 << position
                continue
            self.draws[position] = tuple((entry + start[0], amount) for entry, amount in block.counters.draws[place])
            if grouped:
                self.bonds[position] = tuple((entry + start[1], bits) for entry, bits in block.counters.bonds[place])
        self.left = tuple(amounts)
        self.groups = tuple(groups)
        for level in self.levels:
            for option in level.options:
                option.candidates &= ~blocked

    def _take_in_capacity(self, option: Option) -> None:
        for position in views.positions(option.candidates & self._in_part):
            amounts, available = self.room(option, position)
            if any(amount > remainder for amount, remainder in zip(amounts, available, strict=True)):
                if option.listed is None:
                    option.candidates &= ~(1 << position)
                else:
                    option.short |= 1 << position
