"""Many memories at once: a batch in each transaction, or each judged as if it came alone."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.engine.holding import BATCH
from scrubjay.engine.store import embedding, enrichment, intake, names
from scrubjay.engine.store.history import TextVectors
from scrubjay.stores.promises.memories import Transaction
from scrubjay.values.callers import DEFAULT_SPACE
from scrubjay.values.frozen import replace
from scrubjay.values.memory import Kind, Memory, NewMemory, State, Stored

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine


def store_many(
    engine: Engine, items: Iterable[NewMemory | Mapping[str, Any]], progress: Callable[[int], None] | None
) -> Sequence[str]:
    """Keep many memories, one transaction per batch; their ids in order."""
    ids: list[str] = []
    for admitted, texts, given in embedding.embed_ahead(engine, admit_batches(engine, items)):
        memories = enrichment.enrich_all(engine, admitted, given, [text.first for text in texts])
        with engine.records.writing() as tx:
            add_memories(engine, tx, memories, texts)
        engine.write_files(patient=True)
        ids += [memory.id for memory in memories]
        if progress:
            progress(len(ids))
    if ids and engine.parts.embedding.embedder is not None:
        engine.parts.backlog.wake()
    engine.parts.indexer.finish()
    return ids


def add_memories(
    engine: Engine, tx: Transaction, memories: Sequence[Memory], texts: Sequence[TextVectors], *, imported: bool = False
) -> None:
    """Write new memories in their order, plain ones that follow each other all at once; what is imported on paths
    that are free."""
    ledger = engine.ledger
    intake.check_quota(engine, tx, *memories)
    for plain, run in groupby(zip(memories, texts, strict=True), lambda pair: pair[0].kind is Kind.MEMORY):
        pairs = [*run]
        if plain:
            news = [memory for memory, _ in pairs]
            news = names.on_free_paths(tx, news) if imported else news
            ledger.add_all(tx, news, [text for _, text in pairs])
            continue
        for given, text in pairs:
            memory = replace(given, path=names.free_path(tx, given)) if imported else given
            in_chain = imported and (memory.name != memory.id or memory.state is not State.ACTIVE)
            if memory.kind is Kind.DECISION and not in_chain:
                engine.decisions.add(tx, memory, text, imported=imported)
            else:
                ledger.add(tx, memory, text, judged=True)


def store_each(engine: Engine, items: Sequence[NewMemory], personal: Container[int]) -> Sequence[Stored]:
    """Store some memories one after the other, each judged as if it came alone."""
    shared = not engine.only and access.is_granted(engine.caller, DEFAULT_SPACE)
    default = engine.bound_to(spaces=(DEFAULT_SPACE,), only=False) if shared else engine
    engines = [
        (default if place in personal else engine).bound_to(request=engine.request and engine.request.nth(place))
        for place in range(len(items))
    ]
    admitted = [intake.admit(one, new) for one, new in zip(engines, items, strict=True)]
    if engine.parts.quota:
        fresh = [memory for one, memory in zip(engines, admitted, strict=True) if not is_repeated_request(one)]
        intake.check_quota(engine, engine.records, *fresh)
    return [one.store(new) for one, new in zip(engines, items, strict=True)]


def is_repeated_request(engine: Engine) -> bool:
    """Whether this request was carried out before: its result may be a memory, a decision or a checkpoint."""
    if engine.request is None:
        return False
    with engine.records.writing() as tx:
        return tx.history.result_of(engine.request, now=engine.now()) is not None


def admit_batches(
    engine: Engine, items: Iterable[NewMemory | Mapping[str, Any]]
) -> Iterator[tuple[Sequence[Memory], Sequence[NewMemory]]]:
    for batch in batches(items):
        given, caller = [intake.new_memory(item, {}) for item in batch], engine.caller
        yield [intake.admit(engine, new, caller=caller) for new in engine.parts.embedding.yielding_gil(given)], given


def batches(items: Iterable[Any]) -> Iterator[list[Any]]:
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch
