"""The message of a page: errors are shown above the picture, which keeps its last state."""

from __future__ import annotations

import html
from typing import Any

import panel as pn

_STYLES = {
    "background": "#b3261e",
    "color": "#fff",
    "border-radius": "5px",
    "padding": "7px 12px",
    "font-size": "13px",
}


class Message:
    """A line above a picture, hidden while there is nothing to say.

    Examples
    --------
    >>> from ambar.viewer.message import Message
    >>> message = Message()
    >>> message.fail(ValueError("invalid limits: 3:1"))
    >>> message.pane.object, message.pane.visible
    ('invalid limits: 3:1', True)
    """

    def __init__(self) -> None:
        self.pane: Any = pn.pane.HTML(  # an Alert is Markdown, whose modules load slowly
            "",
            visible=False,
            sizing_mode="stretch_width",
            margin=(5, 10),
            css_classes=["alert-danger"],
            styles=_STYLES,
        )

    def fail(self, error: Exception) -> None:
        """Show an error."""
        text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
        self.pane.object = html.escape(text, quote=False).replace("\n", "<br>")
        self.pane.visible = True

    def clear(self) -> None:
        """Hide the line."""
        self.pane.visible = False
