"""The C library that is installed with the Python package: folders, and options for compilers.

``python -m ambar.config --cflags --libs`` prints what a C or C++ compiler needs.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path

__all__ = ["get_include", "get_library"]

_NATIVE = Path(__file__).with_name("native")
_LIBRARY = _NATIVE / "lib" / ("libambar.dylib" if sys.platform == "darwin" else "libambar.so.0")


def get_include() -> str:
    """Return the folder of the headers for C and C++: ``ambar.h``, ``ambar_mpi.h`` and others.

    The folder ``fortran`` in it has the sources of the Fortran modules.

    Returns
    -------
    str

    Raises
    ------
    FileNotFoundError
        If this installation has no C library; the message says how to get it.

    Examples
    --------
    >>> ambar.get_include()
    '.../site-packages/ambar/native/include'
    """
    return os.fspath(_check_installed(_NATIVE / "include"))


def get_library() -> str:
    """Return the path of the shared C library, which programs are linked with.

    The library requires no Python, and has the same API in all versions with its name.

    Returns
    -------
    str

    Raises
    ------
    FileNotFoundError
        If this installation has no C library; the message says how to get it.

    Examples
    --------
    >>> ambar.get_library()
    '.../site-packages/ambar/native/...libambar.so.0'
    """
    return os.fspath(_check_installed(_LIBRARY))


def _check_installed(path: Path) -> Path:
    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist: this installation of ambar has no C library; install a wheel, "
            "or run `make native` in a checkout"
        )
    return path


def _cflags() -> str:
    return f"-I{shlex.quote(get_include())}"


def _libs() -> str:
    folder = shlex.quote(os.fspath(_check_installed(_LIBRARY).parent))
    return f"-L{folder} -lambar -Wl,-rpath,{folder}"


def _folder(*names: str) -> str:
    return os.fspath(_check_installed(_NATIVE.joinpath(*names)))


def _plugin_path() -> str:
    return os.fspath(
        _check_installed(Path(__file__).with_name("plugins") / "libh5z_ambar.so").parent
    )


_OPTIONS = {
    "--cflags": ("options of the compiler", _cflags),
    "--libs": ("options of the linker; programs find the library when they run", _libs),
    "--include": ("the folder of the headers", get_include),
    "--library": ("the path of the shared library", get_library),
    "--prefix": ("the folder of lib and include, for CMAKE_PREFIX_PATH", _folder),
    "--cmakedir": (
        "the folder of CMake's package, for ambar_DIR",
        lambda: _folder("lib/cmake/ambar"),
    ),
    "--pkgconfigdir": ("the folder for PKG_CONFIG_PATH", lambda: _folder("lib/pkgconfig")),
    "--fortran": ("the folder of the Fortran sources", lambda: _folder("include/fortran")),
    "--hdf5-plugin": ("the folder of the filter for HDF5, for HDF5_PLUGIN_PATH", _plugin_path),
}


def main(arguments: list[str] | None = None) -> int:
    """Print what the options ask for, in their order, on one line."""
    parser = argparse.ArgumentParser(
        prog="python -m ambar.config",
        description="Print where the C library of ambar is, and the options to compile with it.",
        epilog="example: cc solver.c $(python -m ambar.config --cflags --libs)",
    )
    for name, (description, _) in _OPTIONS.items():
        parser.add_argument(name, dest="names", action="append_const", const=name, help=description)
    names = parser.parse_args(arguments).names
    if not names:
        parser.error(f"expected an option, found none; one of {', '.join(_OPTIONS)}")
    try:
        print(*(_OPTIONS[name][1]() for name in names))  # noqa: T201
    except FileNotFoundError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
