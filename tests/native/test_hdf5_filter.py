"""The HDF5 filter: h5py, netCDF4, HDF5's tools and programs in C write and read it; damage."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from ambar import hdf5
from tests.helpers.paths import PROGRAMS, ROOT

pytestmark = pytest.mark.skipif(
    not hdf5.is_available(), reason="no plugin beside the package: `make build` makes it"
)

WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wcast-qual", "-Wsign-conversion"]
FLOATS = ["<f4", ">f4", "<f8", ">f8"]
SHAPES = [(3000,), (50, 70), (20, 25, 30), (3, 12, 20, 14), (2, 3, 4, 10, 12)]
CHUNKS = [(1024,), (32, 32), (16, 16, 16), (2, 8, 16, 8), (1, 2, 4, 8, 8)]


def wave(shape: tuple[int, ...], dtype: str = "<f8") -> np.ndarray:
    """Return a smooth field."""
    places = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij")
    found = sum(np.sin(0.05 * (number + 1) * place) for number, place in enumerate(places))
    return np.asarray(found * 20 + 3).astype(dtype)


def run(*command: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program that finds the plugin; fails with what it says."""
    environment = os.environ | {"HDF5_PLUGIN_PATH": hdf5.PLUGIN_PATH} | variables
    done = subprocess.run(
        [str(part) for part in command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done


def tool(name: str) -> str:
    """Return a tool of HDF5's that need not be there."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}: apt-get install hdf5-tools")
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.h5"


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("shape", "chunks"), [*zip(SHAPES, CHUNKS, strict=True)])
def test_h5py_holds_the_bound(
    path: Path, dtype: str, shape: tuple[int, ...], chunks: tuple[int, ...]
) -> None:
    values = wave(shape, dtype)
    values.flat[[7, 100]] = np.nan, -np.inf
    with h5py.File(path, "w") as file:
        for name, bound in [("exact", None), ("bounded", 1e-2)]:
            file.create_dataset(name, data=values, chunks=chunks, **hdf5.filter(bound))
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["exact"][()], values)
        assert file["exact"].dtype == np.dtype(dtype)
        found = file["bounded"][()]
        assert file["bounded"].id.get_storage_size() < values.nbytes / 3
    finite = np.isfinite(values)
    np.testing.assert_array_equal(found[~finite], values[~finite])
    error = np.abs(found[finite].astype("f8") - values[finite].astype("f8")).max()
    assert 0 < error <= 1e-2


def test_a_part_is_read_and_written(path: Path) -> None:
    values = wave((60, 60, 60))
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset(
            "x", values.shape, chunks=(32, 32, 32), **hdf5.filter("1e-3"), dtype="f8"
        )
        for z in range(0, 60, 20):
            dataset[z : z + 20] = values[z : z + 20]
    with h5py.File(path) as file:
        np.testing.assert_allclose(file["x"][30:40, 5, ::7], values[30:40, 5, ::7], 0, 3e-3)


@pytest.mark.parametrize("dtype", ["i1", ">i4", "<u8", "f2", "c16", "S5", "i4,f8"])
def test_other_types_are_kept_without_loss(path: Path, dtype: str) -> None:
    values = (np.arange(6000) // 3 % 90).reshape(60, 100)
    if np.dtype(dtype).names:
        values = np.rec.fromarrays([values, values / 2], dtype=dtype)
    else:
        values = values.astype(dtype)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(50, 50), **hdf5.filter(0.5))
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["x"][()], values)
        assert file["x"].id.get_storage_size() < values.nbytes / 2


def test_last_chunks_are_not_padded(path: Path) -> None:
    """A chunk that reaches far beyond the dataset takes what its true part takes."""
    values = wave((40, 40, 40))
    sizes = {}
    with h5py.File(path, "w") as file:
        for chunk in (40, 100):
            dataset = file.create_dataset(
                str(chunk),
                data=values,
                chunks=(chunk,) * 3,
                maxshape=(None,) * 3,
                fillvalue=-5.0,
                **hdf5.filter(1e-3),
            )
            sizes[chunk] = dataset.id.get_storage_size()
    assert sizes[100] < sizes[40] + 64
    with h5py.File(path, "r+") as file:
        dataset = file["100"]
        before = dataset[()]
        dataset.resize((50, 45, 41))
        found = dataset[()]
        np.testing.assert_array_equal(found[:40, :40, :40], before)
        found[:40, :40, :40] = -5.0
        assert (found == -5.0).all()


def test_what_does_not_shrink_is_passed_through(path: Path) -> None:
    noise = np.frombuffer(np.random.default_rng(1).bytes(80_000), "f8")
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("x", data=noise, chunks=(5000,), **hdf5.filter())
        dataset.id.flush() if hasattr(dataset.id, "flush") else file.flush()
        assert dataset.id.get_storage_size() == noise.nbytes
        assert [dataset.id.get_chunk_info(n).filter_mask for n in range(2)] == [1, 1]
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["x"][()].view("u8"), noise.view("u8"))


def test_other_filters_follow(path: Path) -> None:
    values = wave((64, 64))
    with h5py.File(path, "w") as file:
        with pytest.raises(ValueError, match="must be the first one"):
            file.create_dataset("x", data=values, chunks=True, shuffle=True, **hdf5.filter(0.1))
        file.create_dataset("y", data=values, chunks=True, fletcher32=True, **hdf5.filter(0.1))
    with h5py.File(path) as file:
        assert np.abs(file["y"][()] - values).max() <= 0.1


def test_invalid_options_are_refused(path: Path) -> None:
    with h5py.File(path, "w") as file:
        for given in [(2, 0, 0, 0), (1,), (1, 7, 0, 0), (1, 1, 0, 0x7FF00000)]:
            with pytest.raises(ValueError, match="ambar"):
                file.create_dataset(
                    "x",
                    (10,),
                    "f8",
                    chunks=(5,),
                    compression=hdf5.FILTER_ID,
                    compression_opts=given,
                )


def test_bounds_are_those_of_the_rest_of_ambar() -> None:
    assert hdf5.options("1e-3") == hdf5.options(1e-3)
    assert hdf5.options(" 1e-2 of range ", value_range=(-10, 30)) == hdf5.options(0.4)
    assert hdf5.options("1e-2 of range", value_range=(5, 5)) == hdf5.options(0.0)
    huge = (-1.7e308, 1.7e308)
    assert hdf5.options("0.5 of range", value_range=huge) == hdf5.options(1.7e308)
    assert hdf5.options() == hdf5.options("1 of range", value_range=(5, 5)) == (1, 0, 0, 0)
    assert hdf5.options(1.0) == (1, 1, 0, 0x3FF00000)
    for wrong in ("", "-1", "x", "nan", "inf", "of range", "1e-3 of it", -1.0):
        with pytest.raises(ValueError, match="invalid error bound"):
            hdf5.filter(wrong)
    with pytest.raises(ValueError, match="value_range"):
        hdf5.filter("1e-3 of range")
    with pytest.raises(ValueError, match="expected a number"):
        hdf5.filter(True)


def test_what_to_do_without_the_plugin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hdf5, "_PLUGIN", tmp_path / "libh5z_ambar.so")
    assert not hdf5.is_available()
    with pytest.raises(ImportError, match=r"libh5z_ambar\.so .*make build"):
        hdf5.filter()


def chunk_of(path: Path, dtype: str = "f8") -> tuple[int, int]:
    """Write a file of one chunk; return where the chunk lies, and its size."""
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=wave((12, 10), dtype), chunks=(12, 10), **hdf5.filter(1e-2))
    with h5py.File(path) as file:
        info = file["x"].id.get_chunk_info(0)
        return info.byte_offset, info.size


def test_damage_is_an_error(path: Path) -> None:
    offset, size = chunk_of(path)
    content = path.read_bytes()
    for byte in range(size):
        damaged = bytearray(content)
        damaged[offset + byte] ^= 1 << byte % 8
        path.write_bytes(damaged)
        with h5py.File(path) as file, pytest.raises(OSError, match="filter returned failure"):
            file["x"][()]


def test_chunks_cut_short_and_of_other_datasets_are_errors(path: Path) -> None:
    offset, size = chunk_of(path)
    chunk = path.read_bytes()[offset : offset + size]
    with h5py.File(path, "w") as file:
        for length in range(1, size):
            dataset = file.create_dataset(str(length), (12, 10), "f8", chunks=True, **hdf5.filter())
            assert dataset.chunks == (12, 10)
            dataset.id.write_direct_chunk((0, 0), chunk[:length])
            with pytest.raises(OSError, match="filter returned failure"):
                dataset[()]
        dataset = file.create_dataset("other", (12, 11), "f8", chunks=(12, 11), **hdf5.filter())
        dataset.id.write_direct_chunk((0, 0), chunk)
        with pytest.raises(OSError, match="filter returned failure"):
            dataset[()]


def test_damage_is_named_where_hdf5_lets_filters_speak(path: Path) -> None:
    dump = tool("h5dump")
    offset, size = chunk_of(path)
    content = bytearray(path.read_bytes())
    content[offset + size // 2] ^= 1
    path.write_bytes(content)
    variables = os.environ | {"HDF5_PLUGIN_PATH": hdf5.PLUGIN_PATH}
    command: list[str | Path] = [dump, "--enable-error-stack", path]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    if "HDF5 (1.10" in done.stderr:
        assert "ambar: the checksum of the stream is 0x" in done.stderr


def test_netcdf4_reads_it(path: Path) -> None:
    pytest.importorskip("netCDF4")
    values = wave((40, 50), "f4")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(32, 32), **hdf5.filter(1e-2))
    code = """
import netCDF4, sys
netCDF4.Dataset(sys.argv[1])["x"][:].filled().dump(sys.argv[2])
"""
    run(sys.executable, "-c", code, path, path.with_suffix(".npy"))
    assert np.abs(np.load(path.with_suffix(".npy"), allow_pickle=True) - values).max() <= 1e-2


def test_two_libraries_in_one_process(path: Path) -> None:
    """h5py and netCDF4 bring an HDF5 each, whose identifiers are not the other's."""
    pytest.importorskip("netCDF4")
    code = """
import sys
import netCDF4, h5py, numpy
from ambar import hdf5
values = numpy.sin(numpy.arange(20000) * 0.01)
for turn in range(3):
    with h5py.File(f"{sys.argv[1]}{turn}", "w") as file:
        file.create_dataset("x", data=values, chunks=(5000,), **hdf5.filter(1e-3))
    with netCDF4.Dataset(f"{sys.argv[1]}{turn}n", "w") as file:
        file.createDimension("n", 20000)
        made = file.createVariable("x", ">f8", ("n",), chunksizes=(5000,), zlib=True)
        made[:] = values
    with netCDF4.Dataset(f"{sys.argv[1]}{turn}") as file:
        assert abs(file["x"][:] - values).max() <= 1e-3
        assert file["x"].shape == (20000,)
"""
    run(sys.executable, "-c", code, path)


def test_h5dump_and_h5repack(path: Path) -> None:
    dump, repack = tool("h5dump"), tool("h5repack")
    values = wave((40, 50))
    options = ",".join(map(str, hdf5.options(1e-2)))
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(32, 32))
        file.create_dataset("n", data=np.arange(4000).reshape(40, 100), chunks=(40, 50))
    packed, plain, text = (path.with_name(name) for name in ("packed", "plain", "text"))
    run(repack, "-f", f"UD={hdf5.FILTER_ID},1,4,{options}", path, packed)
    assert f"FILTER_ID {hdf5.FILTER_ID}" in run(dump, "-p", "-H", packed).stdout
    run(dump, "-d", "/x", "-b", "LE", "-o", text, packed)
    found = np.fromfile(text, "<f8").reshape(values.shape)
    assert 0 < np.abs(found - values).max() <= 1e-2
    run(repack, "-f", "NONE", packed, plain)
    code = "import h5py, sys; f = h5py.File(sys.argv[1]); print(f['x'].compression, f['x'][3, 4])"
    alone = run(sys.executable, "-c", code, plain, HDF5_PLUGIN_PATH="/nowhere").stdout.split()
    assert alone == ["None", str(found[3, 4])]
    with h5py.File(packed) as file:
        np.testing.assert_array_equal(file["n"][()], np.arange(4000).reshape(40, 100))
        assert int(next(iter(file["n"]._filters))) == hdf5.FILTER_ID


def test_a_bound_of_0_is_lossless_as_in_c() -> None:
    """C takes 0 as lossless; Python refused it."""
    for zero in (0, 0.0, "0", "lossless"):
        assert hdf5.options(zero) == hdf5.options(None)


def compiled(
    source: str, compiler: str, kind: str, folder: Path, links: tuple[str, ...] = ("-lhdf5",)
) -> Path:
    """Compile a program against a build of HDF5 of Debian's; skip the test without."""
    headers = Path("/usr/include/hdf5") / kind
    libraries = [*Path("/usr/lib").glob(f"*/hdf5/{kind}/libhdf5.so")]
    if shutil.which(compiler) is None or not headers.is_dir() or not libraries:
        pytest.skip(
            f"no {compiler} or no HDF5 ({kind}): apt-get install libhdf5-dev "
            "libhdf5-openmpi-dev openmpi-bin"
        )
    program = folder / Path(source).stem
    run(
        compiler,
        *("-O1", *WARNINGS, "-Werror", f"-I{ROOT / 'include'}", "-isystem", headers),
        *(PROGRAMS / "hdf5" / source, "-o", program),
        *(f"-L{libraries[0].parent}", *links, "-lm"),
    )
    return program


def test_a_serial_program(path: Path) -> None:
    program = compiled("serial.c", "gcc", "serial", path.parent)
    assert float(run(program, path).stdout.split()[0]) > 20
    with h5py.File(path) as file:
        assert np.isnan(file["wave"][3, 4, 5])
        assert abs(file["wave"][10, 20, 30] - (np.sin(1) * np.cos(1.4) + 0.3)) <= 1e-4


def set_filter(program: Path, *arguments: object, plugins: str = hdf5.PLUGIN_PATH) -> str:
    """Run set.c; return what HDF5's error stack says, nothing where the filter was set."""
    done = subprocess.run(
        [program, *map(str, arguments)],
        env=os.environ | {"HDF5_PLUGIN_PATH": plugins},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (3 if done.stdout else 0), done.stderr
    assert not done.stderr
    return done.stdout


def test_setting_the_filter_fails_where_it_could_not_be_used(path: Path) -> None:
    """HDF5 1.10 accepts a filter that it does not find, and refuses the dataset later."""
    program = compiled("set.c", "gcc", "serial", path.parent)
    assert not set_filter(program, "1e-3")
    assert not set_filter(program, "0")
    assert "set HDF5_PLUGIN_PATH to its folder" in set_filter(program, "0", plugins="/nowhere")
    assert "invalid error bound" in set_filter(program, "-1")
    assert "invalid error bound" in set_filter(program, "nan")
    for wrong in ("", "1e-3 of rnage", "12 bit", "2 relative", "x" * 60):
        assert f'ambar: invalid error bound: "{wrong}"; ' in set_filter(program, wrong)
    assert "a string of at most 104 bytes" in set_filter(program, "x" * 105)
    assert "pass value_range" in set_filter(program, "80 dB")


@pytest.mark.parametrize(
    "bound",
    [
        *("NULL", "0", "lossless", "1e-3", "1e-3 relative", "1e-3 relative above 1e-10"),
        *("12 bits", "0.01 rms", "1e-3 of range", "80 dB"),
    ],
)
def test_c_writes_the_options_that_python_does(path: Path, bound: str) -> None:
    program = compiled("set.c", "gcc", "serial", path.parent)
    assert not set_filter(program, bound, path, 1, 2)
    with h5py.File(path) as file:
        found = file["x"].id.get_create_plist().get_filter(0)[2]
        given = None if bound == "NULL" else bound
        assert found[:4] == hdf5.options(given, value_range=(1, 2))
        np.testing.assert_allclose(file["x"][()], 1 + np.arange(1000) / 999, rtol=0, atol=0.05)


def test_a_program_with_a_static_hdf5(path: Path) -> None:
    """The plugin finds no functions in a program that does not export them, and nothing said so."""
    static = ("-l:libhdf5.a", "-lcrypto", "-lcurl", "-lpthread", "-lsz", "-lz", "-ldl")
    program = compiled("set.c", "gcc", "serial", path.parent, static)
    assert "link with -rdynamic" in set_filter(program, "1e-3")
    program = compiled("serial.c", "gcc", "serial", path.parent, ("-rdynamic", *static))
    assert float(run(program, path).stdout.split()[0]) > 20


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_parallel_program(path: Path, ranks: int) -> None:
    program = compiled("parallel.c", "mpicc", "openmpi", path.parent)
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = ("mpirun", "--oversubscribe", "-n", ranks, program, path)
    lines = [line.split() for line in run(*command, **allowed).stdout.splitlines()]
    ratios = {name: float(ratio) for name, ratio in lines}
    assert ratios["wave"] > 100
    assert ratios["exact"] > 2
    assert 0.99 < ratios["noise"] <= 1.001
    with h5py.File(path) as file:
        length = 40_000 * ranks - (15_000 if ranks > 1 else 0)
        expected = np.sin(1e-3 * np.arange(length))
        np.testing.assert_array_equal(file["exact"][()], expected)
        assert np.abs(file["wave"][()] - expected).max() <= 1e-5
