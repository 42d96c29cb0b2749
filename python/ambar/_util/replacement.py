"""Replaces files and folders with an export, once the export is complete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ambar import _core
from ambar._util.scratch import check_folder_of


@contextmanager
def replaced(target: Path, source: Path) -> Iterator[Path]:
    """Yield a scratch path; at the end of the block, the files written there replace `target`.

    If the block raises, `target` stays unchanged.

    Raises
    ------
    ValueError
        If `source`, which the block reads, is at `target` or in it, or if `target` is a folder with
        other files than those of an export.
    """
    place = target.absolute()
    if source.absolute().resolve().is_relative_to(place.resolve()):
        raise _core.InvalidError(
            f'{target}: mode="w" would replace {source}, which is exported; choose another target'
        )
    _check(target)
    check_folder_of(target)
    with TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as folder:
        new, old = Path(folder, "new"), Path(folder, "old")
        new.mkdir()
        old.mkdir()
        yield new / place.name
        made = sorted(new.iterdir())
        for file in made:
            _check(place.parent / file.name)
        for file in made:
            _replace(place.parent / file.name, file, old / file.name)


def _replace(place: Path, new: Path, old: Path) -> None:
    if not place.is_dir() or place.is_symlink():
        new.replace(place)
        return
    place.rename(old)
    try:
        new.rename(place)
    except BaseException:
        old.rename(place)
        raise


def _check(place: Path) -> None:
    """Raise ValueError if `place` is a folder with other files than those of an export."""
    if place.is_dir() and not _core.is_plotfile(place) and not all(map(_is_export, _inside(place))):
        raise _core.InvalidError(
            f"{place} is a folder with other files than those of an export, which stay; "
            "remove it, or choose another target"
        )


def _inside(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def _is_export(path: Path) -> bool:
    """Return whether a path is a NetCDF file, Zarr store, mesh step, or a folder of only these."""
    if path.is_dir():
        return path.suffix == ".zarr" or all(map(_is_export, _inside(path)))
    return path.suffix == ".nc" or path.name.startswith("step_")
