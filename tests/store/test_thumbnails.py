"""Thumbnails in notebooks: right side up, of few bytes, and none of damaged or large data."""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ambar
from ambar.figures import thumbnails
from tests.helpers.sample_outputs import output
from tests.helpers.store_chunks import chunks

Image = pytest.importorskip("PIL.Image")


def pixels(html: str) -> np.ndarray:
    """Return the colours of the image in HTML, as another decoder reads them."""
    encoded = re.search(r'src="data:image/png;base64,([^"]+)"', html)
    assert encoded is not None
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(encoded[1]))))


def test_colours_are_those_of_matplotlib() -> None:
    colormaps = pytest.importorskip("matplotlib").colormaps
    values = np.linspace(-1, 1, 64)[None].repeat(3, 0)
    for low in (-1.0, 1.0):  # of both signs, and positive
        html = thumbnails.thumbnail(values + low + 1, "a <title>")
        assert "a &lt;title>" in html
        found = pixels(html)[0, ::2] / 255
        expected = colormaps["RdBu_r" if low < 0 else "inferno"](np.linspace(0, 1, 64))[:, :3]
        assert np.abs(found - expected).max() < 0.06


def test_snapshots_and_arrays_have_thumbnails(tmp_path: Path) -> None:
    store = tmp_path / "run.ambar"
    ambar.convert(output("gravpart"), store, fsync=False)
    snapshot = ambar.open_snapshot(store)
    found = pixels(snapshot._repr_html_()).astype(float)
    plane = snapshot.amr.slice("density", level=6).to_numpy()[::-1]
    # Of inferno, the sum of channels increases with the value.
    brightness = found.sum(axis=2)[::2, ::2]
    assert np.corrcoef(brightness.ravel(), np.log(plane).ravel())[0, 1] > 0.95
    chunk = max(chunks(store, "amr/density/").values(), key=len)
    store.write_bytes(store.read_bytes().replace(chunk, chunk[:-9] + bytes(9)))
    damaged = ambar.open_snapshot(store)._repr_html_()
    assert "hydro" in damaged
    assert "<img" not in damaged
    with ambar.create(tmp_path / "arrays.ambar", fsync=False) as writer:
        writer.create_array("small", np.eye(9))
        writer.create_array("line", np.arange(9))
        writer.create_array("large", np.zeros((1 << 10, 1 << 10)))
    arrays = ambar.open_store(tmp_path / "arrays.ambar")
    # Rows of arrays are shown from the lowest upwards.
    assert pixels(arrays["small"]._repr_html_())[-1, 0].sum() > 600
    for name in ("line", "large"):
        assert "<img" not in arrays[name]._repr_html_()


def test_thumbnails_import_neither_matplotlib_nor_xarray(tmp_path: Path) -> None:
    ambar.convert(output("sedov"), tmp_path / "run.ambar", fsync=False)
    code = f"""import sys, ambar
assert "<img" in ambar.open({str(tmp_path / "run.ambar")!r})._repr_html_()
assert not {{"matplotlib", "xarray"}} & sys.modules.keys()"""
    subprocess.run([sys.executable, "-c", code], check=True)
