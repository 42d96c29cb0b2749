"""`ambar log`, `ambar watch`, `ambar tag`, `ambar restore` and `ambar diff`."""

from __future__ import annotations

import dataclasses
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from ambar._util.text import size
from ambar.cli.options import Debug, Json, option
from ambar.cli.output import LISTED, console, plain_table, print_json, show_result

StorePath = Annotated[Path, typer.Argument(help="A store in a single file.")]
_COMMIT = "A number, a tag, or 'before 2026-11-01'"


def log(
    path: Annotated[str, typer.Argument(help="A store in a single file, or the URL of one.")],
    limit: Annotated[
        int | None, option("Number of commits to print.", "--limit", "-n", min=1)
    ] = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """List the commits of a store, the newest first, with times in local time.

    The columns "written" and "removed" count chunks and documents of the container.

    [bold]Examples[/bold]
    ambar log run.ambar
    ambar log run.ambar --limit 5 --json
    """
    from ambar.store import history

    commits = history.log(path)[:limit]
    if json:
        found = [
            {**dataclasses.asdict(commit), "time": commit.time.isoformat()} for commit in commits
        ]
        print_json({"path": path, "commits": found})
        return
    table = plain_table("commit", "time", "tags", "message", "written", "removed", "size", left=4)
    for commit in commits:
        table.add_row(
            str(commit.number),
            commit.time.astimezone().isoformat(" ", "seconds"),
            escape(_printable(", ".join(commit.tags))),
            escape(_printable(commit.message)),
            f"{commit.written:,}",
            f"{commit.removed:,}",
            size(commit.bytes),
        )
    console.print(table)


def _printable(text: str) -> str:
    """Return the text with escapes in place of control characters, as those of terminals."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def watch(
    path: Annotated[str, typer.Argument(help="A store, or the URL of one; it need not exist yet.")],
    timeout: Annotated[
        float | None, option("Seconds without a commit after which it ends; never by default.")
    ] = None,
    interval: Annotated[float, option("Seconds after which the store is checked again.")] = 0.2,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Print the steps of a store as another process commits them. Ctrl-C ends it.

    With --json, each step is a line: the time when it was seen, its kind and its place.

    [bold]Examples[/bold]
    ambar watch run.ambar
    ambar watch run.ambar --timeout 600 --json
    """
    import json as json_lines

    from ambar.io.follow import follow

    for step in follow(path, interval=interval, timeout=timeout):
        now = datetime.now().astimezone()
        kind, _, text = repr(step).splitlines()[0].strip("<").replace(">", "", 1).partition(" ")
        kind = kind.removeprefix("ambar.")
        if json:
            line = {"seen": now.isoformat(), "kind": kind, "step": text}
            sys.stdout.write(json_lines.dumps(line) + "\n")
            sys.stdout.flush()
        else:
            shown = f"{now.isoformat(' ', 'seconds')}  {kind} {text}"
            console.print(shown, markup=False, soft_wrap=True)


def tag(
    path: StorePath,
    name: Annotated[str, typer.Argument(help="The name.")],
    commit: Annotated[str | None, option(f"{_COMMIT}; the last commit by default.")] = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Name a commit of a store. `ambar compact` keeps commits that have a name.

    [bold]Examples[/bold]
    ambar tag run.ambar paper-v1
    ambar tag run.ambar before-fix --commit 3
    """
    from ambar.store import history
    from ambar.store.commit import find_commit, open_core

    history.tag(path, name, commit)
    number = find_commit(open_core(path), name)
    found = {"path": str(path), "tag": name, "commit": number}
    show_result(f"{path}: commit {number} is {name}", found, as_json=json)


def restore(
    path: StorePath,
    commit: Annotated[str, typer.Argument(help=f"{_COMMIT}.")],
    message: Annotated[
        str | None, option("The message of the new commit.", "--message", "-m")
    ] = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Make an earlier commit the newest one. No values are copied; later commits remain in the log.

    [bold]Examples[/bold]
    ambar restore run.ambar 3
    ambar restore run.ambar "before 2026-11-01" --message "undo the resampling"
    """
    from ambar.store import history

    history.restore(path, commit, message=message)
    last = history.log(path)[0]
    found = {"path": str(path), "commit": last.number, "message": last.message}
    show_result(f"{path}: commit {last.number}: {last.message}", found, as_json=json)


def diff(
    first: Annotated[str, typer.Argument(help="A store, or the URL of one.")],
    second: Annotated[str | None, typer.Argument(help="Another store; FIRST by default.")] = None,
    from_commit: Annotated[str | None, option(f"Of FIRST: {_COMMIT}.", "--from")] = None,
    to_commit: Annotated[str | None, option(f"Of SECOND: {_COMMIT}.", "--to")] = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """List the groups and arrays in which two stores, or two commits of one, differ.

    Checksums of chunks are compared, and no values are read; `ambar compare` compares values.

    [bold]Examples[/bold]
    ambar diff run.ambar --from 3
    ambar diff run.ambar --from paper-v1 --to 7
    ambar diff old.ambar new.ambar --json
    """
    from ambar.store import history
    from ambar.store.locations import open_store

    if second is None and from_commit is None and to_commit is None:
        raise typer.BadParameter("give a second store, --from or --to")
    stores = [
        open_store(first, None, from_commit),
        open_store(first if second is None else second, None, to_commit),
    ]
    found = dataclasses.asdict(history.diff(*stores))
    if json:
        print_json(found)
        return
    for change, paths in found.items():
        for path in paths[:LISTED]:
            console.print(f"{change:<9} {path or '/'}", markup=False, soft_wrap=True)
        if len(paths) > LISTED:
            console.print(f"{change:<9} ... and {len(paths) - LISTED:,} more", markup=False)
    if not any(found.values()):
        console.print("no differences")
