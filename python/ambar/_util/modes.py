"""The modes of writing, as in h5py and zarr-python."""

from __future__ import annotations

from typing import Any, Literal, get_args

WriteMode = Literal["w-", "w", "a"]
OpenMode = Literal["r", "w-", "w", "a"]


def check_mode(mode: str, accepted: Any = WriteMode) -> None:
    """Refuse a mode that is not in a ``Literal``.

    Parameters
    ----------
    mode : str
        The caller's argument.
    accepted : Literal
        ``WriteMode`` (default), ``OpenMode`` or a ``Literal`` of fewer modes.

    Raises
    ------
    ValueError
        If `mode` is not one of them.
    """
    modes = get_args(accepted)
    if mode not in modes:
        expected = ", ".join(map(repr, modes))
        raise ValueError(f"invalid mode {mode!r}: must be one of {expected}")
