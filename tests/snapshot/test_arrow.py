"""Tables go to pandas, polars, DuckDB and pyarrow through the Arrow PyCapsule interface."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import pytest

import ambar


@pytest.fixture
def table() -> ambar.Table:
    columns = {name: np.arange(1000).astype(name) for name in ("i1", "u2", "i4", "u8", "f4", "f8")}
    columns["flag"] = np.arange(1000) % 3 == 0
    columns["when"] = np.arange(1000).astype("M8[ns]")
    return ambar.Table(columns)


def test_pyarrow(table: ambar.Table) -> None:
    pa = pytest.importorskip("pyarrow")
    taken = pa.table(table)
    assert taken.column_names == table.columns
    for name in table:
        np.testing.assert_array_equal(taken[name].to_numpy(), table[name], err_msg=name)
    assert taken.schema.field("u2").type == pa.uint16()


@pytest.mark.parametrize(
    "convert", [np.asarray, np.array, np.mean, lambda table: table * np.ones(2)]
)
def test_numpy_converts_columns_not_names(convert: Callable[[ambar.Table], object]) -> None:
    table = ambar.Table({"density": np.ones(2)})
    with pytest.raises(TypeError, match=r"table\['density'\] or table.column\('density', unit\)"):
        convert(table)


def test_arrow_keeps_the_memory_alive_and_does_not_copy(table: ambar.Table) -> None:
    pa = pytest.importorskip("pyarrow")
    values = table["f8"]
    address = values.ctypes.data
    taken = pa.table(table)
    assert taken["f8"].chunk(0).buffers()[1].address == address
    del table, values
    gc.collect()
    np.testing.assert_array_equal(taken["f8"].to_numpy(), np.arange(1000.0))


def test_polars(table: ambar.Table) -> None:
    pl = pytest.importorskip("polars")
    for taken in (pl.DataFrame(table), table.to_polars()):
        assert taken.columns == table.columns
        for name in table:
            np.testing.assert_array_equal(taken[name].to_numpy(), table[name], err_msg=name)


def test_pandas(table: ambar.Table) -> None:
    pytest.importorskip("pandas")
    taken = table.to_pandas()
    assert list(taken.columns) == table.columns
    for name in table:
        np.testing.assert_array_equal(taken[name].to_numpy(), table[name], err_msg=name)


def test_duckdb(table: ambar.Table) -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("cells", table)
    (total,) = connection.execute("select sum(f8) from cells where i4 < 10").fetchone()
    assert total == sum(range(10))


def test_cells_and_particles(gravpart: ambar.Snapshot) -> None:
    pl = pytest.importorskip("polars")
    cells = gravpart.amr.read()
    frame = pl.DataFrame(cells)
    assert frame.height == len(gravpart.amr)
    np.testing.assert_array_equal(frame["density"].to_numpy(), cells["density"])
    rows = pl.DataFrame(gravpart.particles.read())
    assert rows["family"].dtype == pl.Int8


def test_strided_and_empty_columns() -> None:
    pl = pytest.importorskip("polars")
    table = ambar.Table({"a": np.arange(20)[::2], "b": np.ones(10, ">f4")})
    assert pl.DataFrame(table)["a"].to_list() == list(range(0, 20, 2))
    assert pl.DataFrame(table)["b"].to_list() == [1.0] * 10
    assert pl.DataFrame(ambar.Table({"a": np.empty(0)})).height == 0


def test_table_is_a_mapping(table: ambar.Table) -> None:
    assert list(table) == table.columns
    assert (len(table), len(table.keys()), [*dict(table)]) == (1000, 8, table.columns)
    assert "f8" in table
    assert "nothing" not in table
    assert table.nbytes == 1000 * (1 + 2 + 4 + 8 + 4 + 8 + 1 + 8)
    with pytest.raises(KeyError, match="no column 'nothing'"):
        table["nothing"]
    text = repr(table)
    assert "1,000 rows x 8 columns" in text
    assert "..." in text
    assert text.splitlines()[-1].split()[2] == "999"
    assert table.to_xarray()["f8"].dims == ("row",)


def test_columns_in_physical_units(gravpart: ambar.Snapshot) -> None:
    cells = gravpart.amr.read(["density", "x"])
    np.testing.assert_array_equal(cells.column("rho", "g/cm3"), cells["density"])
    with pytest.raises(ValueError, match="unit of density"):
        cells.column("density", "km/s")


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError):
        ambar.Table({"a": np.zeros(3), "b": np.zeros(4)})
