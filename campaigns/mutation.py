"""Random changes of JSON documents, byte strings and stores."""

from __future__ import annotations

import base64
import copy
import json
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ambar.mesh.storage import packs
from campaigns import seal

MESH_DICTIONARY = packs.DICTIONARY
"""The preset dictionary of the deflate streams that hold descriptions of meshes."""
NUMBERS: list[Any] = [
    *(0, 1, -1, 2, 3, 7, 255, 2**15, 2**31 - 1, 2**31, 2**32, 2**40, 2**53 + 1, 2**63 - 1, 2**63),
    *(2**64 - 1, 2**64, 10**30, -(2**63), 0.5, -0.0, 1e308, 1e-320),
]
OTHERS: list[Any] = [
    *(None, True, False, "", "x", "NaN", "../x", "/", "a/b", "\x00", "ž" * 300, "9" * 5000, "int8"),
    *([], {}, [[]], [None], {"name": None}, [0] * 100, ["a", "a"], {"at": 3}, {"float": "nan"}),
]
TEXT_BYTES = b'{}[]",:0-9.eE+\\u0000/ '


def nested(depth: int) -> Any:
    """Return lists nested `depth` deep."""
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def json_value(rng: np.random.Generator) -> Any:
    """Return a random JSON value of any type."""
    if rng.random() < 0.02:
        return nested(int(rng.choice([50, 120, 130, 900])))
    pool = NUMBERS if rng.random() < 0.5 else OTHERS
    return copy.deepcopy(pool[rng.integers(len(pool))])


def change_json(document: Any, rng: np.random.Generator) -> None:
    """Change one place of a document: a value, a key, or the number of items."""
    places = list(_places(document))
    if not places:
        return
    holder, key = places[rng.integers(len(places))]
    value = holder[key]
    choice = rng.integers(8)
    if choice == 0:
        del holder[key]
    elif choice == 1 and isinstance(value, (int, float)):
        holder[key] = type(value)(value + rng.choice([-1, 1]))
    elif choice == 2 and isinstance(value, (list, dict)):
        _resize(value, rng)
    elif choice == 3 and isinstance(value, str):
        holder[key] = value[: len(value) // 2] if rng.random() < 0.5 else value * 2
    elif choice == 4:
        other, place = places[rng.integers(len(places))]
        holder[key] = copy.deepcopy(other[place]) if place in _keys(other) else None
    elif choice == 5 and isinstance(value, int) and not isinstance(value, bool):
        holder[key] = value * int(rng.choice([2, 1000, 2**20, -1]))
    elif choice == 6 and isinstance(holder, dict):
        holder[str(rng.choice(["x", "", "a/b", f"{key}x", "zarr.json"]))] = holder.pop(key)
    else:
        holder[key] = json_value(rng)


def _resize(value: Any, rng: np.random.Generator) -> None:
    if isinstance(value, list):
        if value and rng.random() < 0.5:
            value.pop(int(rng.integers(len(value))))
        else:
            value.append(copy.deepcopy(value[-1]) if value else 0)
    elif value:
        name = list(value)[rng.integers(len(value))]
        value[f"{name} again"] = copy.deepcopy(value[name])


def _keys(holder: Any) -> Any:
    return range(len(holder)) if isinstance(holder, list) else holder


def _places(document: Any) -> Any:
    """Yield every holder and key below a document, without recursion."""
    waiting = [document] if isinstance(document, (dict, list)) else []
    while waiting:
        holder = waiting.pop()
        for key in list(_keys(holder)):
            yield holder, key
            if isinstance(holder[key], (dict, list)):
                waiting.append(holder[key])


def change_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """Change some bytes: flip bits, insert numbers, or remove, repeat or overwrite a part."""
    made = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 1, 2, 4]))):
        if not made:
            return bytes(rng.integers(0, 256, 3, np.uint8))
        # Headers are at the beginning: choose places near it more often.
        at = int(len(made) * rng.random() ** rng.choice([1, 3, 8]))
        choice = rng.integers(7)
        if choice <= 1:
            made[at] ^= 1 << int(rng.integers(8))
        elif choice == 2:
            made[at] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF]))
        elif choice == 3:
            width = int(rng.choice([2, 4, 8]))
            number = int(NUMBERS[rng.integers(19)]) % 2 ** (8 * width)
            made[at : at + width] = number.to_bytes(width, "little")[: len(made) - at]
        elif choice == 4:
            del made[at : at + int(rng.integers(1, 9))]
        elif choice == 5:
            made[at:at] = made[at : at + int(rng.integers(1, 33))]
        else:
            made[at : at + 8] = rng.integers(0, 256, 8, np.uint8).tobytes()[: len(made) - at]
    return bytes(made)


def change_store(image: seal.Image, rng: np.random.Generator) -> str:
    """Change one part of a store and repair its checksums; return the name of the change."""
    names = list(CHANGES)
    weights = np.array([CHANGES[name][0] for name in names], float)
    name = names[rng.choice(len(names), p=weights / weights.sum())]
    if not image.directory and rng.random() < 0.3:
        _log(image, rng)
    CHANGES[name][1](image, rng)
    return name


def _log(image: seal.Image, rng: np.random.Generator) -> None:
    """Write the store in several commits; half of the last tails were overwritten."""
    image.steps = int(rng.integers(1, 4))
    if rng.random() < 0.5:
        image.killed = rng.integers(0, 256, int(rng.choice([0, 1, 40, 3000])), np.uint8).tobytes()


def _attributes(image: seal.Image, rng: np.random.Generator) -> None:
    """Change the attribute ``ambar`` of a group."""
    root = image.root
    nodes = [root, *root["consolidated_metadata"]["metadata"].values()]
    own = [node.get("attributes", {}) for node in nodes]
    known = [attributes["ambar"] for attributes in own if "ambar" in attributes]
    for _ in range(int(rng.choice([1, 1, 2]))):
        about = known[rng.integers(len(known))]
        checksum = about.pop("checksum", None)
        change_json(about, rng)
        if checksum is not None:
            about["checksum"] = checksum
    seal.set_root(image, root)


def _documents(image: seal.Image, rng: np.random.Generator) -> None:
    """Change the document of any node."""
    root = image.root
    documents = root["consolidated_metadata"]["metadata"] or root
    for _ in range(int(rng.choice([1, 1, 2]))):
        change_json(documents, rng)
    seal.set_root(image, root)


def _root(image: seal.Image, rng: np.random.Generator) -> None:
    root = image.root
    change_json(root, rng)
    seal.set_root(image, root)


def _root_text(image: seal.Image, rng: np.random.Generator) -> None:
    """Change bytes of the root's text, which may then be invalid or unusual JSON."""
    text = bytearray(image.entries[seal.ROOT])
    for _ in range(int(rng.choice([1, 2, 5]))):
        text[int(rng.integers(len(text)))] = TEXT_BYTES[rng.integers(len(TEXT_BYTES))]
    image.entries[seal.ROOT] = seal.seal_root(bytes(text))


def _chunk(image: seal.Image, rng: np.random.Generator) -> None:
    """Change bytes of a chunk."""
    key, document = _entry(image, rng)
    if document is None:
        return
    data, codecs = image.entries[key], seal.chunk_codecs(document)
    index = seal.shard_index(data, document)
    if index is None:
        image.entries[key] = seal.seal_chunk(change_bytes(data, rng), codecs)
        return
    at = int(rng.integers(len(index)))
    start, length = (int(number) for number in index[at])
    if start + length > len(data):
        return
    new = seal.seal_chunk(change_bytes(data[start : start + length], rng), codecs)
    index[at, 1] = len(new)
    later = index[:, 0] > start
    index[later & (index[:, 0] < len(data)), 0] += np.uint64((len(new) - length) % 2**64)
    whole = data[:start] + new + data[start + length :]
    image.entries[key] = seal.with_index(whole, document, index)


def _index(image: seal.Image, rng: np.random.Generator) -> None:
    """Change offsets and lengths in the index of a shard."""
    key, document = _entry(image, rng, sharded=True)
    if document is None:
        return
    index = seal.shard_index(image.entries[key], document)
    assert index is not None
    for _ in range(int(rng.choice([1, 2, 4]))):
        at, column = int(rng.integers(len(index))), int(rng.integers(2))
        if rng.random() < 0.4:
            index[at] = index[int(rng.integers(len(index)))]
        else:
            number = int(NUMBERS[rng.integers(19)]) if rng.random() < 0.5 else rng.integers(9000)
            index[at, column] = np.uint64(int(number) % 2**64)
    image.entries[key] = seal.with_index(image.entries[key], document, index)


def _values(image: seal.Image, rng: np.random.Generator) -> None:
    """Change the values of a small array, such as indices, counts or names."""
    import tempfile
    from pathlib import Path

    import ambar

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.ambar")
        seal.write(path, image)
        store = ambar.Store._open(path)
        small = [
            name
            for name in store
            if 0 < store[name].nbytes <= 1 << 16 and store[name].dtype.kind != "U"
        ]
        if not small:
            return
        name = small[rng.integers(len(small))]
        old = store[name]
        values = _changed_values(old.read(), rng)
        with ambar.create(path, "a", fsync=False) as writer:
            writer.create_array(name, values, dims=old.dims, attrs=old.attrs, chunks=old.chunks)
        changed = seal.read(path)
    image.entries, image.sealed = changed.entries, changed.sealed


def _changed_values(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    made = np.array(values)
    if rng.random() < 0.2 and made.ndim:
        return np.concatenate([made, made[-1:]]) if rng.random() < 0.5 else made[:-1]
    flat = made.reshape(-1)
    for _ in range(int(rng.choice([1, 1, 3]))):
        at = int(rng.integers(len(flat)))
        if made.dtype.kind == "O":
            texts: list[Any] = [
                "",
                "x",
                '{"float": 3}',
                '{"datetime64": 1}',
                "[",
                "[" * 999,
            ]
            text = str(texts[rng.integers(len(texts))])
            flat[at] = text.encode() if isinstance(flat[0], bytes) else text
        else:
            raw = flat[at : at + 1].view(np.uint8)
            raw[:] = np.frombuffer(
                change_bytes(raw.tobytes(), rng)[: len(raw)].ljust(len(raw), b"\xff"), "u1"
            )
    return made


def _mesh(image: seal.Image, rng: np.random.Generator) -> None:
    """Change the deflated description of a mesh."""
    root = image.root
    nodes = [root, *root["consolidated_metadata"]["metadata"].values()]
    own = [node.get("attributes", {}).get("ambar", {}) for node in nodes]
    found = [about for about in own if "data" in about]
    if not found:
        return _attributes(image, rng)
    about = found[rng.integers(len(found))]
    decoder = zlib.decompressobj(-15, zdict=MESH_DICTIONARY)
    described = json.loads(decoder.decompress(base64.b85decode(about["data"])))
    streams = decoder.unused_data
    for _ in range(int(rng.choice([1, 1, 2]))):
        change_json(described, rng)
    if rng.random() < 0.1:
        streams = change_bytes(streams, rng)
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15, zdict=MESH_DICTIONARY)
    packed = deflater.compress(json.dumps(described).encode()) + deflater.flush()
    about["data"] = base64.b85encode(packed + streams).decode()
    return seal.set_root(image, root)


def _entries(image: seal.Image, rng: np.random.Generator) -> None:
    """Remove, swap, add or rename entries."""
    keys = list(image.entries)
    one, other = (keys[at] for at in rng.integers(len(keys), size=2))
    choice = rng.integers(4)
    if choice == 0:
        del image.entries[one]
    elif choice == 1:
        image.entries[one], image.entries[other] = image.entries[other], image.entries[one]
    elif choice == 2:
        image.entries[f"{one}/c/0" if rng.random() < 0.5 else f"x/{one}"] = image.entries[other]
    else:
        image.entries[one] = image.entries[one][: len(image.entries[one]) // 2]


def _list(image: seal.Image, rng: np.random.Generator) -> None:
    """Change the central directory, or the list of entries."""
    image.list_change = lambda data: change_bytes(data, rng)


def _slots(image: seal.Image, rng: np.random.Generator) -> None:
    """Change the numbers of the slots and the trailer."""

    def change(numbers: list[int]) -> list[int]:
        at = int(rng.integers(len(numbers)))
        near = numbers[at] + int(rng.integers(-70, 70))
        number = near if rng.random() < 0.5 else int(NUMBERS[rng.integers(16)])
        return [*numbers[:at], max(0, number) % 2**64, *numbers[at + 1 :]]

    image.slot_change = change


def _record(image: seal.Image, rng: np.random.Generator) -> None:
    """Change a number of some records."""
    _log(image, rng)

    def change(numbers: list[int]) -> list[int]:
        if rng.random() < 0.5:
            return numbers
        at = int(rng.integers(len(numbers)))
        near = numbers[at] + int(rng.integers(-70, 70))
        other = numbers[int(rng.integers(len(numbers)))]
        number = int(rng.choice([near, other])) if rng.random() < 0.8 else NUMBERS[rng.integers(16)]
        return [*numbers[:at], number, *numbers[at + 1 :]]

    image.record_change = change


def _changes(image: seal.Image, rng: np.random.Generator) -> None:
    """Change what records contain of root, removed keys and entries."""
    _log(image, rng)
    image.changes_change = lambda data: change_bytes(data, rng)


def _entry(image: seal.Image, rng: np.random.Generator, sharded: bool = False) -> tuple[str, Any]:
    """Choose an entry of an array."""
    found = [(key, document) for key in image.entries if (document := seal.array_of(image, key))]
    if sharded:
        found = [pair for pair in found if seal.index_span(b"", pair[1]) is not None]
    return found[rng.integers(len(found))] if found else ("", None)


CHANGES: dict[str, tuple[int, Callable[[seal.Image, np.random.Generator], None]]] = {
    "attributes": (6, _attributes),
    "documents": (6, _documents),
    "root": (2, _root),
    "root text": (2, _root_text),
    "chunk": (5, _chunk),
    "index": (2, _index),
    "values": (4, _values),
    "mesh": (3, _mesh),
    "entries": (2, _entries),
    "list": (2, _list),
    "slots": (1, _slots),
    "record": (2, _record),
    "changes": (2, _changes),
}
"""The relative frequency of each change, and the function that makes it."""
