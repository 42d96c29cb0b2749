"""The frame of every page: a title, a side bar of controls, and the picture beside it.

The frame is a template of Panel that loads no fonts or scripts of other hosts: it works offline.
The query of the URL chooses bright or dark colours (``theme=dark``), as everywhere in Panel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import panel as pn
from bokeh.events import ConnectionLost
from bokeh.models import CustomJS, SaveTool

_TEMPLATE = """
{% extends base %}
{% block postamble %}
<style>
  :root { --edge: #d9dde3; --ground: #fff; --side: #f6f7f9; --text: #1d232b; --faint: #667180; }
  :root.dark {
    --edge: #343a43; --ground: #16191d; --side: #1e2228; --text: #e4e8ed; --faint: #98a2b0;
  }
  body {
    margin: 0; background: var(--ground); color: var(--text);
    font: 14px/1.4 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  }
  #frame { display: grid; grid-template: auto 1fr / 292px 1fr; height: 100vh; }
  header {
    grid-column: 1 / 3; display: flex; align-items: baseline; gap: 14px; padding: 9px 16px;
    border-bottom: 1px solid var(--edge);
  }
  header b { font-size: 16px; }
  header span {
    color: var(--faint); flex: 1; white-space: nowrap; overflow: hidden; text-overflow: ellipsis;
  }
  header button {
    border: 1px solid var(--edge); border-radius: 5px; padding: 3px 10px; cursor: pointer;
    background: var(--side); color: var(--text); font: inherit; font-size: 13px;
  }
  aside {
    overflow: hidden auto; background: var(--side); border-right: 1px solid var(--edge);
    padding: 6px 8px;
  }
  main { min-width: 0; min-height: 0; position: relative; padding: 4px 8px 4px 4px; }
  #lost {
    display: none; position: fixed; inset: auto 0 0 0; padding: 12px; text-align: center;
    color: #fff; background: #b3261e; z-index: 9;
  }
  #lost.shown { display: block; }
</style>
<script>
  const is_dark = new URLSearchParams(location.search).get("theme") === "dark";
  document.documentElement.classList.toggle("dark", is_dark);
  function change_theme() {
    const query = new URLSearchParams(location.search);
    query.set("theme", is_dark ? "default" : "dark");
    location.search = query;
  }
</script>
{% endblock %}
{% block contents %}
<div id="frame">
  <header><b>{{ heading | e }}</b><span>{{ subtitle | e }}</span>
    <button onclick="change_theme()">{{ "Light" if dark else "Dark" }}</button></header>
  <aside>{{ embed(roots.sidebar) }}</aside>
  <main>{{ embed(roots.main) }}</main>
</div>
<div id="lost">The server of this page has ended or cannot be reached. Start it again with
  <code>ambar view</code>, and open the URL that it prints.</div>
{% endblock %}
"""
_LOST = 'document.getElementById("lost").classList.add("shown")'


def frame(title: str, subtitle: str, sidebar: Sequence[Any], main: Any) -> Any:
    """Return the page: what Panel shows, with its title above and its controls at the left.

    Parameters
    ----------
    title, subtitle
        What the page shows, such as the name of the store; and facts such as its time.
    sidebar
        Controls, from top to bottom.
    main
        The picture; it should stretch in both directions.
    """
    page = _Page(_TEMPLATE)
    page.add_variable("heading", title)
    page.add_variable("subtitle", subtitle)
    page.add_variable("dark", is_dark())
    page.add_panel("sidebar", pn.Column(*sidebar, sizing_mode="stretch_width", margin=0))
    page.add_panel("main", main)
    if pn.state.curdoc is not None:
        pn.state.curdoc.js_on_event(ConnectionLost, CustomJS(code=_LOST))
    return page


class _Page(pn.Template):  # type: ignore[misc]
    """A template whose text is short: Panel asks for it, and that of all widgets is slow."""

    def __repr__(self) -> str:
        return "Page"


def is_dark() -> bool:
    """Whether the visitor of the current page has chosen the dark theme."""
    return bool(pn.config.theme == "dark")


def text_color() -> str:
    """Return the colour of text on the current page."""
    return "#e4e8ed" if is_dark() else "#1d232b"


def style(plot: Any) -> Any:
    """Return a figure of Bokeh in the colours and the type of the page; it is changed."""
    text, faint = text_color(), "#5b6470" if is_dark() else "#b4bcc6"
    plot.background_fill_color = plot.border_fill_color = None
    plot.outline_line_color = faint
    for axis in plot.axis:
        axis.update(
            axis_line_color=faint,
            major_tick_line_color=faint,
            minor_tick_line_color=faint,
            major_label_text_color=text,
            axis_label_text_color=text,
            major_label_text_font_size="12px",
            axis_label_text_font_size="13px",
            axis_label_text_font_style="normal",
        )
    for legend in plot.legend:
        legend.update(background_fill_color=None, border_line_color=faint, label_text_color=text)
    plot.grid.grid_line_color = None
    plot.title.update(text_color=text, text_font_size="14px")
    plot.toolbar.logo = None
    for tool in plot.select({"type": SaveTool}):
        tool.filename = "ambar.png"  # without a name, the browser asks for one
    return plot


def set_title(plot: Any, title: str) -> None:
    """Set the title of a figure, and the name of the file as which it is saved."""
    plot.title.text = title
    for tool in plot.select({"type": SaveTool}):
        tool.filename = f"{title}.png"
