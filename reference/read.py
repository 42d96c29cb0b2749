"""Reads stores: `read.py STORE` lists their arrays, `read.py STORE ARRAY OUT.npy` writes one."""

import sys
from pathlib import Path

import numpy as np
from containers import open_container
from hierarchy import read_array, read_hierarchy
from pipeline import read_values
from stream.bits import check, damage


@damage()
def list_arrays(store: str | Path) -> dict[str, dict]:
    """Return the documents of all arrays of a store by their paths."""
    nodes, _ = read_hierarchy(open_container(store))
    return {path: node for path, node in nodes.items() if node["node_type"] == "array"}


@damage()
def read(store: str | Path, path: str) -> np.ndarray:
    """Return the values of an array of a store; raise `ValueError` if that is not possible."""
    container = open_container(store)
    nodes, complete = read_hierarchy(container)
    check(path in nodes, f"no array {path!r}; available: {', '.join(nodes)}")
    return read_values(container, path, read_array(nodes[path]), complete)


def main(arguments: list[str]) -> int:
    """Run the command line."""
    if len(arguments) not in (1, 3):
        sys.stderr.write(f"{__doc__}\n")
        return 2
    try:
        if len(arguments) == 1:
            for path, document in list_arrays(arguments[0]).items():
                array = read_array(document)
                names = " ".join(name for name, _ in array.codecs)
                sys.stdout.write(f"{path}\t{array.text or array.dtype}\t{array.shape}\t{names}\n")
        else:
            store, path, out = arguments
            np.save(out, read(store, path.strip("/")), allow_pickle=True)
    except (ValueError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
