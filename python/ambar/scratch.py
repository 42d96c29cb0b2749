"""Files and folders that get their names only when they are complete, and replace nothing."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_NO_LINKS = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK)
"""What file systems without hard links answer to `os.link`."""


@contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """Make a folder with a random name in `parent`; at the end remove it with all that is in it.

    The process that made it knows its name and is the only one that writes there. It is in the file
    system of `parent`, so that `publish` can rename.
    """
    with TemporaryDirectory(prefix=".ambar-", dir=parent) as folder:
        yield Path(folder)


def publish(made: Path, target: Path) -> None:
    """Rename a complete file or folder, without ever replacing what has the name.

    Raises
    ------
    FileExistsError
        If there is something at `target`.
    """
    try:
        if made.is_dir():
            # A rename replaces an empty folder: this one, and no one else's.
            target.mkdir()
            _rename(made, target, target.rmdir)
        else:
            _publish_file(made, target)
    except FileExistsError:
        raise already_there(target) from None


def publish_all(folder: Path, parent: Path, last: str) -> None:
    """Publish all that is in `folder` to `parent`, what is named `last` at the end; or nothing.

    Raises FileExistsError if something has one of the names.
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


def already_there(target: Path) -> FileExistsError:
    """Return the error for a name that is taken."""
    what = "there is something of that name; remove it, or choose another name"
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
    """Rename over an empty placeholder of our own, which goes away if that fails."""
    try:
        made.replace(placeholder)
    except BaseException:
        remove()
        raise
