"""Output files: published when they are complete, with free space checked and errors explained."""

from __future__ import annotations

import errno
import io
import mmap
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ambar import _core

_EXISTS = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
"""Error numbers of moving a file or folder to a name that is not free."""
_MOUNTED = (errno.EBUSY,)
"""Error numbers of moving a file or folder to a mount point."""
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)
"""Error numbers of creating a file in a folder that is not writable."""
_NO_LINKS = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK)
"""Error numbers of making a hard link where the file system has none, or no more of them."""


@contextmanager
def published(target: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield a scratch path; at the end of the block, move the file or folder there to `target`.

    Other files beside the scratch path, such as a folder of pieces, are moved to the folder of
    `target` before. If the block raises, `target` stays unchanged. Without `replace`, only an empty
    folder is replaced. Errors of the file system name `target` in place of the scratch path.

    Raises
    ------
    FileNotFoundError
        If the folder of `target` does not exist.
    FileExistsError
        If `target` exists, without `replace`.
    ValueError
        If `target` is a folder with files that the block did not make again, or a mount point. A
        whole plotfile, checkpoint or openPMD folder is replaced by any other.
    """
    check_folder_of(target)
    _check(target, replace=replace)
    place = target.absolute()
    if place.is_mount():
        raise _mount_point(target)
    with _scratch_beside(target) as scratch:
        new, old = Path(scratch, "new"), Path(scratch, "old")
        new.mkdir()
        old.mkdir()
        try:
            yield new / place.name
        except OSError as error:
            if error.errno == errno.ENOSPC or str(error.filename).startswith(scratch):
                raise write_error(error, target) from error
            raise
        made = sorted(new.iterdir(), key=lambda path: (path.name == place.name, path.name))
        for file in made:
            _check(place.parent / file.name, replace=replace)
            if replace:
                _check_others(place.parent / file.name, file)
        move = _replace if replace else _move
        for file in made:
            try:
                move(file, place.parent / file.name, old / file.name)
            except OSError as error:
                if error.errno in _MOUNTED:
                    raise _mount_point(target) from error
                raise


def _scratch_beside(target: Path) -> TemporaryDirectory[str]:
    folder = target.absolute().parent
    try:
        return TemporaryDirectory(prefix=".ambar-", dir=folder)
    except OSError as error:
        if error.errno not in _NOT_WRITABLE:
            raise
        raise _not_writable(error, folder) from error


def _not_writable(error: OSError, folder: Path) -> OSError:
    what = "expected a writable folder; change its permissions, or choose another folder"
    return OSError(error.errno, what, os.fspath(folder))


def _mount_point(target: Path) -> _core.InvalidError:
    return _core.InvalidError(
        f"{target} is a mount point, which an export cannot replace; choose a new name in it, such "
        f"as {target / 'export'}"
    )


def check_folder_of(target: Path) -> None:
    """Raise FileNotFoundError if the folder that `target` is to be written to does not exist."""
    if not target.absolute().parent.is_dir():
        what = "the folder to write to does not exist; create it first"
        raise FileNotFoundError(errno.ENOENT, what, os.fspath(target))


def refuse_source(
    sources: Iterable[str | os.PathLike[str]], target: str | os.PathLike[str]
) -> None:
    """Raise ValueError if `target` is one of the sources, or in the folder of one."""
    place = Path(target).resolve()
    for source in sources:
        if place.is_relative_to(Path(source).resolve()):
            raise _core.InvalidError(
                f"{os.fspath(target)}: expected another path than that of the source "
                f"{os.fspath(source)}; choose another target"
            )


def target_exists(target: str | os.PathLike[str]) -> FileExistsError:
    """Return the error for a target that exists."""
    what = 'the target already exists; choose another name, or replace it with mode="w"'
    return FileExistsError(errno.EEXIST, what, os.fspath(target))


def _move(made: Path, target: Path, _: Path) -> None:
    """Move a file or folder to `target`, which another program may have created meanwhile."""
    try:
        if made.is_dir():
            made.rename(target)  # which may be an empty folder
            return
        if target.is_dir():
            target.rmdir()
        try:
            target.hardlink_to(made)  # a link, unlike a rename, never replaces a file
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            target.touch(exist_ok=False)
            made.replace(target)
    except OSError as error:
        if error.errno in _EXISTS:
            raise target_exists(target) from None
        raise


def _replace(made: Path, target: Path, old: Path) -> None:
    """Move a file or folder to `target`, whose earlier content is in `old` for a moment."""
    if not target.is_dir() or target.is_symlink():
        made.replace(target)
        return
    target.rename(old)
    try:
        made.rename(target)
    except BaseException:
        old.rename(target)
        raise


def _check(place: Path, *, replace: bool) -> None:
    """Raise an error if `place` exists and must not be replaced."""
    is_folder = place.is_dir()
    if not replace:
        is_empty = is_folder and next(place.iterdir(), None) is None
        if os.path.lexists(place) and not is_empty:
            raise target_exists(place)
    elif is_folder and not _is_export(place):
        raise _core.InvalidError(
            f"{place} is a folder with other files than those of an export, which stay; "
            "remove it, or choose another target"
        )


def _check_others(place: Path, made: Path) -> None:
    """Raise an error if the folder `place` has files that are not in the folder `made`."""
    if not place.is_dir() or _is_whole(place):
        return
    others = sorted(_files(place) - _files(made))
    if others:
        more = f" and {len(others) - 1:,} more" if others[1:] else ""
        raise _core.InvalidError(
            f"{place}: expected only files that this export writes again, found {others[0]}{more}; "
            "remove the folder, or choose another target"
        )


def _files(folder: Path) -> set[Path]:
    """Return the paths of the files and whole outputs in a folder, relative to it."""
    files = set()
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir() and not _is_whole(path):
            files |= {path.name / file for file in _files(path)}
        else:
            files.add(Path(path.name))
    return files


def _is_whole(folder: Path) -> bool:
    """Return whether a folder is one output: a Zarr store, or one of ADIOS2 or AMReX."""
    return folder.suffix == ".zarr" or _is_bp(folder) or _is_of_amrex(folder)


def _is_export(path: Path) -> bool:
    """Return whether a path is a file of an export, or a folder of only these.

    That is a NetCDF file, an openPMD file, a Zarr store, a folder of ADIOS2, a plotfile or
    checkpoint of AMReX, a mesh step, or a frame of a movie.
    """
    if path.is_dir():
        return _is_whole(path) or all(map(_is_export, path.iterdir()))
    if path.suffix == ".h5" and path.stat().st_size:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return data.find(b"openPMD") >= 0  # an attribute of the root, anywhere in the file
    return path.suffix == ".nc" or path.name.startswith(("step_", "frame_"))


def _is_bp(folder: Path) -> bool:
    return (folder / "md.idx").is_file()


def _is_of_amrex(path: Path) -> bool:
    return _core.is_plotfile(path) or has_multifabs(path)


def has_multifabs(path: Path) -> bool:
    """Return whether a folder has a header and MultiFabs, as plotfiles and checkpoints of AMReX."""
    return any(path.glob("*Header")) and any(path.glob("Level_0/*_H"))


_ADVICE = "free some, or choose another disk"


def check_free_space(needed: int, place: Path) -> None:
    """Raise OSError (ENOSPC) if the disk of the file `place` has fewer than `needed` free bytes."""
    folder = next(parent for parent in place.absolute().parents if parent.is_dir())
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(
            errno.ENOSPC,
            f"expected {needed:,} bytes of free space for the export, found {free:,}; {_ADVICE}",
            os.fspath(place),
        )


def write_error(error: OSError, place: Path) -> OSError:
    """Return an error of writing a file with the path that the user gave, and advice."""
    what = error.strerror or str(error)
    if error.errno == errno.ENOSPC and _ADVICE not in what:
        what = f"no space left on the disk; {_ADVICE}"
    return OSError(error.errno or errno.EIO, what, os.fspath(place))


@contextmanager
def name_target_on_full_disk(target: Any) -> Iterator[None]:
    """Name `target`, if it is a path, in errors of a full disk."""
    try:
        yield
    except OSError as error:
        if not isinstance(target, str | os.PathLike):
            raise
        place = Path(target)
        if error.errno == errno.ENOSPC and _ADVICE not in str(error):
            raise write_error(error, place) from error
        raise


class _Output(io.FileIO):
    """A file whose writes never fail: they do nothing after the first error.

    libhdf5 keeps what it could not write, tries again at the end of the program, and crashes.
    """

    error: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Write all bytes."""
        rest = memoryview(data)
        try:
            while self.error is None and rest:
                rest = rest[super().write(rest) :]
        except OSError as error:
            self.error = error
        return len(data)

    def truncate(self, size: int | None = None, /) -> int:
        """Set the size of the file."""
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size or 0


@contextmanager
def hdf5_file(h5py: Any, path: Path, **options: Any) -> Iterator[Any]:
    """Yield a new file of h5py at `path`.

    Parameters
    ----------
    h5py
        The module.
    path
        The file to write.
    **options
        Options of ``h5py.File``.

    Raises
    ------
    OSError
        If the file system reports an error.
    """
    with _Output(path, "w+b") as output:
        try:
            with h5py.File(output, "w", **options) as file:
                yield file
        except Exception:
            # Another error may follow from values that are not in the file.
            if output.error is None:
                raise
        if output.error is not None:
            raise write_error(output.error, path) from output.error
