"""All ways of the study, in the order of its tables."""

from __future__ import annotations

from ambar_bench.mesh import ambar_ways, vtk_ways, zstd_ways
from ambar_bench.mesh.ways import Way

WAYS: dict[str, type[Way]] = {
    way.key: way
    for way in (
        vtk_ways.XmlZlib,
        vtk_ways.XmlLz4,
        vtk_ways.XmlLzma,
        vtk_ways.Vtkhdf,
        vtk_ways.Xdmf,
        zstd_ways.Blosc2,
        zstd_ways.Zvtk,
        zstd_ways.PyvistaZstd,
        zstd_ways.PyvistaZstdShuffle,
        ambar_ways.AmbarFast,
        ambar_ways.Ambar,
        ambar_ways.AmbarSmall,
        ambar_ways.AmbarReorder,
    )
}
