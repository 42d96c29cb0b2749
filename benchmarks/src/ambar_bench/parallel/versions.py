"""The versions that the study compares: each is a way to write an array from all ranks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a version makes of the doubles."""

    TEXT = "text"
    RAW = "uncompressed"
    LOSSLESS = "lossless"
    BOUNDED = "error-bounded"


@dataclass(frozen=True)
class Version:
    """A way to write an array from all ranks, and to read it again."""

    key: str
    name: str
    """What tables call it."""
    program: str
    """The stem of its source file; "rank" where Python does it."""
    kind: Kind
    ours: bool = False
    serial: bool = False
    """Whether one rank does all the work."""


_ALL = (
    Version("serial-ascii", "serial ASCII", "text", Kind.TEXT, serial=True),
    Version("ascii-multifile", "ASCII, a file a rank", "text", Kind.TEXT),
    Version("binary-multifile", "binary, a file a rank", "binary", Kind.RAW),
    Version("mpiio-independent", "MPI-IO, independent", "mpiio", Kind.RAW),
    Version("mpiio-collective", "MPI-IO, collective", "mpiio", Kind.RAW),
    Version("netcdf-independent", "netCDF-4, independent", "netcdf", Kind.RAW),
    Version("netcdf-collective", "netCDF-4, collective", "netcdf", Kind.RAW),
    Version("pnetcdf-collective", "PnetCDF, collective", "pnetcdf", Kind.RAW),
    Version("adios2", "ADIOS2 BP5", "adios2", Kind.RAW),
    Version("hdf5-zstd-1", "HDF5, shuffle, zstd 1", "hdf5", Kind.LOSSLESS),
    Version("hdf5-zstd-3", "HDF5, shuffle, zstd 3", "hdf5", Kind.LOSSLESS),
    Version("hdf5-deflate-1", "HDF5, shuffle, deflate 1", "hdf5", Kind.LOSSLESS),
    Version("ambar-raw", "ambar, raw", "ambar", Kind.RAW, ours=True),
    Version("ambar-raw-reserved", "ambar, raw, reserved", "ambar", Kind.RAW, ours=True),
    Version("ambar-fast", "ambar, fast", "ambar", Kind.LOSSLESS, ours=True),
    Version("ambar", "ambar", "ambar", Kind.LOSSLESS, ours=True),
    Version("ambar-reserved", "ambar, reserved", "ambar", Kind.LOSSLESS, ours=True),
    Version("ambar-packed", "ambar, packed", "ambar", Kind.LOSSLESS, ours=True),
    Version("ambar-bounded", "ambar, error-bounded", "ambar", Kind.BOUNDED, ours=True),
    Version("ambar-bounded-fast", "ambar, error-bounded, fast", "ambar", Kind.BOUNDED, ours=True),
    Version("python-raw", "ambar, raw, Python", "rank", Kind.RAW, ours=True),
    Version("python", "ambar, Python", "rank", Kind.LOSSLESS, ours=True),
    Version("python-bounded", "ambar, error-bounded, Python", "rank", Kind.BOUNDED, ours=True),
)
VERSIONS = {version.key: version for version in _ALL}
"""All there are, in the order of the tables."""
REFERENCE = "binary-multifile"
"""What ambar's raw version is to be as fast as."""
ZSTD = "hdf5-zstd-1"
"""What ambar's lossless versions are to take half the CPU seconds of."""
