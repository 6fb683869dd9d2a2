"""`scrubjay doctor`

Each check yields findings: `ok`, `note` (more can be done), `warning` (works, but could be better) or `problem`, and
what to do about it. Checks write nothing, and a check that fails does not stop the others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import click

from scrubjay import __version__
from scrubjay.cli.command import Command
from scrubjay.cli.failures import FAILED
from scrubjay.cli.output import count_of, note, print_json, print_table, when
from scrubjay.cli.progress import progress
from scrubjay.cli.session import CommandSession
from scrubjay.clients.checkup import ClientEntry, ailments
from scrubjay.embedders.catalogue import ENGLISH, LANGUAGES, find
from scrubjay.embedders.download import verify
from scrubjay.embedders.lending import lenders_of
from scrubjay.engine.access import EVERYTHING
from scrubjay.engine.archive.marks import ELSEWHERE, MarkedObjects, absent
from scrubjay.engine.conflicts.duplicates import beside, same_said
from scrubjay.engine.files.changes import is_away
from scrubjay.engine.parts import engine_on
from scrubjay.engine.store.models import models_of
from scrubjay.engine.sync.local import MEND_CLOCK, MOST_AHEAD, ahead
from scrubjay.engine.upkeep.tasks import WAITING
from scrubjay.errors import Error
from scrubjay.folders.folder import Folder
from scrubjay.machine.paths import SQLITE
from scrubjay.machine.projects import project_root
from scrubjay.settings import unknown_variables
from scrubjay.stores.promises.memories import LOST, OWN_MODEL, clock_at
from scrubjay.values.search import Filter
from scrubjay.values.times import utc_now
from scrubjay.wiring import (
    archive_folder,
    archives_in_store,
    further_models,
    open_archive,
    open_embedder,
    open_registry,
    open_store,
    sqlite_file,
)

if TYPE_CHECKING:
    from scrubjay.settings import Settings
    from scrubjay.stores.promises.memories import Checkup, Store

OK, NOTE, WARNING, PROBLEM = "ok", "note", "warning", "problem"
RESCUE = (
    "Stop every scrubjay and copy the home folder. Rescue what is readable: scrubjay export --salvage rescued.jsonl; "
    "then import it into a new home."
)
LOOKED_AT = 300  # memories that are compared with their neighbours
REBUILD = "scrubjay doctor --rebuild"
PULL = "scrubjay model pull"


@dataclass(frozen=True, slots=True)
class Finding:
    state: str
    check: str
    found: str
    do: str = ""

    def __post_init__(self) -> None:
        if self.state == OK and self.do:
            object.__setattr__(self, "state", NOTE)


@click.command(
    cls=Command,
    without=("--space",),
    examples="""
    scrubjay doctor
    scrubjay doctor --deep
    scrubjay doctor --rebuild
    """,
)
@click.option("--deep", is_flag=True, help="Read every page and text, and compare each with its hash.")
@click.option("--rebuild", is_flag=True, help="First rebuild the word index, missing vectors and the vector index.")
@click.pass_context
def doctor(ctx: click.Context, deep: bool, rebuild: bool) -> None:
    """Check the memory's health and suggest a fix for each finding.

    Changes nothing unless --rebuild is given. The exit code is 1 if there is a problem.
    """
    session: CommandSession = ctx.obj
    findings = list(examine(session, deep=deep, rebuild=rebuild))
    problems = [finding for finding in findings if finding.state == PROBLEM]
    if session.as_json:
        print_json({"ok": not problems, "findings": [asdict(finding) for finding in findings]})
    else:
        print_table(
            ("", "check", "found", "what to do"), [(one.state, one.check, one.found, one.do) for one in findings]
        )
        note(summary(findings), session)
    if problems:
        ctx.exit(FAILED)


def summary(findings: Sequence[Finding]) -> str:
    """The last line: what is wrong and what to do, else what could be better."""
    problems, warnings = ([one for one in findings if one.state == state] for state in (PROBLEM, WARNING))
    if problems:
        more = f" (and {len(problems) - 1} more, above)" if len(problems) > 1 else ""
        return f"Problem: {problems[0].check}: {problems[0].found} Fix: {problems[0].do}{more}"
    if warnings:
        return f"Works, with warnings about: {', '.join(dict.fromkeys(one.check for one in warnings))}."
    return "No problems found."


def examine(session: CommandSession, *, deep: bool, rebuild: bool) -> Iterator[Finding]:
    try:
        settings = session.settings()
        file = sqlite_file(settings.store) if settings.store.startswith(SQLITE) else None
    except Error as error:
        yield Finding(PROBLEM, "settings", error.message, error.hint or "scrubjay settings --help")
        return
    yield Finding(OK, "settings", "Readable.")
    for name, meant in unknown_variables().items():
        do = f"Set {meant} instead." if meant else "Unset it; `scrubjay settings` lists those that there are."
        yield Finding(WARNING, "environment", f"{name} is not a setting and has no effect.", do)
    yield from home(settings.home)
    yield from model_files(settings)
    yield from lenders(settings)
    yield from clients()
    if file is not None and not os.path.lexists(file):  # a dangling link counts as something
        yield Finding(OK, "store", "None yet.", "The first memory creates it: scrubjay store TEXT")
        return
    if rebuild:
        yield from rebuild_index(session)
    yield from store(settings, deep=deep)


# --- around the store ------------------------------------------------------------------------------------------------


def home(folder: Path) -> Iterator[Finding]:
    """Memories are private: no other user should be able to open their folder."""
    try:
        mode = folder.stat().st_mode & 0o777
    except FileNotFoundError:
        yield Finding(OK, "home", f"{folder} will be created with the first memory.")
        return
    except OSError as error:
        yield Finding(PROBLEM, "home", f"{folder}: {error.strerror}.", "Choose another with --home or SCRUBJAY_HOME.")
        return
    if not folder.is_dir():
        yield Finding(PROBLEM, "home", f"{folder} is not a folder.", "Choose another with --home or SCRUBJAY_HOME.")
    elif sys.platform != "win32" and mode & 0o077:
        yield Finding(
            WARNING, "home", f"Other users of this machine can open {folder} ({mode:04o}).", f"chmod 700 {folder}"
        )
    else:
        yield Finding(OK, "home", f"Only you can open {folder}.")


def model_files(settings: Settings) -> Iterator[Finding]:
    """Whether memories can be found by meaning here, and in which languages."""
    if settings.embedder == "none":
        yield Finding(WARNING, "model", "None: memories are found by words only.", "Unset SCRUBJAY_EMBEDDER.")
        return
    if settings.embedder == "hashing":
        yield Finding(
            WARNING, "model", "hashing is for tests and does not capture meaning.", "Unset SCRUBJAY_EMBEDDER."
        )
        return
    if settings.embedder == "remote":
        yield from remote_model(settings)
        return

    try:
        model = find(settings.embedder)
    except Error as error:
        yield Finding(PROBLEM, "model", error.message, error.hint or "scrubjay model list")
        return
    wrong = verify(model, settings.models)
    if wrong:
        found = f"{model.name}: {' '.join(wrong)} Until it is installed, memories are found by words only."
        yield Finding(PROBLEM, "model", found, PULL)
    else:
        yield Finding(OK, "model", f"{model.name} is installed and intact.")
    yield from languages(settings)


def languages(settings: Settings) -> Iterator[Finding]:
    """Whether the model for other languages is here, if it may be used."""
    if not further_models(settings):
        if settings.embedder in ENGLISH:
            found = "Other languages than English are found by their words only."
            yield Finding(OK, "languages", found, "Unset SCRUBJAY_LANGUAGES.")
        return
    if wrong := verify(find(LANGUAGES), settings.models):
        found = f"{LANGUAGES}: {' '.join(wrong)} Until it is installed, other languages are found by their words."
        yield Finding(OK if settings.languages == "auto" else WARNING, "languages", found, PULL)
    else:
        yield Finding(OK, "languages", f"{LANGUAGES} is installed and intact.")


def lenders(settings: Settings) -> Iterator[Finding]:
    """Who has a model loaded, and lends it to this user's other processes."""
    for one in lenders_of(settings.home):
        said = f"{one.client} (process {one.process}) lends {one.model} since {when(one.since)}"
        askers = count_of(one.askers, "asker", "askers")
        yield Finding(OK, "lending", f"{said}: {askers}, {one.texts_per_second:.2f} texts a second.")


def clients() -> Iterator[Finding]:
    """Whether the clients that know us can start us; others are not mentioned."""
    for one in ailments(project_root(Path.cwd()), __version__):
        if isinstance(one, ClientEntry):
            yield Finding(OK, one.client.name, f"Connected as {one.name} in {one.file}.")
        else:
            yield Finding(WARNING, one.client.name, one.found, one.do)


def remote_model(settings: Settings) -> Iterator[Finding]:
    """Whether the server that embeds texts does so now."""
    begun = monotonic()
    try:
        embedder = open_embedder(settings)
        assert embedder is not None
        dimension = len(embedder.embed_query("scrubjay doctor"))
        embedder.close()
    except Error as error:
        found = f"{settings.remote_model}: {error.message} Until it answers, memories are found by words only."
        yield Finding(PROBLEM, "model", found, error.hint or "Check SCRUBJAY_REMOTE_URL and SCRUBJAY_REMOTE_MODEL.")
    else:
        took = f"{dimension} dimensions, in {1000 * (monotonic() - begun):,.0f} ms"
        yield Finding(OK, "model", f"{settings.remote_model} on another server answers ({took}): texts are sent to it.")


# --- the store -------------------------------------------------------------------------------------------------------


def rebuild_index(session: CommandSession) -> Iterator[Finding]:
    note("Rebuilding words and vectors …", session)
    try:
        with session.engine() as engine, progress("Rebuilding", shown=not session.as_json) as report:
            engine.upkeep.rebuild(lambda what, done, total: report(done, total, title=title_finding(what)))
    except Error as error:
        damaged = error.code == "storage_damaged"
        yield Finding(PROBLEM, "rebuild", error.message, error.hint or (RESCUE if damaged else f"Then: {REBUILD}"))
    else:
        yield Finding(OK, "rebuild", "The word index and missing vectors were rebuilt.")


def title_finding(what: str) -> str:
    return "Waiting for another process that makes vectors" if what == WAITING else f"Rebuilding {what}"


def store(settings: Settings, *, deep: bool) -> Iterator[Finding]:
    try:
        opened = open_store(settings.store)
    except Error as error:
        yield Finding(PROBLEM, "store", error.message, remedy(error))
        return
    try:
        checkup = opened.check(deep=deep)
        yield from integrity(checkup, deep=deep)
        yield from find_lost_changes(opened)
        yield from counts(checkup)
        yield find_phrases(opened)
        yield from archive_place(settings, opened)
        yield from clock(opened)
        if deep:
            yield from archive(settings, opened)
        embedder = open_embedder(settings)
        if embedder is not None:
            yield from fingerprint(opened, embedder.fingerprint)
            yield from further_vectors(opened, settings)
        if not checkup.problems:
            yield from duplicate_copies(opened)
        yield from folders(settings, opened)
    except Error as error:
        yield Finding(PROBLEM, "store", error.message, remedy(error))
    finally:
        opened.close()


def remedy(error: Error) -> str:
    own = (error.hint or "").partition("Run `scrubjay doctor`")[0].strip()  # which is what the user is running
    return own or (RESCUE if error.code == "storage_damaged" else "Try again; if it persists, restore an export.")


def integrity(checkup: Checkup, *, deep: bool) -> Iterator[Finding]:
    for sentence in checkup.problems:
        yield Finding(PROBLEM, "integrity", sentence, REMEDIES.get(sentence, RESCUE))
    if not checkup.problems:
        size = f"{checkup.bytes_on_disk / 1_000_000:,.1f} MB, schema {checkup.schema}"
        facts = "".join(f", {name} {value}" for name, value in checkup.facts.items())
        yield Finding(OK, "integrity", f"The store is intact ({size}{facts}).")
    if not deep:
        yield Finding(OK, "hashes", "Texts were not compared with their hashes.", "scrubjay doctor --deep")
    elif checkup.wrong_hashes:
        some = ", ".join(checkup.wrong_hashes[:5]) + (" …" if len(checkup.wrong_hashes) > 5 else "")
        found = f"{len(checkup.wrong_hashes):,} texts were changed outside scrubjay: {some}"
        yield Finding(PROBLEM, "hashes", found, "Inspect each: scrubjay show ID, scrubjay history ID")
    else:
        yield Finding(OK, "hashes", "Every text matches its hash.")


REMEDIES = {
    "Other users of this machine can read the file.": "chmod 600 the store's file (scrubjay settings names it)",
    "The last changes are missing: its -wal file was deleted, or the file was replaced by an older copy.": (
        "Put that file back before anything is written, or restore a newer backup: scrubjay restore"
    ),
    "The word index is damaged; texts and everything else are intact.": REBUILD,
    "The vector index is damaged; searches compare exactly until it is rebuilt.": REBUILD,
}


def find_lost_changes(opened: Store) -> Iterator[Finding]:
    """Changes that were missing when the store was next written; everything since then is intact."""
    if noticed := opened.history.fact(LOST):
        found = f"The last changes before {noticed} were lost: its -wal was deleted, or an older copy replaced it."
        yield Finding(WARNING, "changes", found, f"Restore a backup if you miss any. To dismiss this: {REBUILD}")


def find_phrases(opened: Store) -> Finding:
    """How many memories have other words to be found by."""
    total, phrased = (opened.count(Filter(phrased=one), EVERYTHING, now=utc_now()) for one in (None, True))
    do = "An agent writes them with its prompt `tidy`" if phrased < total else ""
    return Finding(OK, "phrases", f"{phrased:,} of {total:,} current memories have phrases (also).", do)


def counts(checkup: Checkup) -> Iterator[Finding]:
    """Every memory should be found by words at once, and by meaning soon."""
    total = checkup.memories
    wordless = total - checkup.with_words
    yield Finding(OK, "texts", f"{count_of(total, 'memory', 'memories')}.")
    if wordless:
        yield Finding(PROBLEM, "words", f"{wordless:,} of {total:,} memories are not found by words.", REBUILD)
    else:
        yield Finding(OK, "words", f"All {total:,} are found by words.")
    if checkup.unusable_vectors:
        found = (
            f"{checkup.unusable_vectors:,} of {total:,} have vectors that are not made of numbers: found by words only."
        )
        yield Finding(PROBLEM, "vectors", found, "scrubjay reembed")
        return
    if checkup.with_vectors == total:
        yield Finding(OK, "vectors", f"All {total:,} are found by meaning.")
        return
    found = f"{checkup.with_vectors:,} of {total:,} are found by meaning; {checkup.pending:,} wait for the model."
    do = f"A running server does it; or: {REBUILD}" if checkup.pending else REBUILD
    yield Finding(WARNING, "vectors", found, do)


def clock(opened: Store) -> Iterator[Finding]:
    """Whether others would sync with this store: they refuse changes with timestamps far ahead."""
    now, shown = utc_now(), opened.sync.clock()
    if shown <= clock_at(now + MOST_AHEAD):
        yield Finding(OK, "clock", "The store's clock is not ahead of this machine's.")
    else:
        found = f"The store's clock is {ahead(shown, now)} ahead of this machine's; others refuse to sync with it."
        yield Finding(WARNING, "clock", found, f"If this machine's clock is right: {MEND_CLOCK}")


def duplicate_copies(opened: Store) -> Iterator[Finding]:
    """Memories that repeat another one, among the newest; `scrubjay duplicates` checks all."""
    pairs = 0
    for memory, near in islice(beside(opened, EVERYTHING, now=utc_now()), LOOKED_AT):
        others = opened.get(list(near), EVERYTHING) if near else ()
        same_place = [one for one in others if one.space == memory.space and one.seq < memory.seq]
        pairs += any(same_said(memory.text, one.text) for one in same_place)
    if pairs:
        found = f"{pairs:,} of the newest {LOOKED_AT} memories repeat an older one."
        yield Finding(WARNING, "duplicates", found, "scrubjay duplicates")
    else:
        found = f"None among the newest {LOOKED_AT} memories that have vectors."
        yield Finding(OK, "duplicates", found, "All: scrubjay duplicates")


def archive_place(settings: Settings, opened: Store) -> Iterator[Finding]:
    """Whether the archive folder exists and is the one that the store knows."""
    folder, objects = archive_folder(settings), MarkedObjects(open_archive(settings), opened)
    in_store = archives_in_store(settings)
    if not in_store and not settings.store.startswith(SQLITE):
        found = f"{folder} must be the same for every server on this database."
        yield Finding(OK, "archive folder", found, "Or keep archives in the database: scrubjay archive --to database")
    for tier in ELSEWHERE:
        if in_store and not opened.archives.objects(tier, 1):
            continue
        try:
            objects.check(tier)
            if not objects.holds_most(tier):
                raise absent(objects.mark(tier))
        except Error as error:
            yield Finding(PROBLEM, "archive folder", f"{tier} in {folder}: {error.message}", error.hint or "")


def folders(settings: Settings, opened: Store) -> Iterator[Finding]:
    """Whether the folders that memories are files in are there."""
    waiting = opened.files.waiting()
    for name, store in open_registry(settings, Path.cwd()).stores().items():
        if not store.read_only and is_away(opened, name, Folder(store.path)):
            files = count_of(waiting.get(name, 0), "file waits", "files wait")
            do = f"Mount its disk; if it is gone for good: scrubjay folders reindex {name} --new-folder"
            yield Finding(WARNING, "folders", f"{store.path} of {name} is not there; {files} to be written.", do)


def archive(settings: Settings, opened: Store) -> Iterator[Finding]:
    """Whether every archived memory could be restored now."""
    damaged = list(engine_on(opened, None, archive=open_archive(settings)).cold_storage.damaged())
    for name, error in damaged[:5]:
        do = error.hint or "Restore the archive folder from its backup."
        yield Finding(PROBLEM, "archive", f"{name}: {error.message}", do)
    if len(damaged) > 5:
        yield Finding(PROBLEM, "archive", f"{len(damaged) - 5:,} more cannot be restored.", "See above.")
    if not damaged:
        yield Finding(OK, "archive", "Every archived memory can be restored.")


def further_vectors(opened: Store, settings: Settings) -> Iterator[Finding]:
    """How many memories each further model knows, if the store uses it."""
    kept, models = models_of(opened), further_models(settings)
    if kept and not models:
        yield missing_further_model(settings)
    for one in models:
        if not kept and not one.always:
            continue
        if lacking := opened.upkeep.count_lacking(one.embedder.fingerprint):
            found = f"{lacking:,} memories wait for the model for {one.purpose}."
            here = not find(one.embedder.name).wrong_files(settings.models)
            do = f"A running server does it; or: {REBUILD if here else f'{PULL}, then {REBUILD}'}"
            yield Finding(WARNING, one.purpose, found, do)
        else:
            yield Finding(OK, one.purpose, "All memories are found in about a hundred languages.")


def missing_further_model(settings: Settings) -> Finding:
    """What becomes of texts in other languages where the model for them is not used."""
    if settings.embedder == LANGUAGES:
        return Finding(OK, "other languages", f"{LANGUAGES} itself finds them: no further model is needed.")
    if settings.embedder in ENGLISH:
        found = "The store has texts in other languages; these settings find them by their words only."
        return Finding(WARNING, "other languages", found, "Unset SCRUBJAY_LANGUAGES.")
    found = f"The store has texts in other languages; {LANGUAGES} is not used beside the chosen model."
    return Finding(OK, "other languages", found, "If the chosen model knows English only: SCRUBJAY_LANGUAGES=on")


def fingerprint(opened: Store, ours: str) -> Iterator[Finding]:
    """Vectors of two models cannot be compared, so a store sticks to the first."""
    kept = opened.history.fact(OWN_MODEL)
    if kept is None:
        yield Finding(OK, "fingerprint", "The store has no vectors yet.")
    elif kept.startswith("becoming "):
        yield Finding(
            WARNING, "fingerprint", "Vectors are being rebuilt; searches use words only.", "Finish: scrubjay reembed"
        )
    elif kept == ours:
        yield Finding(OK, "fingerprint", "The store's vectors come from this model.")
    else:
        yield Finding(
            PROBLEM,
            "fingerprint",
            f"The store's vectors come from another model ({kept}); searches use words only.",
            "Set SCRUBJAY_EMBEDDER back, or switch to this model: scrubjay reembed",
        )
