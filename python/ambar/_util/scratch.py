"""Scratch folders; publishes complete files and folders without replacing existing ones."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

_NO_LINKS = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK)
"""Error numbers of `os.link` where the file system has no hard links, or no more of them."""

_NO_FOLDER = "the folder to write to does not exist; create it first"


@contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """Make a folder with a random name in `parent`; remove it and its content at the end.

    Only the process that made the folder knows its name and writes to it. The folder is in the file
    system of `parent`, so that `publish` can rename files. Raises FileNotFoundError without it.
    """
    if not parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, _NO_FOLDER, os.fspath(parent))
    with TemporaryDirectory(prefix=".ambar-", dir=parent) as folder:
        yield Path(folder)


@contextmanager
def target_folder(folder: Path) -> Iterator[None]:
    """Make a folder and its parents, unless they exist; remove the empty ones after an error."""
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        inside = [Path(place, name) for place, names, _ in os.walk(folder) for name in names]
        for place in [*reversed(inside), *made]:
            with suppress(OSError):  # it is not empty
                place.rmdir()
        raise


def publish(made: Path, target: Path) -> None:
    """Rename a complete file or folder to `target`, and never replace anything.

    Raises
    ------
    FileExistsError
        If `target` exists.
    """
    try:
        if made.is_dir():
            # A rename replaces an empty folder: make one first, which belongs to this process.
            target.mkdir()
            _rename(made, target, target.rmdir)
        else:
            _publish_file(made, target)
    except FileExistsError:
        raise target_exists(target) from None


def publish_all(folder: Path, parent: Path, last: str) -> None:
    """Publish everything in `folder` to `parent`, the item named `last` at the end; or nothing.

    Raises FileExistsError if one of the names exists in `parent`.
    """
    published: list[Path] = []
    try:
        for made in sorted(folder.iterdir(), key=lambda path: (path.name == last, path.name)):
            publish(made, parent / made.name)
            published.append(parent / made.name)
    except BaseException:
        for path in published:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        raise


def check_folder_of(target: Path) -> None:
    """Raise FileNotFoundError if the folder that `target` is to be written to does not exist."""
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, _NO_FOLDER, os.fspath(target))


def target_exists(target: Path) -> FileExistsError:
    """Return the error for a target that exists."""
    what = 'the target already exists; choose another name, or replace it with mode="w"'
    return FileExistsError(errno.EEXIST, what, os.fspath(target))


def _publish_file(made: Path, target: Path) -> None:
    try:
        # Unlike a rename, a link never replaces a file.
        target.hardlink_to(made)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    else:
        made.unlink()
        return
    target.touch(exist_ok=False)
    _rename(made, target, target.unlink)


def _rename(made: Path, placeholder: Path, remove: Callable[[], None]) -> None:
    """Rename `made` over an empty placeholder; remove the placeholder if this fails."""
    try:
        made.replace(placeholder)
    except BaseException:
        remove()
        raise
