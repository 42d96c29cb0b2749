"""Forked children do what their parents did, and wait for none of their threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ambar
import plotfiles
from conftest import output

# The parent does it, its threads stay, and the child does it again. A child that waits for a thread
# it has not got is ended by the alarm.
FORK = """
import os, signal, sys
import numpy as np
import ambar, ambar.codecs

def act(path, out):
{act}

act(sys.argv[1], sys.argv[2] + ".parent")
child = os.fork()
if not child:
    signal.alarm(60)
    act(sys.argv[1], sys.argv[2] + ".child")
    os._exit(0)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
sys.exit(f"the child ended with {{code}}" if code else 0)
"""

ACTS = {
    "store": """
    store = ambar.open(path)
    store.core.array("/large").chunk_ranges()
    store["small"][:], store["large"][:], store["texts"][:], store["large"][5:7, 3]
    store.verify(), list(store), store.usage()
    """,
    "snapshot": """
    snapshot = ambar.open(path)
    repr(snapshot.amr), snapshot.amr.chunks_touched(ambar.Box((0.2,) * 3, (0.6,) * 3))
    snapshot.amr.cells(), snapshot.amr.cells(region=ambar.Box((0.2,) * 3, (0.6,) * 3))
    snapshot.amr.slice(snapshot.amr.fields[0]), snapshot.amr.project(snapshot.amr.fields[0])
    "particles" in snapshot.components and snapshot.particles.read()
    """,
    "ramses": """
    snapshot = ambar.read_ramses(path)
    snapshot.amr.cells(), snapshot.particles.read(), snapshot.amr.project("density")
    """,
    "plotfile": """
    snapshot = ambar.read_amrex(path)
    snapshot.amr.cells(), snapshot.amr.slice(snapshot.amr.fields[0])
    "particles" in snapshot.components and snapshot.particles.read()
    """,
    "convert": """
    ambar.convert(path, out, durability="none")
    """,
    "create": """
    with ambar.create(out, durability="none") as writer:
        values = np.random.default_rng(1).random((300, 3000))
        writer.array("x", values, profile="small")
        writer.array("y", values, error_bound=1e-3)
        writer.declare("z", "f8", (300, 3000), chunks=(100, 1000))
        writer.write_region("z", values[:200, :2000], (7, 8))
        writer.array("texts", np.array(["a", "b"] * 5000, dtype=object))
    """,
    "codec": """
    values = np.random.default_rng(1).random((100, 100, 100))
    ambar.codecs.decode(ambar.codecs.encode(values, 1e-3), values.dtype, values.shape)
    """,
    "collection": """
    with ambar.open_collection(path, "a") as collection:
        collection.add(f"new {os.getpid()}", {"v": np.arange(20.0)})
    collection = ambar.open_collection(path)
    collection.load("d1"), collection["d2"].v.values
    collection.read("v"), collection.read("v", isel={"dim_0": slice(2, 9)})
    collection.verify(), collection.stats("v"), collection.attribute_columns()
    """,
}


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory, stores: dict[str, Path]) -> dict[str, Path]:
    """What is read."""
    folder = tmp_path_factory.mktemp("fork")
    with ambar.create(folder / "store.ambar", durability="none") as writer:
        writer.array("small", np.arange(10))
        writer.array("large", np.random.default_rng(1).random((40, 50_000)), chunks=(4, 5000))
        writer.array("texts", np.array(["a", "b"] * 5000, dtype=object), chunks=(100,))
    plotfiles.write(folder / "plotfile")
    ambar.convert(folder / "plotfile", folder / "plotfile.ambar", durability="none")
    with ambar.Collection.create(folder / "collection.ambar") as collection:
        for number in range(20):
            collection.add(f"d{number}", {"v": np.arange(20.0)})
    return {
        "store": folder / "store.ambar",
        "plotfile": folder / "plotfile",
        "plotfile.ambar": folder / "plotfile.ambar",
        "collection": folder / "collection.ambar",
        "ramses": output("gravpart"),
        "ramses.ambar": stores["gravpart"],
    }


READ = [
    ("store", "store"),
    ("snapshot", "ramses.ambar"),
    ("snapshot", "plotfile.ambar"),
    ("ramses", "ramses"),
    ("plotfile", "plotfile"),
    ("convert", "ramses"),
    ("convert", "plotfile"),
    ("create", "store"),
    ("codec", "store"),
    ("collection", "collection"),
]


@pytest.mark.parametrize(("act", "path"), READ)
def test_a_forked_child_does_what_its_parent_did(
    act: str, path: str, paths: dict[str, Path], tmp_path: Path
) -> None:
    command = [sys.executable, "-c", FORK.format(act=ACTS[act]), paths[path], tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert not done.returncode, done.stderr
