"""The viewer in the browser
=========================

``ambar view run.ambar`` opens a page that reads what the screen shows: a large run is panned and
zoomed like a map.
"""

from urllib.request import urlopen

import matplotlib.pyplot as plt

import ambar

series = ambar.open_series("../../data/implosion.ambar")
viewer = series.view()  # in a notebook, this is a widget
viewer.serve(browser=False)
with urlopen(viewer.url) as page:
    print(page.status, page.headers["content-type"])
viewer.stop()

# %%
# Such a page in Chromium. "As a call of Python" has the code that draws the picture.
page = plt.imread("../../../docs/images/view-cells.png")
height, width, _ = page.shape
figure = plt.figure(figsize=(10, 10 * height / width))
axes = figure.add_axes((0, 0, 1, 1))
axes.imshow(page)
axes.set_axis_off()
