"""The order of the messages that change a page in the browser."""

from __future__ import annotations

from typing import Any

import panel as pn
from bokeh.layouts import column
from bokeh.models import Button, Div

from ambar.viewer.viewer import Viewer
from tests.helpers.browser import visited


def test_panel_changes_a_model_that_bokeh_has_just_added(browser: Any) -> None:
    def make_page() -> Any:
        button, holder = Button(label="Add"), column()

        def add() -> None:
            added = Div(text="added by Bokeh")
            holder.children = [added]  # a message of Bokeh
            with pn.io.unlocked():
                added.text = "changed by Panel"  # a message of Panel

        button.on_click(add)
        return pn.pane.Bokeh(column(button, holder))

    with visited(browser, Viewer(make_page, "order")) as screen:
        button = screen.page.get_by_role("button", name="Add")
        for _ in range(3):
            button.click()
            screen.wait_for("text=changed by Panel")
