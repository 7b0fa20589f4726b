"""New lineages: a data file that continues another one at a revision that no client has ever seen.

Repair and restore go back in time. Clients may know revisions that are lost. A store that used them again would show
two objects under one resourceVersion. The new file starts far ahead: older revisions count as compacted, so watches and
lists from them have to start again.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from drachma.store import record, row

BUMP: Final = 1_000_000_000
"""Revisions that a new lineage skips, as upstream's documents advise for etcd."""


def first_revision(newest: int) -> int:
    """Return the revision at which a lineage begins after the newest one that is known."""
    return newest + BUMP


def newest_rows(rows: Iterable[row.Row]) -> Sequence[row.Row]:
    """Return the newest row of every object that is not deleted, in revision order. Rows come in revision order."""
    objects: dict[record.Key, row.Row] = {}
    for each in rows:
        key = record.Key(each[4], each[5], each[6])
        objects.pop(key, None)
        if not each[3]:
            objects[key] = each
    return sorted(objects.values())
