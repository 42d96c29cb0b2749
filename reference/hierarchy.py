"""The hierarchy: documents of groups and arrays, types and fill values (format.md, chapter 2)."""

import base64
import json
import math
import re
from collections import namedtuple

import numpy as np
from containers import Container, check_key
from stream.bits import UnsupportedError, check, crc32c

FIELDS = {"zarr_format", "node_type", "attributes", "shape", "data_type", "chunk_grid", "codecs",
          "chunk_key_encoding", "fill_value", "dimension_names", "storage_transformers",
          "consolidated_metadata"}  # fmt: skip


Array = namedtuple("Array", "shape dtype text chunk codecs fill")  # text: of no fixed size, or None


def read_hierarchy(container: Container) -> tuple[dict[str, dict], bool]:
    """Return the metadata documents by path, and whether ambar wrote the store."""
    check("zarr.json" in container, "zarr.json is missing")
    text = container.load("zarr.json")
    root = parse(text)
    ambar = root.get("attributes", {}).get("ambar", {})
    checksum = ambar.get("checksum") if isinstance(ambar, dict) else None
    form = "crc32c:[0-9a-f]{8}"
    if checksum is None:
        found = re.search(rf'(?<!\\)"{form}"', json.dumps(root))
        check(not found, "the checksum of the root is at a wrong place")
    else:
        check(re.fullmatch(form, checksum), f"root checksum {checksum!r}; expected {form}")
        check(has_checksum(text, checksum), "the checksum of the root differs")
        version = ambar.get("version")
        check(version == 1, f"a store of version {version}; expected 1", UnsupportedError)
    if checksum is not None and "consolidated_metadata" in root:
        nodes = {"": root, **root["consolidated_metadata"]["metadata"]}
    else:
        paths = sorted(key[:-10] for key in container if f"/{key}".endswith("/zarr.json"))
        nodes = {path: parse(container.load(f"{path}/zarr.json".lstrip("/"))) for path in paths}
    groups: set[str] = set()
    for path, document in nodes.items():
        check_node(path, document, groups)
    return nodes, checksum is not None


def parse(text: bytes) -> dict:
    """Return a metadata document."""

    def unique(pairs: list) -> dict:
        check(len(dict(pairs)) == len(pairs), "a key of a metadata document occurs twice")
        return dict(pairs)

    document = json.loads(text.decode(), object_pairs_hook=unique)
    check(isinstance(document, dict), "a metadata document that is not a JSON object")
    return document


def has_checksum(text: bytes, checksum: str) -> bool:
    """Return whether the checksum of the root is valid; parsing finds its digits in the text."""
    for match in re.finditer(checksum.encode(), text):
        blank = text[: match.start() + 7] + b"00000000" + text[match.end() :]
        if parse(blank)["attributes"]["ambar"]["checksum"] != checksum:
            return f"crc32c:{crc32c(blank):08x}" == checksum
    return False


def check_node(path: str, document: dict, groups: set) -> None:
    """Check the name and the fields of a node, and that it is in one of the groups before it."""
    valid = document["zarr_format"] == 3 and document["node_type"] in ("group", "array")
    check(valid, f"{path!r} is not a group or array of Zarr v3")
    for name, value in document.items():
        optional = isinstance(value, dict) and value.get("must_understand") is False
        check(name in FIELDS or optional, f"unknown field {name!r} of {path!r}", UnsupportedError)
    if path:
        check_key(path)
        check(path.rpartition("/")[0] in groups, f"the group of {path!r} does not precede it")
        segments = path.split("/")
        check(
            "zarr.json" not in segments and segments[0].lower() != "ambar", f"{path!r} is reserved"
        )
    if document["node_type"] == "group":
        groups.add(path)


def named(value: str | dict) -> tuple[str, dict]:
    """Return name and configuration of an extension, such as a type or a codec (2.2)."""
    return (
        (value, {}) if isinstance(value, str) else (value["name"], value.get("configuration", {}))
    )


def lengths(value: list, least: int) -> tuple[int, ...]:
    """Return lengths."""
    check(all(type(n) is int and n >= least for n in value), f"{value!r} is not a list of lengths")
    return tuple(value)


def read_array(document: dict) -> Array:
    """Return the content of an array's document (2.2)."""
    check(document["node_type"] == "array", "a group; expected an array")
    (grid, shape_of), (keys, encoding) = (
        named(document[field]) for field in ("chunk_grid", "chunk_key_encoding")
    )
    kinds = grid, keys, encoding.get("separator", "/"), bool(document.get("storage_transformers"))
    check(kinds == ("regular", "default", "/", False), f"array of {kinds}", UnsupportedError)
    shape, chunk = lengths(document["shape"], 0), lengths(shape_of["chunk_shape"], 1)
    names = document.get("dimension_names", [None] * len(shape))
    check(isinstance(names, list) and len(shape) == len(chunk) == len(names), "ranks differ")
    dtype, text = read_type(*named(document["data_type"]))
    check(math.prod(shape) * dtype.itemsize < 2**63, "an array of 2^63 bytes or more")
    return Array(shape, dtype, text, chunk, [named(codec) for codec in document["codecs"]],
                 read_fill(document["fill_value"], dtype, text))  # fmt: skip


def read_type(name: str, configuration: dict) -> tuple[np.dtype, str | None]:
    """Return NumPy's type of the values, and the name of a type without a fixed size (2.2)."""
    if re.fullmatch("u?int(8|16|32|64)|float(16|32|64)|complex(64|128)|bool", name):
        return np.dtype(name), None
    if name in ("string", "variable_length_bytes"):
        return np.dtype(object), name
    if name in ("fixed_length_utf32", "null_terminated_bytes"):
        length, (letter, unit) = configuration["length_bytes"], ("U4", "S1")[name[0] == "n"]
        check(0 < length < 2**31 and length % int(unit) == 0, f"invalid length_bytes: {length}")
        return np.dtype(f"{letter}{length // int(unit)}"), None
    types = {"numpy.datetime64": "M8", "numpy.timedelta64": "m8"}
    check(name in types, f"unknown data type {name!r}", UnsupportedError)
    scale, unit = configuration["scale_factor"], configuration["unit"].replace("μ", "u")
    check(1 <= scale < 2**31, f"invalid scale_factor: {scale}")
    return np.dtype(types[name] + ("" if unit == "generic" else f"[{scale}{unit}]")), None


def read_fill(value, dtype: np.dtype, text: str | None) -> object:
    """Return a fill value as a value of the array (2.2)."""
    kind = dtype.kind
    if kind == "c":
        check(isinstance(value, list) and len(value) == 2, "expected a pair as complex fill value")
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return np.array([read_fill(v, part, None) for v in value], part).view(dtype)[0]
    if kind == "f" and isinstance(value, str) and value not in ("NaN", "Infinity", "-Infinity"):
        check(
            re.fullmatch(f"0x[0-9a-fA-F]{{{2 * dtype.itemsize}}}", value), f"fill value {value!r}"
        )
        return np.array(int(value, 16), f"u{dtype.itemsize}").view(dtype)[()]
    if text == "variable_length_bytes" or kind == "S":
        value = base64.b64decode(value, validate=True)
        check(text or len(value) <= dtype.itemsize, "a fill value longer than the data type")
    else:
        value = -(2**63) if kind in "mM" and value == "NaT" else value
        types = {"b": (bool,), "f": (int, float, str), **dict.fromkeys("iumM", (int,))}
        check(type(value) in types.get(kind, (str,)), f"invalid fill value: {value!r}")
    if kind in "mM":
        return np.array(value, np.int64).view(dtype)[()]
    return value if text else np.array(value, dtype)[()]
