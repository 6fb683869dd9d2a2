"""What a store promises about work that must not be done twice, as tests. Part of `suite.py`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scrubjay.errors import Unprocessable
from scrubjay.stores.promises.memories import Store
from scrubjay.values.callers import Caller, Provenance, Role
from scrubjay.values.store import JobStatus
from tests.stores.contract.samples import (
    NOW,
    Reopen,
    a_job,
    a_request,
    keep,
    kept,
    later,
    purge,
    put,
    put_all,
    put_in,
    put_job,
    some,
)


class JobsContract:
    # --- results of requests ---

    def test_a_request_that_was_never_made_has_no_result(self, store: Store) -> None:
        assert kept(store, a_request()) is None

    def test_the_same_request_is_given_the_kept_result(self, store: Store, reopen: Reopen) -> None:
        keep(store, a_request(), '{"text": "é\\u0000"}')

        assert kept(store, a_request()) == '{"text": "é\\u0000"}'
        assert kept(reopen(), a_request()) == '{"text": "é\\u0000"}'

    @pytest.mark.parametrize("other", [{"operation": "forget_memory"}, {"arguments": b"\2" * 32}])
    def test_a_key_used_for_something_else_is_refused(self, store: Store, other: dict[str, Any]) -> None:
        keep(store, a_request())

        with pytest.raises(Unprocessable):
            kept(store, a_request(**other))

    def test_callers_do_not_share_keys(self, store: Store) -> None:
        keep(store, a_request(), "ann's")

        assert kept(store, a_request(caller="bob")) is None
        keep(store, a_request(caller="bob"), "bob's")
        assert (kept(store, a_request()), kept(store, a_request(caller="bob"))) == ("ann's", "bob's")

    def test_a_result_is_kept_for_a_day(self, store: Store) -> None:
        keep(store, a_request(), "old")
        day = timedelta(hours=24)

        assert kept(store, a_request(), now=NOW + day - timedelta(milliseconds=1)) == "old"
        assert kept(store, a_request(), now=NOW + day) is None
        assert kept(store, a_request(operation="other"), now=NOW + day) is None
        keep(store, a_request(operation="other"), "new", at=NOW + day)
        assert kept(store, a_request(operation="other"), now=NOW + day) == "new"

    def test_nothing_is_kept_of_a_transaction_that_raises(self, store: Store) -> None:
        with pytest.raises(ZeroDivisionError), store.writing() as tx:  # noqa: PT012 -- what came before it is the point
            put_in(tx, some())
            tx.history.keep_result(a_request(), "{}", memories=(), at=NOW)
            raise ZeroDivisionError

        assert kept(store, a_request()) is None

    def test_a_purge_erases_results_that_mention_the_memory(self, store: Store) -> None:
        one, two = put_all(store, [some(), some()])
        keep(store, a_request(key="one"), memories=[one.id, one.id])
        keep(store, a_request(key="both"), memories=[one.id, two.id])
        keep(store, a_request(key="two"), memories=[two.id])
        keep(store, a_request(key="none"))

        purge(store, one.id)

        assert [kept(store, a_request(key=key)) for key in ("one", "both", "two", "none")] == [None, None, "{}", "{}"]

    def test_a_purge_may_keep_its_own_result(self, store: Store) -> None:
        memory = put(store, some())
        with store.writing() as tx:
            tx.purge(memory.id, at=NOW)
            tx.history.keep_result(a_request(), "gone", memories=[memory.id], at=NOW)

        assert kept(store, a_request()) == "gone"

    # --- leases ---

    def test_a_lease_has_one_holder(self, store: Store) -> None:
        assert store.upkeep.lease("purge", holder="one", seconds=60)
        assert not store.upkeep.lease("purge", holder="two", seconds=60)
        assert store.upkeep.lease("embed", holder="two", seconds=60)

    def test_a_holder_renews_its_lease(self, store: Store) -> None:
        assert store.upkeep.lease("purge", holder="one", seconds=60)
        assert store.upkeep.lease("purge", holder="one", seconds=60)

    def test_a_lease_ends(self, store: Store) -> None:
        assert store.upkeep.lease("purge", holder="one", seconds=0)
        assert store.upkeep.lease("purge", holder="two", seconds=60)
        assert not store.upkeep.lease("purge", holder="one", seconds=60)

    def test_a_lease_is_given_back_by_its_holder_only(self, store: Store) -> None:
        store.upkeep.lease("purge", holder="one", seconds=60)

        store.upkeep.release("purge", holder="two")
        assert not store.upkeep.lease("purge", holder="two", seconds=60)

        store.upkeep.release("purge", holder="one")
        assert store.upkeep.lease("purge", holder="two", seconds=60)

    # --- jobs ---

    def test_a_job_is_kept_whole(self, store: Store, reopen: Reopen) -> None:
        job = a_job(
            caller=Caller(user="ann", role=Role.MEMBER, spaces=frozenset({"default", "work"})),
            provenance=Provenance(client="editor", caller="ann", transport="stdio", dialect="system"),
            state={"at": 7},
            done=3,
            total=9,
            note="half way",
            cancelling=True,
            attempts=2,
            started_at=later(1),
        )
        put_job(store, job)

        assert reopen().jobs.get(job.id) == job

    def test_an_unknown_job_is_none(self, store: Store) -> None:
        assert store.jobs.get("job_unknown") is None

    def test_writing_a_job_again_replaces_it(self, store: Store) -> None:
        job = a_job()
        put_job(store, job)
        done = replace(job, status=JobStatus.COMPLETED, result={"synced": 3}, finished_at=later(2))
        put_job(store, done)

        assert store.jobs.list() == [done]

    def test_an_unfinished_job_runs_while_its_lease_does(self, store: Store) -> None:
        job = a_job()
        put_job(store, job)
        store.upkeep.lease(f"job:{job.id}", holder="one", seconds=60)
        running = store.jobs.get(job.id)
        store.upkeep.release(f"job:{job.id}", holder="one")
        waiting = store.jobs.get(job.id)

        assert running == replace(job, status=JobStatus.RUNNING)
        assert waiting == job

    def test_a_finished_job_is_finished_whatever_its_lease_says(self, store: Store) -> None:
        job = a_job(status=JobStatus.FAILED, error={"code": "internal"}, finished_at=NOW)
        put_job(store, job)
        store.upkeep.lease(f"job:{job.id}", holder="one", seconds=60)

        assert store.jobs.get(job.id) == job

    def test_jobs_are_listed_newest_first_by_user_and_by_being_unfinished(self, store: Store) -> None:
        first, second = a_job(), a_job(caller=Caller(user="bob"), provenance=Provenance(caller="bob"))
        third = a_job(status=JobStatus.COMPLETED, finished_at=NOW)
        for job in (first, second, third):
            put_job(store, job)

        assert store.jobs.list() == [third, second, first]
        assert store.jobs.list(limit=1) == [third]
        assert store.jobs.list(user="local") == [third, first]
        assert store.jobs.list(user="local", unfinished=True) == [first]

    def test_old_finished_jobs_are_dropped(self, store: Store) -> None:
        old, young = (a_job(status=JobStatus.CANCELLED, finished_at=later(n)) for n in (1, 3))
        unfinished = a_job()
        for job in (old, young, unfinished):
            put_job(store, job)
        with store.writing() as tx:
            tx.jobs.drop(finished_before=later(2))

        assert store.jobs.list() == [unfinished, young]

    # --- held memories ---

    def test_a_held_memory_is_held_off_from_others(self, store: Store) -> None:
        with store.writing() as tx:
            assert tx.jobs.hold(["mem_a", "mem_b"], holder="one", seconds=60) is None

        assert store.jobs.held_by_others(["mem_c", "mem_b"]) == ["mem_b"]
        assert store.jobs.held_by_others(["mem_a", "mem_b"], but="one") == []

    def test_all_are_held_or_none(self, store: Store) -> None:
        with store.writing() as tx:
            tx.jobs.hold(["mem_b"], holder="one", seconds=60)
            assert tx.jobs.hold(["mem_a", "mem_b"], holder="two", seconds=60) == "mem_b"

        assert store.jobs.held_by_others(["mem_a"]) == []

    def test_a_hold_is_renewed_and_ends(self, store: Store) -> None:
        with store.writing() as tx:
            assert tx.jobs.hold(["mem_a"], holder="one", seconds=60) is None
            assert tx.jobs.hold(["mem_a"], holder="one", seconds=0) is None
            assert tx.jobs.hold(["mem_a"], holder="two", seconds=60) is None

        assert store.jobs.held_by_others(["mem_a"], but="one") == ["mem_a"]

    def test_a_holder_lets_go_of_its_own_only(self, store: Store) -> None:
        with store.writing() as tx:
            tx.jobs.hold(["mem_a", "mem_b"], holder="one", seconds=60)
            tx.jobs.hold(["mem_c"], holder="two", seconds=60)
            tx.jobs.let_go("one")

        assert store.jobs.held_by_others(["mem_a", "mem_b", "mem_c"]) == ["mem_c"]
