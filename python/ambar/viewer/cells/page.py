"""The page of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import panel as pn
from bokeh.plotting import figure

from ambar.snapshot.snapshot import Snapshot
from ambar.viewer.layout import frame, style

if TYPE_CHECKING:
    from ambar.kinds.request import ViewRequest
    from ambar.snapshot.series import Series


def page(opened: Snapshot | Series, request: ViewRequest) -> Any:
    """Return the page of a snapshot or a series."""
    snapshot = opened if isinstance(opened, Snapshot) else opened[-1]
    field = pn.widgets.Select(
        name="Field", options=snapshot.amr.fields, sizing_mode="stretch_width"
    )
    image = snapshot.amr.slice(field.value)
    plot = figure(sizing_mode="stretch_both")
    plot.image(image=[image.to_numpy()], x=0, y=0, dw=1, dh=1)
    return frame(request.title, "", [field], style(plot))
