"""Export of tables to CSV files, and by PyArrow to Parquet files."""

from __future__ import annotations

import csv
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ambar import _core
from ambar._util.optional import require
from ambar.interop.vtk_arrays import values_of


def columns_of(table: Any) -> dict[str, np.ndarray]:
    """Return the columns of a vtkTable by name; components are columns named ``name:number``.

    Raises UnsupportedError if two columns have the same name.
    """
    columns: dict[str, np.ndarray] = {}
    data = table.GetRowData()
    for index in range(data.GetNumberOfArrays()):
        array = data.GetAbstractArray(index)
        name = array.GetName() or f"column_{index}"
        values = values_of(array, f"column {name!r}")
        parts = {name: values}
        if values.ndim == 2:
            parts = {f"{name}:{number}": part for number, part in enumerate(values.T)}
        if names := parts.keys() & columns.keys():
            raise _core.UnsupportedError(f"two columns are named {min(names)!r}: rename one")
        columns |= parts
    return columns


def _write_csv(columns: dict[str, np.ndarray], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        # Python writes float64, and NumPy float32, with as many digits as restore the value.
        strings = [
            column.astype(str).tolist() if column.dtype == np.float32 else column.tolist()
            for column in columns.values()
        ]
        writer.writerows(zip(*strings, strict=True))


def _write_parquet(columns: dict[str, np.ndarray], path: Path) -> None:
    pyarrow = require("pyarrow", purpose="writing Parquet", install="pyarrow")
    arrays = {name: np.ascontiguousarray(values) for name, values in columns.items()}
    import_module("pyarrow.parquet").write_table(pyarrow.table(arrays), path)


TABLE_WRITERS: dict[str, Callable[[dict[str, np.ndarray], Path], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
"""Functions that write columns to a file, by its suffix."""
