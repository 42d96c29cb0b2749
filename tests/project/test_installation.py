"""What is installed with the package: the C library's places, and samples."""

from __future__ import annotations

import filecmp
import re
from pathlib import Path

import pytest

import ambar
import ambar.samples
from ambar import config
from ambar._util.text import size
from ambar.samples import SAMPLES
from tests.helpers.command_line import run
from tests.helpers.paths import EXAMPLES, RAMSES_CASES


def test_options_of_compilers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prefix = tmp_path / "a b"
    monkeypatch.setattr(config, "_NATIVE", prefix)
    monkeypatch.setattr(config, "_LIBRARY", prefix / "lib" / "libambar.so.0")
    with pytest.raises(FileNotFoundError, match="no C library; install a wheel"):
        ambar.get_library()
    assert config.main(["--cflags"]) == 1
    assert "a b/include does not exist" in capsys.readouterr().err
    (prefix / "include").mkdir(parents=True)
    (prefix / "lib").mkdir()
    (prefix / "lib" / "libambar.so.0").touch()
    assert ambar.get_include() == f"{prefix}/include"
    assert config.main(["--libs", "--cflags", "--prefix"]) == 0
    libs = f"-L'{prefix}/lib' -lambar -Wl,-rpath,'{prefix}/lib'"
    assert capsys.readouterr().out == f"{libs} -I'{prefix}/include' {prefix}\n"
    with pytest.raises(SystemExit):
        config.main([])
    assert "expected an option, found none; one of --cflags" in capsys.readouterr().err


def test_samples_are_copied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("netCDF4")
    code, printed, _ = run(capsys, "samples")
    assert code == 0
    for name, sample in SAMPLES.items():
        assert name in printed
        assert ambar.samples.copy(name, tmp_path) == tmp_path / sample.target
        with pytest.raises(FileExistsError):
            ambar.samples.copy(name, tmp_path)
        source = tmp_path / sample.target
        if stated := re.search(r"[\d.]+ [kM]B$", sample.description):
            files = [source] if source.is_file() else filter(Path.is_file, source.rglob("*"))
            assert stated[0] == size(sum(file.stat().st_size for file in files))
        if source.suffix != ".ambar":
            done = ambar.convert(source, tmp_path / f"{name}.ambar")
            assert not done.left_out
    code, printed, error = run(capsys, "samples", "amrexx", "--folder", tmp_path)
    assert code == 3
    assert "did you mean 'amrex'?" in error
    with pytest.raises(FileNotFoundError, match="nowhere"):
        ambar.samples.copy("ramses", tmp_path / "nowhere")


def test_samples_are_those_of_the_repository() -> None:
    """Test data and examples have the same files, which other tests check."""
    folder = Path(ambar.samples.__file__).parent
    plotfile = "laser_wake.ambar"
    assert filecmp.cmp(folder / plotfile, EXAMPLES / "data" / plotfile, shallow=False)
    series = [ambar.open_series(at / "implosion.ambar") for at in (folder, EXAMPLES / "data")]
    for one, other in zip(*series, strict=True):
        densities = [output.amr.read(["density"])["density"] for output in (one, other)]
        assert (densities[0] == densities[1]).all()
    compared = filecmp.dircmp(folder / "output_00002", RAMSES_CASES / "stars_3d" / "output_00002")
    assert compared.left_list == compared.right_list == sorted(compared.same_files)
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.suffix != ".pyc"]
    assert sum(sizes) < 5e5
