"""`ambar paraview-plugin`: the plugin by which ParaView reads meshes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ambar.cli.common import Debug, console


def paraview_plugin(
    install: Annotated[
        bool, typer.Option("--install", help="Copy it to a folder, by default ~/.config/ambar.")
    ] = False,
    folder: Annotated[Path | None, typer.Option(help="The folder to copy it to.")] = None,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Tell where ParaView's plugin for meshes in ambar stores is, or install it.

    In ParaView: Tools > Manage Plugins > Load New, choose the file, tick Auto Load. In pvpython:
    LoadPlugin(file, remote=False, ns=globals()).

    The installed file knows where ambar is, so that ParaView need not have it; its Python must be
    of the same version, though, or newer.

    [bold]Examples[/bold]

    ambar paraview-plugin

    ambar paraview-plugin --install --folder ~/paraview-plugins
    """
    from ambar.mesh.viewers.paraview_install import install_plugin, plugin

    path = install_plugin(folder) if install or folder is not None else plugin()
    console.print(str(path), markup=False, soft_wrap=True)
