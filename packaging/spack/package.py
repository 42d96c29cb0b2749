"""py-ambar for Spack: the Python package, and the library for C, C++ and Fortran."""

from spack.package import depends_on, license, run_after, run_before  # noqa: A004 - Spack's
from spack_repo.builtin.build_systems.python import PythonPackage


class PyAmbar(PythonPackage):
    """One store for simulation output: a ZIP of a Zarr v3 hierarchy, checked and fast."""

    # The source distribution has the Makefile and the headers, too.
    pypi = "ambar/ambar-0.1.0.tar.gz"

    license("MIT OR Apache-2.0")

    # No version is published yet. docs/project/releasing.md: how one is added, with its sha256.

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("rust@1.89:", type="build")
    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-maturin@1.9:1", type="build")
    depends_on("py-numpy@1.26:", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-typer@0.19:", type=("build", "run"))

    @run_before("install")
    def build_native(self):
        """Build the C library and the filter for HDF5, which the Python package contains."""
        self.module.make("native")

    @run_after("install")
    def install_library(self):
        """Install the C library, the headers and the filter for HDF5 into the same prefix."""
        self.module.make("install", f"PREFIX={self.prefix}")

    def setup_run_environment(self, env):
        """Let HDF5 find the filter."""
        env.prepend_path("HDF5_PLUGIN_PATH", self.prefix.lib.hdf5.plugin)
