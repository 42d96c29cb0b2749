#!/usr/bin/env python3
"""Check the types of the Python code in the documentation, as `mypy --strict` does for users.

The blocks of a page are one program. Names that a page leaves to the reader have any type.

    python .ci/documentation.py
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = (ROOT / "docs/start", ROOT / "docs/howto")
PAGES = [ROOT / "README.md", *(page for folder in FOLDERS for page in sorted(folder.glob("*.md")))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONFIGURATION = """[mypy]
strict = true
allow_redefinition_new = true
local_partial_types = true
disable_error_code = has-type, name-defined, used-before-def
ignore_missing_imports = true

[mypy-dask.*,distributed.*,fsspec.*,h5py.*,polars.*,pyvista.*,virtualizarr.*,xarray.*,yt.*,zarr.*]
follow_imports = skip
"""
"""Only the types of ambar are checked, not those of other libraries."""


def program(page: str) -> str:
    """Return the Python code of a page, in the lines that it has there."""
    code = [""] * page.count("\n")
    for block in BLOCK.finditer(page):
        start = page[: block.start(1)].count("\n")
        lines = block[1].splitlines()
        code[start : start + len(lines)] = lines
    return "\n".join(code) + "\n"


def main() -> int:
    """Run mypy on all pages; return its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        programs = {}
        for page in PAGES:
            name = f"{page.parent.name}_{page.stem}_page.py".replace("-", "_").lower()
            path = Path(folder) / name
            path.write_text(program(page.read_text(encoding="utf-8")))
            programs[path.name] = page.relative_to(ROOT)
        configuration = Path(folder) / "mypy.ini"
        configuration.write_text(CONFIGURATION)
        command = [sys.executable, "-m", "mypy", "--config-file", configuration]
        command += [f"{folder}/{name}" for name in programs]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    shown = re.sub(r"^\S*/(\w+_page\.py)", lambda m: str(programs[m[1]]), done.stdout, flags=re.M)
    sys.stdout.write(shown)
    sys.stderr.write(done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
