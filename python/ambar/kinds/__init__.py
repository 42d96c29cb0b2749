"""Kinds of files and stores: the registry, and the arguments of the functions of a kind."""

from __future__ import annotations

from ambar.kinds.registry import Kind, Resource
from ambar.kinds.request import (
    Conversion,
    ConvertRequest,
    CopyRequest,
    Export,
    ExportRequest,
    MergeRequest,
    PlotRequest,
    ViewRequest,
)

__all__ = [
    "Conversion",
    "ConvertRequest",
    "CopyRequest",
    "Export",
    "ExportRequest",
    "Kind",
    "MergeRequest",
    "PlotRequest",
    "Resource",
    "ViewRequest",
]
