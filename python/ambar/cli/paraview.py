"""`ambar paraview-plugin`: the plugin by which ParaView reads meshes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from ambar.cli.options import Debug, Json, flag, option
from ambar.cli.output import show_result


def paraview_plugin(
    install: Annotated[
        bool, flag("--install", "Copy it to a folder, by default ~/.config/ambar.")
    ] = False,
    folder: Annotated[Path | None, option("The folder to copy it to.")] = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Print where ParaView's plugin for meshes in ambar stores is, or install it.

    In ParaView: Tools > Manage Plugins > Load New, choose the file, tick Auto Load. In pvpython:
    LoadPlugin(file, remote=False, ns=globals()).

    The installed file contains the path of ambar, so that ambar need not be installed in ParaView.
    ParaView's Python must have the same version, or a newer one.

    [bold]Examples[/bold]
    ambar paraview-plugin
    ambar paraview-plugin --install --folder ~/paraview-plugins
    """
    package = Path(__file__).parents[1]
    path = package / "mesh" / "viewers" / "paraview_plugin.py"
    if install or folder is not None:
        config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        target = (folder or Path(config) / "ambar").expanduser() / "ambar_paraview.py"
        target.parent.mkdir(parents=True, exist_ok=True)
        known = f"AMBAR_PATH = {os.fspath(package.parent)!r}\n"
        target.write_text(path.read_text("utf-8").replace('AMBAR_PATH = ""\n', known), "utf-8")
        path = target
    show_result(str(path), {"path": str(path)}, as_json=json)
