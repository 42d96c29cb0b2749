"""The hierarchy of a store: documents of groups and arrays, and their types (format.md, 2)."""

import base64
import json
import math
import re
from typing import NamedTuple

import numpy as np
from containers import Container, check_key
from stream.bits import UnsupportedError, check, check_supported, crc32c, damage

NUMBERS = re.compile("u?int(8|16|32|64)|float(16|32|64)|complex(64|128)|bool")
FIELDS = {"zarr_format", "node_type", "attributes", "shape", "data_type", "chunk_grid", "codecs",
          "chunk_key_encoding", "fill_value", "dimension_names", "storage_transformers",
          "consolidated_metadata"}  # fmt: skip


class Array(NamedTuple):
    """What the document of an array says."""

    shape: tuple[int, ...]
    dtype: np.dtype
    text: str | None  # "string" or "variable_length_bytes", else None
    chunk: tuple[int, ...]
    codecs: list[tuple[str, dict]]
    fill: object


def read_hierarchy(container: Container) -> tuple[dict[str, dict], bool]:
    """Return the documents by the paths of their nodes, and whether ambar wrote the store."""
    check("zarr.json" in container, "a store without a root")
    text = container.load("zarr.json")
    root = _parse(text)
    checksum = _member(_member(root, "attributes"), "ambar").get("checksum")
    if checksum is None:
        check(not any(map(_is_checksum, _strings(root))), "the root's checksum is out of place")
        keys = [key for key in container if f"/{key}".endswith("/zarr.json")]
        nodes = {key[:-10]: _parse(container.load(key)) for key in sorted(keys)}
    else:
        check(_is_checksum(checksum), "the root's checksum is not of its form")
        check(_blanked(text, checksum), "the root's checksum differs")
        version = root["attributes"]["ambar"].get("version")
        check_supported(version == 1, f"a store of version {version}; expected 1")
        consolidated = _member(root, "consolidated_metadata")
        check(isinstance(consolidated.get("metadata"), dict), "the root holds no documents")
        nodes = {"": root, **consolidated["metadata"]}
    for path, document in nodes.items():
        _check_node(path, document, nodes)
    return nodes, checksum is not None


def _parse(text: bytes) -> dict:
    with damage(RecursionError):
        document = json.loads(text.decode(), object_pairs_hook=_unique)
    check(isinstance(document, dict), "a document that is no object")
    return document


def _unique(pairs: list) -> dict:
    check(len({key for key, _ in pairs}) == len(pairs), "a document with a key twice")
    return dict(pairs)


def _member(document: dict, key: str) -> dict:
    """Return a member that is an object, or an empty one."""
    value = document.get(key, {})
    return value if isinstance(value, dict) else {}


def _is_checksum(value: object) -> bool:
    return isinstance(value, str) and bool(re.fullmatch("crc32c:[0-9a-f]{8}", value))


def _strings(value: object):
    """Yield all strings of a document."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, str):
        yield value


def _blanked(text: bytes, checksum: str) -> bool:
    """Return whether the document has its checksum, whose digits are found by parsing."""
    for match in re.finditer(re.escape(checksum).encode(), text):
        blank = text[: match.start() + 7] + b"00000000" + text[match.end() :]
        ambar = _member(_member(_parse(blank), "attributes"), "ambar")
        if ambar.get("checksum") == "crc32c:00000000":
            return f"crc32c:{crc32c(blank):08x}" == checksum
    return False


def _check_node(path: str, document: dict, nodes: dict) -> None:
    check(isinstance(document, dict), f"the document of {path!r} is no object")
    kind = document.get("node_type")
    check(document.get("zarr_format") == 3 and kind in ("group", "array"), f"{path!r} is no node")
    for name, value in document.items():
        optional = _member({"": value}, "").get("must_understand") is False
        check_supported(name in FIELDS or optional, f"{path!r} has the field {name!r}")
    if path:
        check_key(path)
        parent = nodes.get(path.rpartition("/")[0], {} if "" in nodes else None)
        check(parent and parent.get("node_type") == "group", f"{path!r} lies in no group")
        segments = path.split("/")
        check("zarr.json" not in segments and segments[0].lower() != "ambar", f"{path!r} as a name")


def named(value: object) -> tuple[str, dict]:
    """Return name and configuration of an extension such as a codec."""
    if isinstance(value, str):
        return value, {}
    check(isinstance(value, dict) and isinstance(value.get("name"), str), f"no name: {value!r}")
    return value["name"], _member(value, "configuration")


def read_array(document: dict) -> Array:
    """Return what the document of an array says.

    Raises
    ------
    ValueError
        If something is missing or impossible, or unknown.
    """
    check(document["node_type"] == "array", "a group; expected an array")
    need = {"shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs"}
    check(need <= set(document), f"members are missing: {sorted(need - set(document))}")
    (grid, shape_of), (keys, encoding) = (
        named(document["chunk_grid"]), named(document["chunk_key_encoding"]))  # fmt: skip
    separator = encoding.get("separator", "/")
    check_supported((grid, keys, separator) == ("regular", "default", "/"),
                    f"chunk grid {grid!r}, chunk keys {keys!r} {separator!r}")  # fmt: skip
    check_supported(not document.get("storage_transformers"), "storage transformers")
    shape, chunk = _lengths(document["shape"], 0), _lengths(shape_of.get("chunk_shape"), 1)
    names = document.get("dimension_names", [None] * len(shape))
    check(isinstance(names, list) and len(shape) == len(chunk) == len(names), "dimensions differ")
    check(isinstance(document["codecs"], list) and document["codecs"], "no codecs")
    dtype, text = _read_type(*named(document["data_type"]))
    check(math.prod(shape) * max(1, dtype.itemsize) < 2**63, "an array of 2^63 bytes or more")
    return Array(shape, dtype, text, chunk, [named(c) for c in document["codecs"]],
                 _read_fill(document["fill_value"], dtype, text))  # fmt: skip


def _lengths(value: object, least: int) -> tuple[int, ...]:
    good = isinstance(value, list) and all(type(n) is int and n >= least for n in value)
    check(good, f"{value!r} is no list of lengths")
    return tuple(value)


def _read_type(name: str, configuration: dict) -> tuple[np.dtype, str | None]:
    if NUMBERS.fullmatch(name):
        return np.dtype(name), None
    if name in ("string", "variable_length_bytes"):
        return np.dtype(object), name
    if name in ("fixed_length_utf32", "null_terminated_bytes"):
        length, unit = configuration.get("length_bytes"), 4 if name == "fixed_length_utf32" else 1
        check(type(length) is int and 0 < length < 2**31 and length % unit == 0, "length_bytes")
        return np.dtype(f"{'U' if unit == 4 else 'S'}{length // unit}"), None
    if name in ("numpy.datetime64", "numpy.timedelta64"):
        scale = configuration.get("scale_factor")
        check(type(scale) is int and 1 <= scale < 2**31, "scale_factor")
        unit = str(configuration.get("unit")).replace("μ", "u")
        letter, inside = ("M8", "m8")[name == "numpy.timedelta64"], f"[{scale}{unit}]"
        return np.dtype(letter + ("" if unit == "generic" else inside)), None
    raise UnsupportedError(f"the type {name!r}")


def _read_fill(value: object, dtype: np.dtype, text: str | None) -> object:
    """Return a fill value as a value of the array."""
    if dtype.kind == "c":
        check(isinstance(value, list) and len(value) == 2, "a fill value that is no pair")
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return np.array([_read_fill(v, part, None) for v in value], part).view(dtype)[0]
    if text == "variable_length_bytes" or dtype.kind == "S":
        check(isinstance(value, str), "a fill value that is no text")
        value = base64.b64decode(value, validate=True)
        check(text or len(value) <= dtype.itemsize, "a fill value that is too long")
        return value if text else np.array(value, dtype)[()]
    if isinstance(value, str) and dtype.kind == "f":
        if value in ("NaN", "Infinity", "-Infinity"):
            return dtype.type(value)
        check(re.fullmatch(f"0x[0-9a-fA-F]{{{2 * dtype.itemsize}}}", value), "a fill value")
        return np.array(int(value, 16), f"u{dtype.itemsize}").view(dtype)[()]
    if dtype.kind in "mM" and value == "NaT":
        value = -(2**63)
    kinds = {"b": bool, "i": int, "u": int, "m": int, "M": int, "f": (int, float)}
    check(isinstance(value, kinds.get(dtype.kind, str)), f"the fill value {value!r}")
    check(dtype.kind == "b" or not isinstance(value, bool), f"the fill value {value!r}")
    if dtype.kind in "iu":
        check(np.iinfo(dtype).min <= value <= np.iinfo(dtype).max, f"the fill value {value}")
    if dtype.kind in "mM":
        return np.array(value, np.int64).view(dtype)[()]
    return value if text else np.array(value, dtype)[()]
