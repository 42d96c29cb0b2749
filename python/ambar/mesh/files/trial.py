"""Trial reads in another process, of formats whose readers in VTK may end or block the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ambar import _core

UNSAFE = (".case", ".nek5000", ".nhdr", ".nrrd", ".png", ".pnm")
"""Suffixes of formats whose readers in VTK 9.7 crash, exit, or do not end on a truncated file."""
_SECONDS = 60.0
_BYTES_PER_SECOND = 1 << 20


def check_in_process(path: Path, size: int) -> None:
    """Read a file of `size` bytes in another process, and discard the meshes.

    Raises CorruptError if the process dies, reports a read error, or needs more than a minute, and
    a second for each MiB. Errors of Python are left to the caller, who reads the file again.
    """
    limit = _SECONDS + size / _BYTES_PER_SECOND
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        "from ambar.mesh.files.pyvista_readers import try_file; try_file(sys.argv[1])"
    )
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter and our own code
            [sys.executable, "-c", code, path],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        why = f"it does not end within {limit:.0f} s"
    else:
        lines = done.stderr.decode(errors="replace").splitlines()
        errors = [line.strip() for line in lines if "error" in line.lower()]
        if done.returncode == 0 and not errors:
            return
        why = errors[0] if errors else f"it ends the process with {done.returncode}"
    raise _core.CorruptError(
        f"{path}: expected a complete {path.suffix.lower()} file, but VTK's reader fails: "
        f"{why:.200}; restore it, and the files that it names, from a copy"
    )
