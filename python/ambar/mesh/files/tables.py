"""Export of tables to CSV files, and by PyArrow to Parquet files."""

from __future__ import annotations

import csv
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


def write_table(table: Any, path: Path) -> None:
    """Write a vtkTable to `path`, in the format of its suffix.

    Raises UnsupportedError if the suffix is of another format.
    """
    suffix, columns = path.suffix.lower(), columns_of(table)
    if suffix == ".parquet":
        pyarrow = require("pyarrow", purpose="writing Parquet", install="pyarrow")
        arrays = {name: np.ascontiguousarray(values) for name, values in columns.items()}
        import_module("pyarrow.parquet").write_table(pyarrow.table(arrays), path)
        return
    if suffix != ".csv":
        raise _core.UnsupportedError(
            f"{path.name}: expected the suffix .csv or .parquet for a table, found "
            f"{suffix or 'none'}"
        )
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        # Python writes float64, and NumPy float32, with as many digits as restore the value.
        strings = [
            column.astype(str).tolist() if column.dtype == np.float32 else column.tolist()
            for column in columns.values()
        ]
        writer.writerows(zip(*strings, strict=True))
