"""The path of ParaView's plugin, and its installation with the path of ambar."""

from __future__ import annotations

import os
from pathlib import Path

_UNKNOWN = 'AMBAR_PATH = ""\n'


def plugin() -> Path:
    """Return the path of the plugin."""
    return Path(__file__).with_name("paraview_plugin.py")


def install_plugin(folder: str | os.PathLike[str] | None = None) -> Path:
    """Copy the plugin to a folder, replacing an earlier copy; return the path of the copy.

    `folder` is by default ``~/.config/ambar`` (or in ``$XDG_CONFIG_HOME``). Raises OSError if it
    cannot be written to.
    """
    if folder is None:
        config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        folder = Path(config) / "ambar"
    here = Path(__file__).parents[3]
    target = Path(folder).expanduser() / "ambar_paraview.py"
    target.parent.mkdir(parents=True, exist_ok=True)
    text = plugin().read_text(encoding="utf-8")
    target.write_text(text.replace(_UNKNOWN, f"AMBAR_PATH = {os.fspath(here)!r}\n"), "utf-8")
    return target
