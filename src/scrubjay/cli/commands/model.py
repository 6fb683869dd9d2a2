"""`scrubjay model`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from scrubjay.cli.command import Family
from scrubjay.cli.failures import FAILED
from scrubjay.cli.output import note, print_json, print_table, show_table
from scrubjay.cli.progress import progress
from scrubjay.cli.session import CommandSession
from scrubjay.embedders.catalogue import CATALOGUE, find
from scrubjay.embedders.download import pull as fetch
from scrubjay.embedders.download import verify
from scrubjay.embedders.lending import lenders_of
from scrubjay.errors import EmbeddingError
from scrubjay.wiring import further_models

if TYPE_CHECKING:
    from scrubjay.embedders.catalogue import Model
    from scrubjay.settings import Settings

WITHOUT_FILES = {
    "none": "No embedding model is configured.",
    "hashing": "The hashing embedder needs no files.",
    "remote": "The configured model runs on another server; it needs no files here.",
}


@click.group(
    cls=Family,
    without=("--space",),
    examples="""
    scrubjay model pull
    scrubjay model list
    scrubjay model check
    scrubjay model status
    """,
)
def model() -> None:
    """Download, list or check embedding models.

    A model finds memories by meaning. Without one, memories are still stored and found by words.
    SCRUBJAY_EMBEDDER chooses it.
    """


@model.command(
    examples="""
    scrubjay model pull
    scrubjay model pull --from ~/Downloads/arctic-embed-s
    """
)
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE_OR_FOLDER",
    help="Take the files from here instead of the network: a folder, an .onnx file next to its vocab.txt, a zip.",
)
@click.option("--quiet", is_flag=True, help="Print nothing unless it fails.")
@click.pass_obj
def pull(session: CommandSession, source: Path | None, quiet: bool) -> None:
    """Download the configured model and the one for other languages.

    Verifies their hashes. Does nothing if they are already installed.
    """
    settings = session.settings()
    if settings.embedder in WITHOUT_FILES:
        if not quiet:
            note(WITHOUT_FILES[settings.embedder], session)
        return

    chosen = find(settings.embedder)
    told = {"model": chosen.name, "folder": str(_pull(chosen, source, quiet=quiet, session=session))}
    told["fingerprint"] = chosen.fingerprint
    for name in () if source is not None else list_further(settings):
        try:
            told["languages"] = str(_pull(find(name), None, quiet=quiet, session=session))
        except EmbeddingError as error:  # everything else works without it
            note(f"{name}: {error.message} Other languages are found by their words until it is here.", session)
    if session.as_json:
        print_json(told)


def list_further(settings: Settings) -> list[str]:
    """The names of the models that these settings may use beside the chosen one."""
    return [one.embedder.name for one in further_models(settings)]


def _pull(chosen: Model, source: Path | None, *, quiet: bool, session: CommandSession) -> Path:
    # The model's file is nearly the whole download; the small vocabulary file would only make the bar jump.
    with progress(f"Fetching {chosen.name}", shown=not (quiet or session.as_json), in_bytes=True) as report:
        place = fetch(
            chosen,
            session.settings().models,
            source=source,
            progress=lambda file, done, total: report(done, total) if file == chosen.network else None,
        )
    if not (session.as_json or quiet):
        note(f"{chosen.name} is installed: {place}", session)
    return place


@model.command("list", examples="scrubjay model list")
@click.pass_obj
def list_models(session: CommandSession) -> None:
    """List the known models, and which are installed."""
    settings = session.settings()
    models = list(CATALOGUE.values())
    if settings.embedder not in CATALOGUE and settings.embedder not in WITHOUT_FILES:
        models.append(find(settings.embedder))
    shown = [
        {
            "name": one.name,
            "used": one.name in (settings.embedder, *list_further(settings)) or one.location is not None,
            "here": not one.wrong_files(settings.models),
            "dimension": one.dimension,
            "window": one.window,
            "licence": one.licence,
        }
        for one in models
    ]
    words = {True: "yes", False: "no"}
    rows = [[words[one] if isinstance(one, bool) else str(one) for one in model.values()] for model in shown]
    show_table(shown, ("model", "used", "here", "dimension", "tokens", "licence"), rows, session)
    if settings.embedder in WITHOUT_FILES:
        note(WITHOUT_FILES[settings.embedder], session)


@model.command(examples="scrubjay model check")
@click.pass_context
def check(ctx: click.Context) -> None:
    """Compare the configured model's files with their hashes; exit code 1 if they do not match."""
    session: CommandSession = ctx.obj
    settings = session.settings()
    name, wrong = settings.embedder, []
    if name not in WITHOUT_FILES:
        wrong = verify(find(name), settings.models)
    if session.as_json:
        print_json({"model": name, "ok": not wrong, "problems": wrong})
    elif wrong:
        print_table(("problem",), [(sentence,) for sentence in wrong])
        note("Run: scrubjay model pull", session)
    else:
        note(WITHOUT_FILES.get(name, f"{name} is installed and intact."), session)
    if wrong:
        ctx.exit(FAILED)


@model.command(examples="scrubjay model status")
@click.pass_obj
def status(session: CommandSession) -> None:
    """List the processes that have a model loaded and lend it to your others.

    The first process that needs a model loads and lends it; none is started for that. Askers and texts are of the last
    minute.
    """
    settings = session.settings()
    found = lenders_of(settings.home)
    rows = [
        (str(one.process), one.client, one.model, one.since, str(one.askers), f"{one.texts_per_second:.2f}")
        for one in found
    ]
    show_table(found, ("process", "client", "model", "since", "askers", "texts/s"), rows, session)
    if not settings.lend_model:
        note("Lending is off (SCRUBJAY_LEND_MODEL).", session)
    elif not found:
        note("No process has a model loaded just now.", session)
