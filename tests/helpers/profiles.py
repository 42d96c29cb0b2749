"""Datasets of profiles, as observing platforms measure them, and collections of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import ambar


def profile(number: int, depth: int = 12, **more: Any) -> xr.Dataset:
    rng = np.random.default_rng(number)
    times = np.datetime64("2020-01-01", "ns") + np.arange(9) * np.timedelta64(1, "h")
    return xr.Dataset(
        {
            "temperature": (("depth", "time"), rng.normal(10, 4, (depth, 9)).astype("f4")),
            "count": ("time", rng.integers(0, 99, 9).astype("i2"), {"long_name": "samples"}),
            "quality": ((), np.int8(number % 3)),
            **more,
        },
        {"depth": np.linspace(0, 500, depth).astype("f4"), "time": times},
        {"id": f"p{number}", "platform": "argo" if number % 2 else "ship", "project": "deep"},
    )


def written(path: Path, datasets: dict[str, xr.Dataset], **options: Any) -> ambar.Collection:
    with ambar.open_collection(path, "w-", fsync=False, **options) as profiles:
        profiles.add_many(datasets.items())
    return ambar.open_collection(path)
