"""The message of a page: errors are shown above the picture, which keeps its last state."""

from __future__ import annotations

import html
from typing import Any

import panel as pn

_ERROR, _PLAIN = "#b3261e", "#5b6470"
_READING = "reading ..."
_STYLES = {
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
            styles=_STYLES,
        )

    def fail(self, error: Exception) -> None:
        """Show an error."""
        text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
        self._show(html.escape(text, quote=False).replace("\n", "<br>"), "alert-danger", _ERROR)

    def wait(self, is_waiting: bool) -> None:
        """Show that values are being read, or hide it."""
        if is_waiting:
            self._show(_READING, "alert-info", _PLAIN)
        elif self.pane.object == _READING:
            self.clear()

    def clear(self) -> None:
        """Hide the line."""
        self.pane.visible = False

    def _show(self, text: str, css_class: str, background: str) -> None:
        self.pane.param.update(
            object=text,
            css_classes=[css_class],
            styles={**_STYLES, "background": background},
            visible=True,
        )
