"""`ambar verify`, `ambar compact`, `ambar repair` and `ambar references`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ambar._util.progress import progress_function
from ambar._util.text import plural, size
from ambar.cli.options import Commit, Debug, Json, Progress, Threads, option
from ambar.cli.output import show_result

StorePath = Annotated[str, typer.Argument(help="A store.")]

_NOTHING_REMOVED = (
    "nothing to remove: no killed writer has left an unfinished write. Damaged values cannot be "
    "repaired: `ambar verify` lists them; restore the store from a copy"
)


def verify(
    path: Annotated[str, typer.Argument(help="A store, or the URL of one.")],
    commit: Commit = None,
    threads: Threads = None,
    progress: Progress = True,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Check all checksums of a store, and the catalog of a collection.

    The records of all commits are checked, and the chunks of one commit: the last one, or that of
    --commit. Damage is listed, and the exit code is then 1. What a killed writer has left after the
    last commit is reported, but no damage.

    [bold]Examples[/bold]
    ambar verify run.ambar
    ambar verify run.ambar --json --threads 1
    ambar verify run.ambar --commit paper-v1
    """
    from ambar.collection.openers import collection_at
    from ambar.io.openers import open_store
    from ambar.store.cache import place_of

    store = open_store(path, commit=commit)
    checked = store.verify(threads=threads, progress=progress)
    if store._ambar_attributes().get("kind") == "collection":
        collection_at(place_of(path), store)._catalogue.verify()
    text = (
        f"{path}: no damage: checked {size(checked['bytes'])} in {checked['entries']:,} entries "
        f"and {plural(checked['chunks'], 'chunk')}"
    )
    if checked["unfinished"]:
        text += (
            f"\nunfinished write: {size(checked['unfinished'])} after the last commit, of a killed "
            "writer; the next writer or `ambar repair` removes them"
        )
    show_result(text, checked, as_json=json)


def compact(
    path: Annotated[str, typer.Argument(help="A store; the URL of one needs a target.")],
    target: Annotated[
        str | None, typer.Argument(help="A path or URL to copy the last commit to.")
    ] = None,
    overwrite: Annotated[bool, option("Replace an existing target.", "--overwrite")] = False,
    progress: Progress = True,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Rewrite a store without the dead bytes of replaced and removed arrays.

    With a target, the store remains, and its last commit is copied: a store of many objects, at a
    URL that ends with "/", becomes one object or file.

    [bold]Examples[/bold]
    ambar compact run.ambar
    ambar compact run.ambar --json
    ambar compact s3://bucket/run/ s3://bucket/run.ambar
    """
    from ambar.store import maintenance
    from ambar.store.locations import open_store
    from ambar.store.urls import is_url, refuse_url, without_secrets

    if target is None and overwrite:
        raise typer.BadParameter("--overwrite replaces a target; give one")
    if target is None:
        refuse_url(path, maintenance.TARGET_ADVICE)  # before the store is opened
    shown = without_secrets(path) if is_url(path) else path
    before = open_store(path).usage()["total"]
    with progress_function(progress, f"compacting {Path(shown).name}"):
        maintenance.compact(path, target, mode="w" if overwrite else "w-")
    after = open_store(path if target is None else target).usage()["total"]
    found = {"path": shown, "bytes_before": before, "bytes_after": after}
    show_result(f"{shown}: {size(before)} -> {size(after)}", found, as_json=json)


def repair(
    path: StorePath,
    progress: Progress = True,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Remove the remains of a killed writer, for other readers of ZIP files.

    ambar reads such a store without a repair; other readers of ZIP files do not. Damaged values
    cannot be repaired: `ambar verify` lists them.

    [bold]Examples[/bold]
    ambar repair run.ambar
    ambar repair run.ambar --json
    """
    from ambar.store import maintenance

    before = _size(path)
    with progress_function(progress, f"repairing {Path(path).name}"):
        maintenance.repair(path)
    removed = before - _size(path)
    found = {"path": path, "bytes_removed": removed}
    text = f"{path}: removed {size(removed)}" if removed else f"{path}: {_NOTHING_REMOVED}"
    show_result(text, found, as_json=json)


def _size(path: str) -> int:
    return Path(path).stat().st_size if Path(path).is_file() else 0


def references(
    path: Annotated[str, typer.Argument(help="A store, or the URL of one.")],
    url: Annotated[
        str, option("URL of the store for readers; PATH, made absolute, by default.")
    ] = "",
    group: Annotated[str, option("Limit the output to this group.")] = "",
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Print references to all chunks of a store, as kerchunk does: JSON for fsspec and others.

    [bold]Examples[/bold]
    ambar references run.ambar --url https://example.org/run.ambar > run.json
    """
    from ambar.store.chunk_references import references as find

    json.dump(find(path, url or None, group), sys.stdout)
    sys.stdout.write("\n")
