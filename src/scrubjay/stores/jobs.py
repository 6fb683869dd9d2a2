"""What a store promises of long work: jobs, and memories that are held meanwhile. Part of the promise in `base.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime

from scrubjay.memory import Job


class JobReads(ABC):
    @abstractmethod
    def job(self, id: str) -> Job | None:
        """A job by its id. One that is not finished is running while somebody's lease `job:<id>` runs, else waiting."""

    @abstractmethod
    def jobs(self, *, user: str | None = None, unfinished: bool = False, limit: int = 100) -> list[Job]:
        """Jobs, newest first: those of one user, those not finished yet, or all."""

    @abstractmethod
    def held(self, ids: Sequence[str], *, but: str = "") -> list[str]:
        """Those of these memories that long work holds (`Transaction.hold`); what this holder holds is left out."""


class JobChanges(ABC):
    @abstractmethod
    def put_job(self, job: Job) -> None:
        """Write a job as it is now, new or known. Whether it waits or runs is not written: the lease says so."""

    @abstractmethod
    def drop_jobs(self, *, finished_before: datetime) -> None:
        """Forget jobs that were finished before a moment."""

    @abstractmethod
    def hold(self, ids: Sequence[str], *, holder: str, seconds: float) -> str | None:
        """Hold memories for long work, or hold them longer: all of them, or none and the id of one that another holds.

        Others may read them meanwhile; their changes are refused above.
        """

    @abstractmethod
    def let_go(self, holder: str) -> None:
        """Give back every memory that this holder holds."""
