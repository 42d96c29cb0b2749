"""Reads stores: `read.py STORE` lists their arrays, `read.py STORE ARRAY OUT.npy` writes one.

`--commits` lists the commits of the store. `--commit=N` reads the commit N instead of the last one.
"""

import sys
from pathlib import Path

import numpy as np
from containers import Record, open_container
from containers import list_commits as read_commits
from hierarchy import read_array, read_hierarchy
from pipeline import read_values
from stream.bits import check, damage


@damage()
def list_commits(store: str | Path) -> list[Record]:
    """Return the records of all commits of a store, the newest first."""
    return read_commits(store)


@damage()
def list_arrays(store: str | Path, commit: int | None = None) -> dict[str, dict]:
    """Return the documents of all arrays of a store by their paths."""
    nodes, _ = read_hierarchy(open_container(store, commit))
    return {path: node for path, node in nodes.items() if node["node_type"] == "array"}


@damage()
def read(store: str | Path, path: str, commit: int | None = None) -> np.ndarray:
    """Return the values of an array of a store; raise `ValueError` if that is not possible."""
    container = open_container(store, commit)
    nodes, complete = read_hierarchy(container)
    check(path in nodes, f"no array {path!r}; available: {', '.join(nodes)}")
    return read_values(container, path, read_array(nodes[path]), complete)


def main(arguments: list[str]) -> int:
    """Run the command line."""
    options = [word for word in arguments if word.startswith("--")]
    words = [word for word in arguments if word not in options]
    commit = None
    for option in options:
        name, _, value = option.partition("=")
        if name == "--commit" and value.isdecimal():
            commit = int(value)
        elif option != "--commits":
            words = []
    if len(words) not in (1, 3):
        sys.stderr.write(f"{__doc__}\n")
        return 2
    try:
        if "--commits" in options:
            for record in list_commits(words[0]):
                sys.stdout.write(f"{record.commit.number}\t{record.time}\t{record.message!r}\n")
        elif len(words) == 1:
            for path, document in list_arrays(words[0], commit).items():
                array = read_array(document)
                names = " ".join(name for name, _ in array.codecs)
                sys.stdout.write(f"{path}\t{array.text or array.dtype}\t{array.shape}\t{names}\n")
        else:
            store, path, out = words
            np.save(out, read(store, path.strip("/"), commit), allow_pickle=True)
    except (ValueError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
