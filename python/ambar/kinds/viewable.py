"""Objects that the viewer in the browser shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from ambar.kinds.registry import viewer_of
from ambar.kinds.request import ViewRequest

if TYPE_CHECKING:
    from ambar.viewer.viewer import Viewer


class Viewable:
    """Base of snapshots, series, meshes and collections: objects with a page in the viewer."""

    _kind: ClassVar[str]
    """The name of the kind of stores."""

    def view(self, *, against: Self | None = None) -> Viewer:
        """Show the data in the browser, or as a widget in a notebook.

        Parameters
        ----------
        against : optional
            A snapshot or series to compare with, for a snapshot or series.

        Returns
        -------
        Viewer
            Its method `serve` opens the page; a notebook shows it by itself.

        Raises
        ------
        ModuleNotFoundError
            If Panel is not installed, or PyVista for meshes.
        UnsupportedError
            With `against`, for meshes and collections.

        Examples
        --------
        >>> ambar.open("run.ambar").view()
        <ambar.Viewer> run.ambar: not served yet
        """
        viewer: Viewer = viewer_of(self._kind, self, ViewRequest.of(self, against))
        return viewer
