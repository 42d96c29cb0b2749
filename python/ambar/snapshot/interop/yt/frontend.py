"""What ``yt.load`` finds by the entry point "yt.frontends": stores of outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yt.data_objects.static_output import Dataset

from ambar import _core
from ambar.kinds.registry import open_path
from ambar.snapshot.interop.yt.datasets import dataset_of
from ambar.snapshot.series import Series
from ambar.snapshot.snapshot import Snapshot
from ambar.store.commit import CommitName
from ambar.store.locations import is_store


class AmbarDataset(Dataset):  # type: ignore[misc] # yt has no types
    """A snapshot in a store, as ``yt.load`` opens it: a dataset of yt's class for the code.

    Parameters
    ----------
    filename
        The store: a file or a folder. For URLs, use `ambar.open_snapshot` and `Snapshot.to_yt`.
    output
        The number of the output, of a series.
    commit, storage_options
        As for `ambar.open`.
    options
        Options of yt's datasets: ``units_override``, ``unit_system``.

    Raises
    ------
    ValueError
        If the store is a series of several outputs, and `output` is not given.
    KeyError
        If the output does not exist.
    """

    def __new__(
        cls,
        filename: str,
        *,
        output: int | None = None,
        commit: CommitName | None = None,
        storage_options: Mapping[str, object] | None = None,
        **options: Any,
    ) -> Any:
        """Return a dataset of another class, by the code that wrote the snapshot."""
        _, found = open_path(filename, storage_options, commit)
        if isinstance(found, Series):
            if output is None and len(found) != 1:
                raise _core.InvalidError(
                    f"{filename}: expected one output, found {len(found)}; choose one with "
                    f"output=..., of {_shortened(found.outputs)}"
                )
            found = found[0] if output is None else found.output(output)
        elif output is not None:
            raise _core.InvalidError(
                f"{filename}: output={output} is for series of outputs, found one output"
            )
        return dataset_of(found, **options)

    @classmethod
    def _is_valid(
        cls,
        filename: str,
        *_args: object,
        commit: CommitName | None = None,
        storage_options: Mapping[str, object] | None = None,
        **_options: object,
    ) -> bool:
        # The errors of a damaged store say more than yt's about an unknown format.
        if not is_store(filename) and not str(filename).endswith(".ambar"):
            return False
        _, found = open_path(filename, storage_options, commit)
        return isinstance(found, (Snapshot, Series))


def _shortened(outputs: list[int]) -> str:
    shown = ", ".join(map(str, outputs[:8]))
    return f"{shown}, ... {outputs[-1]}" if len(outputs) > 8 else shown
