"""Pictures of objects in Python: the axes that ``object.plot()`` draws on and returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar._util.arguments import names_of
from ambar._util.optional import require
from ambar.kinds.request import Path, PlotRequest, build

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_object(
    draw: Callable[[Any, Any, Any], Any],
    opened: Any,
    kind: tuple[str, type[PlotRequest]],
    where: Path,
    fields: str | Sequence[str] | None,
    ax: Axes | None,
    options: Mapping[str, Any],
) -> Any:
    """Draw an object on a new figure of pyplot or on given axes, and return the axes.

    Parameters
    ----------
    draw
        Draws the object for a request on a figure or axes.
    opened
        The object.
    kind
        The name of its kind, and the class of its requests.
    where
        The location, for messages.
    fields, ax, options
        The arguments of the call.

    Returns
    -------
    matplotlib.axes.Axes or numpy.ndarray
        The axes; of several panels a flat array of them, row by row.

    Raises
    ------
    ValueError
        If an option does not exist, or `ax` is given for several panels.
    """
    name, cls = kind
    names = () if fields is None else tuple(names_of("fields", fields))
    request = build(cls, name, where, options, path=where, fields=names)
    figure = draw(opened, request, ax if ax is not None else new_figure())
    if ax is not None:
        return ax
    axes = figure.axes
    return axes[0] if len(axes) == 1 else np.array(axes)


def new_figure() -> Any:
    """Return a figure of pyplot: notebooks show it, and ``plt.show()``."""
    require("matplotlib", purpose="plot", install="ambar[plot]")
    from matplotlib import pyplot

    return pyplot.figure()
