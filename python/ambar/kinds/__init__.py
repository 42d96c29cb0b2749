"""Kinds of files and stores: the registry, and what functions of a kind are called with."""

from __future__ import annotations

from ambar.kinds.registry import Kind, Resource
from ambar.kinds.request import Conversion, ExportRequest, PlotRequest, Request

__all__ = ["Conversion", "ExportRequest", "Kind", "PlotRequest", "Request", "Resource"]
