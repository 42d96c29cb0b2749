"""Whether VTK can draw on this machine."""

from __future__ import annotations

import functools
import subprocess
import sys

import pytest


@functools.cache
def can_render() -> bool:
    """Return whether VTK draws a picture, in a process of its own: without OpenGL it aborts."""
    code = "import pyvista; pyvista.Plotter(off_screen=True).screenshot(None)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    return done.returncode == 0


def skip_without_rendering() -> None:
    """Skip a test whose pictures VTK draws, where it cannot."""
    if not can_render():
        pytest.skip("VTK cannot render here: there is no OpenGL")
