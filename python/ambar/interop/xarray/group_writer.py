"""One group of a store as a writable data store of xarray.

The encoding on disk is that of xarray's own Zarr backend, so that ``xarray.open_zarr`` reads it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from xarray import conventions
from xarray.backends.common import AbstractWritableDataStore, _encode_variable_name
from xarray.backends.zarr import FillValueCoder, encode_zarr_attr_value, encode_zarr_variable

from ambar import _core
from ambar._util.user_warnings import warn
from ambar.interop.xarray.encoding import ArrayEncoding, check_conversions
from ambar.interop.xarray.group_reader import GroupStore
from ambar.store.dtypes import refuse_arrays
from ambar.store.error_bounds import is_lossy
from ambar.store.nodes import check_reserved

if TYPE_CHECKING:
    from ambar.interop.xarray.dataset_writer import Session

# Newer versions of xarray do not encode strings for format 3.
_V3: dict[str, Any] = (
    {"zarr_format": 3}
    if "zarr_format" in inspect.signature(encode_zarr_variable).parameters
    else {}
)

Region = Mapping[Any, slice]

LOSSY_BOUND = "lossy_compression_error_bound"
"""The attribute that states the error bound of an array."""


class WritableGroup(AbstractWritableDataStore):
    """A group of a store open for writing, with the semantics of ``Dataset.to_zarr``.

    Parameters
    ----------
    session
        The session of the call, which writes arrays and groups.
    path
        The group's path, "" for the root.
    committed
        The existing group; None for a new one.
    mode
        "w", "w-", "a", "a-" or "r+".
    append_dim
        The dimension to append along.
    region
        A slice for each dimension that is written in part.
    """

    def __init__(
        self,
        session: Session,
        path: str,
        committed: GroupStore | None,
        *,
        mode: str = "w-",
        append_dim: Any = None,
        region: Region | None = None,
    ) -> None:
        self._session = session
        self._path = path
        self._committed = committed
        self._mode = mode
        self._append_dim = append_dim
        self._region = dict(region or {})

    def get_variables(self) -> dict[str, xr.Variable]:
        """Return the variables of the existing group."""
        return self._committed.get_variables() if self._committed else {}

    def get_attrs(self) -> dict[str, Any]:
        """Return the attributes of the existing group."""
        return self._committed.get_attrs() if self._committed else {}

    def get_dimensions(self) -> dict[str, int]:
        """Return the dimensions of the existing group."""
        return self._committed.get_dimensions() if self._committed else {}

    def encode_variable(self, v: xr.Variable, name: Any = None) -> xr.Variable:
        """Encode values by the CF conventions, as xarray does for Zarr."""
        try:
            encoded: xr.Variable = encode_zarr_variable(v, name=name, **_V3)
        except (TypeError, ValueError):
            if v.dtype == object:
                refuse_arrays(f"variable {name!r}", v.values)
            raise
        return encoded

    def encode(
        self, variables: Mapping[Any, xr.Variable], attributes: Mapping[Any, Any]
    ) -> tuple[dict[Any, xr.Variable], dict[Any, Any]]:
        """Encode variables and attributes; error messages contain the names of variables."""
        encoded = {name: self.encode_variable(v, name) for name, v in variables.items()}
        return encoded, {key: self.encode_attribute(value) for key, value in attributes.items()}

    def encode_attribute(self, a: Any) -> Any:
        """Return an attribute as a value that JSON can represent."""
        if isinstance(a, np.ndarray | np.generic) and a.dtype.kind in "mM":
            return a  # xarray would return integers for some units
        return encode_zarr_attr_value(a)

    def store(
        self,
        variables: Mapping[Any, xr.Variable],
        attributes: Mapping[Any, Any],
        check_encoding_set: Iterable[Any] = frozenset(),
        writer: Any = None,  # noqa: ARG002 - xarray passes it
        unlimited_dims: Any = None,  # noqa: ARG002 - any dimension can grow
    ) -> None:
        """Encode and write variables and attributes.

        Raises
        ------
        ValueError
            If they do not fit the existing arrays; messages as in `Dataset.to_zarr`.
        """
        existing = self.get_variables()
        variables = {_name(name): variable for name, variable in variables.items()}
        explicit = {_name(name) for name in check_encoding_set}
        new = [name for name in variables if name not in existing]
        if self._mode == "r+" and new:
            raise ValueError(
                f"dataset contains non-pre-existing variables {new}, and mode='r+' does not create "
                "variables; use mode='a'"
            )
        dims = self.get_dimensions()
        if self._append_dim is not None and existing and self._append_dim not in dims:
            raise ValueError(
                f"append_dim={self._append_dim!r} does not match any existing dataset dimensions "
                f"{dims}"
            )
        self._check_complete(variables, existing)
        for name in new:
            check_conversions(variables[name], name)
        encoded, attrs = self.encode({name: variables[name] for name in new}, attributes)
        old = {name: variables[name] for name in variables if name in existing}
        if self._mode == "a-" and self._append_dim is not None:
            # Other variables do not change: only their dimensions are checked.
            for name in [name for name in old if self._append_dim not in old[name].dims]:
                self._fitted(name, old.pop(name), existing[name])
        if self._mode != "r+":
            self._session.writer._create_group(self._path, self._group_attributes(attrs))
        for name, variable in self._like_existing(old, existing).items():
            self._update(name, variable)
        for name, variable in encoded.items():
            self._create(name, variable, explicit=name in explicit)

    def _group_attributes(self, attributes: Mapping[Any, Any]) -> dict[str, Any]:
        """Return attributes for the group, whose kind does not change."""
        known = self._committed.store._attributes(self._path) if self._committed else {}
        kind = {key: value for key, value in known.items() if key == "ambar"}
        own = json_attributes(attributes, "the dataset")
        check_reserved(own)
        return {**own, **kind}

    def _like_existing(
        self, variables: Mapping[Any, xr.Variable], existing: Mapping[str, xr.Variable]
    ) -> dict[Any, xr.Variable]:
        """Encode variables as the existing ones of the same names."""
        stored = {name: existing[name] for name in variables}
        decoded, _, _ = conventions.decode_cf_variables(dict(stored), {})
        copies = {}
        for name, variable in variables.items():
            _check_type(name, variable, decoded[name])
            self._check_bounded(name, variable)
            _check_integers(name, variable, existing[name])
            copies[name] = variable.copy(deep=False)
            copies[name].encoding = decoded[name].encoding
        encoded, _ = self.encode(copies, {})
        for name, variable in encoded.items():
            if variables[name].dtype.kind in "mM":
                _check_units(name, variable, existing[name])
        return {name: self._fitted(name, encoded[name], existing[name]) for name in encoded}

    def _check_complete(
        self, variables: Mapping[Any, xr.Variable], existing: Mapping[str, xr.Variable]
    ) -> None:
        """Raise ValueError if variables would have different lengths along `append_dim`."""
        dim = self._append_dim
        if dim is None or not existing:
            return
        known = [name for name, variable in existing.items() if dim in variable.dims]
        if missing := [name for name in known if name not in variables]:
            raise ValueError(
                f"append_dim={dim!r}: the dataset lacks {missing}, which would be shorter than the "
                "other variables; add them"
            )
        length = self.get_dimensions().get(dim, 0)
        for name, variable in variables.items():
            if name not in existing and dim in variable.dims:
                expected = length + variable.sizes[dim]
                raise ValueError(
                    f"append_dim={dim!r}: the store lacks variable {name!r}, which would have "
                    f"{variable.sizes[dim]} instead of {expected} values; write all of it with "
                    "mode='a', without append_dim"
                )

    def _check_bounded(self, name: Any, variable: xr.Variable) -> None:
        """Raise ValueError for values that an array with an error bound cannot hold exactly."""
        array = self._committed.array(name) if self._committed else None
        if array is None or not array.error_bound:
            return
        if not np.can_cast(variable.dtype, array.dtype, "safe"):
            raise _core.InvalidError(
                f"variable {name!r} is {array.dtype} with the error bound {array.error_bound}, "
                f"found {variable.dtype}, whose conversion may exceed the bound; convert the "
                f"values first, with astype({str(array.dtype)!r})"
            )

    def _fitted(self, name: Any, new: xr.Variable, old: xr.Variable) -> xr.Variable:
        """Return `new` with the dimensions of `old` in their order, if their sizes agree."""
        if new.dims != old.dims:
            if set(new.dims) != set(old.dims):
                raise ValueError(
                    f"variable {name!r} already exists with different dimension names {old.dims} "
                    f"!= {new.dims}; write it under another name"
                )
            new = new.transpose(*old.dims)
        fixed = [dim for dim in old.dims if dim != self._append_dim]
        expected = {
            dim: len(range(*self._region.get(dim, slice(None)).indices(old.sizes[dim])))
            for dim in fixed
        }
        found = {dim: new.sizes[dim] for dim in fixed}
        if expected != found:
            raise ValueError(
                f"variable {name!r} already exists with different dimension sizes: {expected} != "
                f"{found}; append_dim= makes a dimension longer, region= writes a part"
            )
        return new

    def _update(self, name: Any, variable: xr.Variable) -> None:
        array = self._committed.array(name) if self._committed else None
        if array is None or variable.size == 0:
            return
        starts = []
        for dim, size in zip(variable.dims, array.shape, strict=True):
            part = self._region.get(dim, slice(None))
            starts.append(size if dim == self._append_dim else part.indices(size)[0])
        self._session.update(self._node(name), array, variable.data, tuple(starts))

    def _create(self, name: str, variable: xr.Variable, *, explicit: bool) -> None:
        attributes = dict(variable.attrs)
        encoding = ArrayEncoding.of(variable, name, explicit=explicit)
        if is_lossy(encoding.error_bound) and LOSSY_BOUND in attributes:
            warn(
                f"variable {name!r} was read from an array with the error bound "
                f"{attributes[LOSSY_BOUND]}: its errors and those of the new bound add up, and the "
                "store states the new one alone. Write the original values if they exist"
            )
        masks = [attributes.get(key) for key in ("_FillValue", "missing_value")]
        encoding.check_masks(name, masks)
        fill = attributes.pop("_FillValue", None)
        if fill is not None:
            attributes["_FillValue"] = FillValueCoder.encode(fill, variable.dtype)
        attributes = {key: self.encode_attribute(value) for key, value in attributes.items()}
        missing = attributes.get("missing_value")
        if isinstance(missing, float):
            # xarray's own reader of Zarr refuses an object in this attribute.
            attributes["missing_value"] = _number_or_text(missing)
        elif isinstance(missing, list):
            attributes["missing_value"] = [_number_or_text(part) for part in missing]
        written = variable.copy(deep=False)
        written.attrs = json_attributes(attributes, f"variable {name!r}")
        self._session.create(self._node(name), written, encoding)

    def _node(self, name: str) -> str:
        return f"{self._path}/{name}" if self._path else name


def _number_or_text(value: Any) -> Any:
    """Return a float that is not finite as a string, which `group_reader` reads as a float."""
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def _name(name: Any) -> str:
    """Return the name of a variable in the store; raises ValueError or TypeError if invalid."""
    stored = _encode_variable_name(name)
    if not isinstance(stored, str):
        raise TypeError(
            f"Invalid name {name!r} of a variable: it must be a string or None; rename it"
        )
    if not stored:
        raise ValueError(f"Invalid name {name!r} of a variable: string must be length 1 or greater")
    if "/" in stored:
        raise _core.InvalidError(
            f"Invalid name {name!r} of a variable: '/' separates groups; rename it"
        )
    return stored


def json_attributes(attributes: Mapping[Any, Any], owner: str) -> dict[str, Any]:
    """Return attributes that a store can represent.

    Raises TypeError for objects other than strings, numbers, bools and lists of these.
    """
    return {str(key): _plain(value, f"{owner}: {key!r}") for key, value in attributes.items()}


def _plain(value: Any, place: str) -> Any:
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in "mM":
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(part, place) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part, place) for part in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TypeError(
        f"Invalid attribute in Dataset.attrs: {place} is of type {type(value).__name__}, which "
        "JSON cannot represent; use a string, a number, a bool or a list of these"
    )


def _check_integers(name: Any, new: xr.Variable, old: xr.Variable) -> None:
    """Raise ValueError for integers in memory that the stored integers cannot hold."""
    kinds = {new.dtype.kind, old.dtype.kind}
    if not kinds <= set("iu") or new.chunks is not None or not new.size:
        return
    if {"scale_factor", "add_offset"} & set(old.attrs):
        return
    low, high = int(new.values.min()), int(new.values.max())
    limits = np.iinfo(old.dtype)
    if low < limits.min or high > limits.max:
        raise ValueError(
            f"variable {name!r} is stored as {old.dtype}, found values from {low} to {high}; store "
            "it in a larger dtype"
        )


def _check_units(name: Any, new: xr.Variable, old: xr.Variable) -> None:
    """Raise ValueError if times were encoded in other units than those of the stored array.

    xarray does so where integers cannot hold them.
    """
    stored, found = (str(variable.attrs.get("units", "")) for variable in (old, new))
    # The reference date may be spelt differently.
    if stored.partition(" since ")[0] != found.partition(" since ")[0]:
        raise ValueError(
            f"variable {name!r} is stored as {old.dtype} in {stored!r}, which cannot hold the new "
            f"values; create the store with encoding={{{name!r}: {{'units': {found!r}}}}}"
        )


def _check_type(name: Any, new: xr.Variable, old: xr.Variable) -> None:
    """Check that values of `new` fit an array of `old`; dtypes of fixed length must be equal."""
    can_convert = new.dtype.kind in "biufcmMOT" or (
        new.dtype.kind in "SU" and old.dtype.kind in "OT"
    )
    if not can_convert and new.dtype != old.dtype:
        # Conversion to a shorter dtype would cut strings.
        advice = (
            "create the store with this variable as astype(object), for strings of any length"
            if old.dtype.kind in "SU"
            else "convert the values"
        )
        raise ValueError(
            f"Mismatched dtypes for variable {name}: the store has {old.dtype}, the dataset has "
            f"{new.dtype}; {advice}"
        )
