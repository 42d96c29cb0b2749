"""`ambar verify`, `compact` and `repair`: a store's health."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from ambar._util.text import size
from ambar.cli.common import Debug, Json, Progress, Threads, console, print_json

Place = Annotated[Path, typer.Argument(help="A store.")]


def verify(
    path: Annotated[str, typer.Argument(help="A store, or the URL of one.")],
    threads: Threads = None,
    progress: Progress = True,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Check every checksum of a store; exit code 1, and all damage named, where one differs.

    [bold]Examples[/bold]

    ambar verify run.ambar

    ambar verify run.ambar --json --threads 1
    """
    from ambar import _core
    from ambar._util.progress import bar
    from ambar.store.store import Store

    store = Store(_core.Store(path))
    with bar(f"verifying {Path(path).name}") if progress else nullcontext(None) as report:
        checked = store.verify(threads=threads, progress=report)
    if json:
        print_json(checked)
        return
    console.print(
        f"{path}: sound: {size(checked['bytes'])} in {checked['entries']:,} entries and "
        f"{checked['chunks']:,} chunks checked",
        markup=False,
        soft_wrap=True,
    )


def compact(
    path: Place,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Rewrite a store without the dead bytes that replaced and removed arrays left.

    [bold]Example[/bold]

    ambar compact run.ambar
    """
    from ambar import _core
    from ambar.store import maintenance
    from ambar.store.urls import refuse_url

    refuse_url(path)
    before = _core.Store(str(path)).usage
    old = _total(before())
    maintenance.compact(path)
    new = _total(_core.Store(str(path)).usage())
    console.print(f"{path}: {size(old)} -> {size(new)}", markup=False, soft_wrap=True)


def repair(
    path: Place,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Cut off what a killed writer left behind the last commit, so that any ZIP reader finds it.

    ambar itself reads such a store as it is; other readers of ZIP files need this first.

    [bold]Example[/bold]

    ambar repair run.ambar
    """
    from ambar.store import maintenance

    before = path.stat().st_size if path.is_file() else 0
    maintenance.repair(path)
    after = path.stat().st_size if path.is_file() else 0
    console.print(f"{path}: {size(before - after)} cut off", markup=False, soft_wrap=True)


def _total(usage: str) -> int:
    import json

    return int(json.loads(usage)["total"])
