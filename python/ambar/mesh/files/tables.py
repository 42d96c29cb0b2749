"""Tables as files: CSV, and Parquet by PyArrow."""

from __future__ import annotations

import csv
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ambar import _core
from ambar.interop.vtk_arrays import values_of


def columns_of(table: Any) -> dict[str, np.ndarray]:
    """Return the columns of a vtkTable by name; each component is one, called ``name:number``.

    Raises UnsupportedError if two columns have the same name.
    """
    found: dict[str, np.ndarray] = {}
    data = table.GetRowData()
    for index in range(data.GetNumberOfArrays()):
        array = data.GetAbstractArray(index)
        name = array.GetName() or f"column_{index}"
        values = values_of(array, f"column {name!r}")
        parts = {name: values}
        if values.ndim == 2:
            parts = {f"{name}:{number}": part for number, part in enumerate(values.T)}
        for full, part in parts.items():
            if full in found:
                raise _core.UnsupportedError(f"two columns are named {full!r}: rename one")
            found[full] = part
    return found


def _write_csv(columns: dict[str, np.ndarray], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        # Python writes as many digits of a float64 as make it the same again, NumPy of a float32.
        texts = [
            column.astype(str).tolist() if column.dtype == np.float32 else column.tolist()
            for column in columns.values()
        ]
        writer.writerows(zip(*texts, strict=True))


def _write_parquet(columns: dict[str, np.ndarray], path: Path) -> None:
    if find_spec("pyarrow") is None:
        raise _core.UnsupportedError(f"{path.name}: Parquet is written by PyArrow: install pyarrow")
    pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    arrays = {name: pyarrow.array(np.ascontiguousarray(v)) for name, v in columns.items()}
    parquet.write_table(pyarrow.table(arrays), path)


TABLE_WRITERS: dict[str, Callable[[dict[str, np.ndarray], Path], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
"""Functions that write columns to a file, by its suffix."""
