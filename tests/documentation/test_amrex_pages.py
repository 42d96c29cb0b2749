"""The pages on plotfiles and on writing them in situ run as written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ambar
from tests.formats.test_amrex_checkpoint import write_checkpoint
from tests.formats.test_amrex_series import write_step
from tests.helpers.mpi_programs import Mpi, compiled, each_mpi
from tests.helpers.pages import BLOCK, blocks, read_page, run_ambar
from tests.helpers.paths import PROGRAMS, ROOT
from tests.helpers.sample_outputs import amrex_sample

pytest.importorskip("xarray")


def write_plotfiles(folder: Path) -> None:
    """Write a plotfile with particles, and the plotfiles of a run in another folder."""
    plotfile = shutil.copytree(amrex_sample("advection_plt00006"), folder / "one" / "plt00200")
    lines = (plotfile / "Header").read_text().split("\n")
    lines[2:4] = ["density", "Temp"]
    (plotfile / "Header").write_text("\n".join(lines))
    particles = (plotfile / "particles").rename(plotfile / "DM")
    header = (particles / "Header").read_text()
    (particles / "Header").write_text(header.replace("real_comp0", "mass"))
    for step in (0, 10):
        write_step(folder / "run", step)


def test_plotfiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = read_page("docs/howto/plotfiles")
    write_plotfiles(tmp_path)
    write_checkpoint(tmp_path / "chk00100")
    names: dict[str, object] = {"ambar": ambar}
    done = 0
    for section in page.split("\n## "):
        over_time = section.startswith("Plotfiles over time")
        monkeypatch.chdir(tmp_path / ("run" if over_time else "one"))
        if section.startswith("Checkpoints"):
            shutil.copytree(tmp_path / "chk00100", "chk00100")
        for language, text in BLOCK.findall(section):
            done += 1
            if language == "python":
                exec(text, names)  # noqa: S102 - the page's own
                continue
            for command in text.splitlines():
                if command == "ambar export chk.ambar chk00100":
                    shutil.rmtree("chk00100")
                # A comparison with a lossy store has the exit code 0 if its bounds hold.
                run_ambar(command)
    assert done == 8
    assert (tmp_path / "run" / "plotfiles" / "plt00010").is_dir()
    assert (tmp_path / "one" / "chk00100" / "Header").is_file()


PROGRAM = """{includes}
using namespace amrex;
template <class Particles>
void write (const std::string& name, int nlevels, const Vector<const MultiFab*>& mf,
            const Vector<std::string>& names, const Vector<Geometry>& geom, double time,
            const Vector<int>& steps, const Vector<IntVect>& ratios, Particles* tracers) {{
{body}
}}
"""


@each_mpi
@pytest.mark.parametrize(("page", "count"), [("howto/in-situ", 3), ("start/amrex", 1)])
def test_programs_in_situ_compile(mpi: Mpi, page: str, count: int, tmp_path: Path) -> None:
    programs = blocks(read_page(f"docs/{page}"), "cpp")
    assert len(programs) == count
    lines = "".join(programs).splitlines()
    includes = [line for line in lines if line.startswith("#include")]
    body = "\n".join(line for line in lines if line not in includes)
    source = tmp_path / "page.cpp"
    source.write_text(PROGRAM.format(includes="\n".join(includes), body=body))
    flags = ["-std=c++17", "-Wall", "-Wextra", "-fsyntax-only"]
    folders = [f"-I{ROOT / 'include'}", f"-I{PROGRAMS / 'amrex'}"]
    compiled([mpi.command("mpicxx"), *flags, *folders, source], tmp_path)
