"""Make the stores of examples/data that are computed by formula.

python examples/make_data.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

import ambar
import ambar.xarray

DATA = Path(__file__).resolve().parent / "data"


def make_flow(target: Path) -> None:
    """Write the speed and the velocity of the potential flow around a cylinder."""
    import pyvista as pv

    disc = pv.Disc(inner=1, outer=4, r_res=60, c_res=160).triangulate()
    x, y, _ = np.asarray(disc.points, np.float64).T
    velocity = np.conj(1 - 1 / (x + 1j * y) ** 2)
    disc["speed"] = np.abs(velocity)
    disc["velocity"] = np.stack([velocity.real, velocity.imag, 0 * x], axis=1)
    ambar.write_mesh(disc, target, mode="w", error_bound=1e-4)


def make_casts(target: Path) -> None:
    """Write profiles of temperature of two gliders that cross a current."""
    with ambar.open_collection(target, "w") as casts:
        for number in range(160):
            along, glider = number // 2 / 79, number % 2
            depth = np.arange(0.0, 800.0, 10.0)
            front = np.tanh(8 * (along - 0.5))
            surface = 22 + 3 * front + 0.6 * np.sin(25 * along + glider)
            mixed = 60 + 40 * along
            profile = 6 + (surface - 6) / (1 + np.exp((depth - mixed - 180 * (front + 1)) / 90))
            casts.add(
                f"glider{glider + 1}_{number // 2:03}",
                xr.Dataset(
                    {"temperature": ("depth", profile.astype("f4"), {"units": "degC"})},
                    {
                        "depth": ("depth", depth, {"units": "m"}),
                        "longitude": ((), -70 + 8 * along + 0.3 * np.sin(12 * along)),
                        "latitude": ((), 36 + 4 * along + 0.8 * glider + 0.4 * np.cos(9 * along)),
                    },
                    {"platform": f"glider{glider + 1}"},
                ),
            )


def make_section(target: Path) -> None:
    """Write a section of temperature across a current."""
    depth = np.concatenate([np.arange(0, 200, 5.0), np.arange(200, 1200, 10.0)])
    latitude = np.linspace(34, 42, 400)
    slope = 250 * np.tanh((38 - latitude) / 0.6)[None, :] + 350
    waves = 40 * np.sin(latitude * 9)[None, :] * np.exp(-depth / 700)[:, None]
    values = 3 + 19 / (1 + np.exp((depth[:, None] - slope + waves) / 160))
    dataset = xr.Dataset(
        {"temperature": (("depth", "latitude"), values, {"units": "degC"})},
        {
            "depth": ("depth", depth, {"units": "m", "positive": "down"}),
            "latitude": ("latitude", latitude, {"units": "degrees_north"}),
        },
    )
    encoding = {"temperature": {"error_bound": 0.001}}
    dataset.ambar.write(target, mode="w", encoding=encoding)


if __name__ == "__main__":
    make_flow(DATA / "flow.ambar")
    make_casts(DATA / "casts.ambar")
    make_section(DATA / "section.ambar")
