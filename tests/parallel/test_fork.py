"""Forked children do what their parents did, and wait for none of their threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ambar
from tests.helpers import plotfiles
from tests.helpers.sample_outputs import output

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
    store._core.array("/large").chunk_ranges()
    store["small"][:], store["large"][:], store["words"][:], store["large"][5:7, 3]
    store.verify(), list(store), store.usage()
    """,
    "snapshot": """
    snapshot = ambar.open(path)
    repr(snapshot.amr), snapshot.amr.chunks_touched(region=ambar.Box((0.2,) * 3, (0.6,) * 3))
    snapshot.amr.read(), snapshot.amr.read(region=ambar.Box((0.2,) * 3, (0.6,) * 3))
    snapshot.amr.slice(snapshot.amr.fields[0]), snapshot.amr.project(snapshot.amr.fields[0])
    "particles" in snapshot.components and snapshot.particles.read()
    """,
    "ramses": """
    snapshot = ambar.open_snapshot(path).load()
    snapshot.amr.read(), snapshot.particles.read(), snapshot.amr.project("density")
    """,
    "plotfile": """
    snapshot = ambar.open_snapshot(path)
    snapshot.amr.read(), snapshot.amr.slice(snapshot.amr.fields[0])
    "particles" in snapshot.components and snapshot.particles.read()
    """,
    "convert": """
    ambar.convert(path, out, fsync=False)
    """,
    "create": """
    with ambar.create(out, fsync=False) as writer:
        values = np.random.default_rng(1).random((300, 3000))
        writer.create_array("x", values, profile="small")
        writer.create_array("y", values, error_bound=1e-3)
        writer.create_array("z", shape=(300, 3000), dtype="f8", chunks=(100, 1000))
        writer.write_region("z", values[:200, :2000], (7, 8))
        writer.create_array("words", np.array(["a", "b"] * 5000, dtype=object))
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
    collection.verify(), collection.stats("v"), dict(collection.attrs)
    """,
}


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory, stores: dict[str, Path]) -> dict[str, Path]:
    """What is read."""
    folder = tmp_path_factory.mktemp("fork")
    with ambar.create(folder / "store.ambar", fsync=False) as writer:
        writer.create_array("small", np.arange(10))
        writer.create_array(
            "large", np.random.default_rng(1).random((40, 50_000)), chunks=(4, 5000)
        )
        writer.create_array("words", np.array(["a", "b"] * 5000, dtype=object), chunks=(100,))
    plotfiles.write(folder / "plotfile")
    ambar.convert(folder / "plotfile", folder / "plotfile.ambar", fsync=False)
    with ambar.open_collection(folder / "collection.ambar", "w-") as collection:
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
    command: list[str | Path] = [
        sys.executable,
        "-c",
        FORK.format(act=ACTS[act]),
        paths[path],
        tmp_path / "out",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert not done.returncode, done.stderr


# Threads of the parent begin to read, while it forks: a child may be forked at any moment of it.
STORM = """
import os, signal, sys, threading, time
import ambar

signal.alarm(280)
path, stop = sys.argv[1], threading.Event()
# Modules are imported when they are first used, and Python's locks of imports are inherited, too.
ambar.open(path)["small"][:], ambar.open(path)["words"][:]

def read(threads):
    while not stop.is_set():
        store = ambar.open(path)
        store["large"].read(threads=threads)
        store["words"][:]

readers = [threading.Thread(target=read, args=(n,), daemon=True) for n in (2, 3, 4, 5, 6, 7)]
for reader in readers:
    reader.start()
codes = []
for _ in range(60):
    child = os.fork()
    if not child:
        signal.alarm(60)
        ambar.open(path)["large"].read(threads=2)
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
failed = [code for code in codes if code]
sys.exit(f"exit codes of failed children (-14: ended by the alarm): {failed}" if failed else 0)
"""


def test_children_forked_while_threads_begin_to_read_do_not_hang(paths: dict[str, Path]) -> None:
    """The list of thread pools was locked while a pool was built, and a child inherits locks."""
    command: list[str | Path] = [sys.executable, "-c", STORM, paths["store"]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert not done.returncode, done.stderr


# A child uses what its parent opened for writing, and ends without os._exit: all destructors run.
CHILD_WRITES = """
import os, signal, sys
import numpy as np
import ambar

{opening}
child = os.fork()
if not child:
    signal.alarm(60)
    refused = []
    for act in ({acts}):
        try:
            act()
        except ValueError as error:
            assert "forked child" in str(error), error
            refused.append(act)
    assert len(refused) == {refusals}, refused
    writer.close()
    del writer
    sys.exit(0)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert not code, code
{ending}
"""

WRITERS = {
    "writer": (
        """
writer = ambar.create(sys.argv[1], directory={directory})
writer.create_array("before", np.arange(5.0))
""",
        [
            'lambda: writer.create_array("child", np.arange(3.0))',
            'lambda: writer.create_group("child")',
            'lambda: writer.remove("before")',
            "lambda: writer.commit()",
        ],
        """
writer.create_array("after", np.arange(7.0))
writer.commit()
writer.close()
store = ambar.open(sys.argv[1])
assert len(store["before"][:]) == 5 and len(store["after"][:]) == 7 and "child" not in store
store.verify()
""",
    ),
    "appended": (
        """
with ambar.create(sys.argv[1], directory={directory}) as first:
    first.create_array("x", np.arange(5.0))
writer = ambar.create(sys.argv[1], "a")
writer.create_array("before", np.random.default_rng(1).random(1 << 19))
""",
        ['lambda: writer.create_array("child", np.arange(3.0))', "lambda: writer.commit()"],
        """
try:
    ambar.create(sys.argv[1], "a")
except ambar.BusyError:
    pass
else:
    raise AssertionError("the child has released the lock")
writer.commit()
writer.close()
store = ambar.open(sys.argv[1])
assert len(store["before"][:]) == 1 << 19
store.verify()
""",
    ),
    "collection": (
        """
writer = ambar.open_collection(sys.argv[1], "w-", directory={directory})
for number in range(20):
    writer.add(f"d{{number}}", {{"v": np.arange(2000.0)}})
""",
        [
            'lambda: writer.add("child", {"v": np.arange(20.0)})',
            "lambda: writer.commit()",
            'lambda: writer.remove("d1")',
        ],
        """
writer.add("after", {{"v": np.arange(20.0)}})
writer.commit()
writer.close()
collection = ambar.open_collection(sys.argv[1])
assert len(collection) == 21 and "child" not in collection
collection.verify()
""",
    ),
}


@pytest.mark.parametrize("directory", [False, True])
@pytest.mark.parametrize("name", WRITERS)
def test_a_forked_child_is_refused_its_parents_writer_and_harms_nothing(
    name: str, directory: bool, tmp_path: Path
) -> None:
    """Parent and child both committed, and one of two datasets was lost without an error."""
    opening, acts, ending = WRITERS[name]
    program = CHILD_WRITES.format(
        opening=opening.format(directory=directory),
        acts=", ".join(acts) + ",",
        refusals=len(acts),
        ending=ending.format(),
    )
    command: list[str | Path] = [sys.executable, "-c", program, tmp_path / "x.ambar"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert not done.returncode, done.stderr


def test_a_forked_child_is_refused_its_parents_mesh_series(tmp_path: Path) -> None:
    """As for collections: the child inherited the writer and its lock."""
    pytest.importorskip("vtk")
    opening = """
from vtkmodules.vtkFiltersSources import vtkSphereSource
source = vtkSphereSource()
source.Update()
mesh = source.GetOutput()
writer = ambar.open_mesh_series(sys.argv[1], "w-")
writer.add(mesh, 1.0)
"""
    ending = """
writer.add(mesh, 2.0)
writer.close()
assert len(ambar.open(sys.argv[1]).times) == 2
"""
    acts = "lambda: writer.add(mesh, 1.5),"
    program = CHILD_WRITES.format(opening=opening, acts=acts, refusals=1, ending=ending)
    command: list[str | Path] = [sys.executable, "-c", program, tmp_path / "x.ambar"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert not done.returncode, done.stderr
