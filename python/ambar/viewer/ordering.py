"""Changes of a page reach the browser, in the order in which they were made."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import panel as pn
from panel.io import document as panel_document

P = ParamSpec("P")


def in_order(callback: Callable[P, None]) -> Callable[P, None]:
    """Return a callback of Bokeh whose changes follow all changes that were made before it.

    Panel queues messages while another one is written, but messages of Bokeh's own callbacks do not
    wait for this queue: the browser would get changes of models that it does not know yet. In
    `unlocked` they wait, and all changes of a callback are one message.

    Examples
    --------
    >>> from ambar.viewer.ordering import in_order
    >>> in_order(print)("without a page, the callback is unchanged")
    without a page, the callback is unchanged
    """

    @wraps(callback)
    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        with pn.io.unlocked():
            callback(*args, **kwargs)

    return call


def send_forgotten_messages() -> None:
    """Send messages that wait in Panel's queue without a task that sends them.

    The task that has sent earlier messages ends those that were queued meanwhile (Panel 1.9): the
    browser would get these with the next change of the page. Called in the loop of the server.
    """
    queues = getattr(panel_document, "_WRITE_MSGS", {})
    sending = getattr(panel_document, "_WRITE_BLOCK", {})
    for document in [document for document in queues if document not in sending]:
        sending[document] = True
        panel_document._dispatch_write_task(document, panel_document._dispatch_msgs, document)
