"""`ambar log`, `ambar watch`, `ambar tag`, `ambar restore` and `ambar diff`."""

from __future__ import annotations

import dataclasses
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ambar._util.text import printable, size
from ambar.cli.options import COMMIT, Debug, Json, option
from ambar.cli.output import (
    LISTED,
    cell,
    console,
    errors,
    plain_table,
    print_json,
    show_result,
)

StorePath = Annotated[str, typer.Argument(help="A store in a single file.")]


def log(
    path: Annotated[str, typer.Argument(help="A store in a single file, or the URL of one.")],
    limit: Annotated[
        int | None, option("Number of commits to print.", "--limit", "-n", min=1)
    ] = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """List the commits of a store, the newest first, with times in local time.

    The columns "written" and "removed" count chunks and documents of the container. Long messages
    are cut to the width of the terminal; --json has them whole.

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
    for column in table.columns:
        column.no_wrap = column.header not in ("tags", "message")
    for commit in commits:
        table.add_row(
            str(commit.number),
            commit.time.astimezone().isoformat(" ", "seconds"),
            cell(", ".join(commit.tags)),
            Text(printable(commit.message), no_wrap=True, overflow="ellipsis"),
            f"{commit.written:,}",
            f"{commit.removed:,}",
            size(commit.bytes),
        )
    console.print(table)


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

    from ambar._core import NotFoundError
    from ambar.io.follow import follow
    from ambar.kinds.registry import locate
    from ambar.store.urls import is_url

    try:
        locate(path)
    except (FileNotFoundError, NotFoundError):
        if not is_url(path) and not Path(path).parent.exists():
            raise
        errors.print(f"{path} does not exist yet: waiting for it", markup=False, soft_wrap=True)
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
    name: Annotated[
        str | None, typer.Argument(help="The name; without it, the tags are listed.")
    ] = None,
    commit: Annotated[str | None, option(f"{COMMIT}; the last commit by default.")] = None,
    delete: Annotated[bool, option("Remove the name, not the commit.", "--delete")] = False,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Name a commit of a store, or list the names. `ambar compact` keeps commits that have a name.

    [bold]Examples[/bold]
    ambar tag run.ambar
    ambar tag run.ambar paper-v1
    ambar tag run.ambar before-fix --commit 3
    ambar tag run.ambar before-fix --delete
    """
    from ambar.store import history
    from ambar.store.commit import find_commit, open_core

    if delete and commit is not None:
        raise typer.BadParameter("--delete removes a name, whatever its commit; leave --commit out")
    if name is None:
        if delete or commit is not None:
            raise typer.BadParameter("give the name of the commit, too")
        _list_tags(history.tags(path), as_json=json)
        return
    if delete:
        history.untag(path, name)
        show_result(
            f"{path}: removed the tag {name}", {"path": str(path), "tag": name}, as_json=json
        )
        return
    history.tag(path, name, commit)
    number = find_commit(open_core(path), name)
    found = {"path": str(path), "tag": name, "commit": number}
    show_result(f"{path}: commit {number} is {name}", found, as_json=json)


def _list_tags(tags: dict[str, int], *, as_json: bool) -> None:
    if as_json:
        print_json(tags)
        return
    table = plain_table("tag", "commit")
    for name, number in tags.items():
        table.add_row(cell(name), str(number))
    console.print(table)


def restore(
    path: StorePath,
    commit: Annotated[str, typer.Argument(help=f"{COMMIT}.")],
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
    from_commit: Annotated[str | None, option(f"Of FIRST: {COMMIT}.", "--from")] = None,
    to_commit: Annotated[str | None, option(f"Of SECOND: {COMMIT}.", "--to")] = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """List the groups and arrays, or datasets, in which two stores or two commits of one differ.

    Arrays of meshes have the names that `ambar ls` prints. Checksums of chunks are compared;
    `ambar compare` compares values.

    [bold]Examples[/bold]
    ambar diff run.ambar --from 3
    ambar diff run.ambar --from paper-v1 --to 7
    ambar diff old.ambar new.ambar --json
    """
    from ambar.comparison import differences
    from ambar.store.locations import open_store

    if second is None and from_commit is None and to_commit is None:
        raise typer.BadParameter("give a second store, --from or --to")
    stores = [
        open_store(first, None, from_commit),
        open_store(first if second is None else second, None, to_commit),
    ]
    found = dataclasses.asdict(differences.diff(*stores))
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
