"""Stores that tasks in any processes write together.

One process, the coordinator, opens a commit with `open`. Tasks in other processes, on any node that
sees the file system, join it with its invitation, write regions of arrays into the one file, and
return small receipts. The coordinator commits what the receipts list: all, or nothing.

Tasks need no connection to each other. Invitations and receipts travel as the arguments and results
of multiprocessing, dask, Ray, or as files between the jobs of a batch system.
"""

from __future__ import annotations

from ambar.distributed.commit import SharedCommit, open  # noqa: A004 - as `ambar.open`
from ambar.distributed.task import ArrayRegion, Invitation, TaskWriter

__all__ = ["ArrayRegion", "Invitation", "SharedCommit", "TaskWriter", "open"]
