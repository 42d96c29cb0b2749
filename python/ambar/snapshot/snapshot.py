"""One output of a simulation, from a store or straight from its code's files: the same object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ambar import _core
from ambar._util import html, text
from ambar._util.optional import require
from ambar._util.properties import cached_property
from ambar.kinds.figures import draw_object
from ambar.kinds.viewable import Viewable
from ambar.snapshot.amr import Amr
from ambar.snapshot.field_names import CELL_COMPONENTS
from ambar.snapshot.field_rows import StoredFields, code_unit, describe_fields, field_details
from ambar.snapshot.loading import (
    HALOS,
    SPECIES,
    LoadedSource,
    LoadRequest,
    Source,
    SourceWithUnits,
    choose_fields,
    has_cells,
    is_table,
)
from ambar.snapshot.particles import Particles
from ambar.snapshot.run_info import info_of
from ambar.snapshot.units import Units, unit_system
from ambar.store.group_description import Description

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

    from ambar.snapshot.amrex_info import AmrexInfo
    from ambar.snapshot.code_info import CodeInfo
    from ambar.snapshot.regions import Region
    from ambar.snapshot.run_info import RamsesInfo
    from ambar.store.store import Store


class _Tables(dict[str, Particles]):
    """Tables by name; `what` names them in messages."""

    def __init__(self, tables: dict[str, Particles], what: str) -> None:
        super().__init__(tables)
        self._what = what

    def __missing__(self, name: object) -> Particles:
        hint = text.suggestion(str(name), self)
        raise _core.NotFoundError(f"{self._what} {name!r} does not exist; {hint}")


class StoredSource(Source):
    """A snapshot in a store, at `path`: the root, or a step of a series."""

    def __init__(self, store: Store, path: str) -> None:
        self.store = store
        self.path = path.rstrip("/")
        self.location = store.location + (f" {path}" if self.path else "")
        attributes = store._ambar_attributes(path)
        try:
            self.info = info_of(attributes.get("source"), attributes["info"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _core.CorruptError(
                f"{self.location}: the attributes are not those of a snapshot: {error!r}"
            ) from error
        about = Description({"components": {}, "missing": {}, **attributes}, self.location)
        components, missing = about.object("components"), about.object("missing")
        self.components = {name: list(components.strings(name)) for name in components}
        self.missing = {name: missing.string(name) for name in missing}

    def __reduce__(self) -> tuple[object, tuple[Store, str]]:
        return StoredSource, (self.store, self.path or "/")

    def amr(self) -> _core.Amr:
        """Return the cells."""
        return self.store._core.amr(f"{self.path}/amr")

    def table(self, name: str) -> _core.Table | None:
        """Return particles, sinks or clumps."""
        return self.store._core.table(f"{self.path}/{name}")

    def stored_fields(self, group: str) -> StoredFields:
        """Return the arrays of "amr" or of a component."""
        return StoredFields(self.store, f"{self.path}/{group}")


class Snapshot(Viewable):
    """One output of a simulation: a RAMSES output, an AMReX plotfile, or one in a store.

    `ambar.open_snapshot` returns it. `info` and `components` are known when it is opened. `amr`,
    `particles`, `sinks` and `clumps` are its components; they raise KeyError with the reason if the
    output lacks them. Their methods read values. `load` reads a part into memory.

    A snapshot pickles as its location, not as its values: another process opens the files again.

    Examples
    --------
    >>> snapshot = ambar.open_snapshot("output_00002")
    >>> snapshot.info.ndim, list(snapshot.components)
    (3, ['hydro', 'gravity', 'particles'])
    >>> cells = snapshot.amr.read(["rho", "x"], region=ambar.Sphere("bc", 0.1))
    >>> len(cells), list(cells)
    (136, ['rho', 'x'])
    """

    _kind = "snapshot"

    def __init__(self, source: Source) -> None:
        self._source = source

    def __reduce__(self) -> tuple[object, tuple[Source]]:
        return Snapshot, (self._source,)

    if not TYPE_CHECKING:  # type checkers would accept every attribute

        def __getattr__(self, name: str) -> Any:
            advice = "; the fields of hydro, gravity and rt are in run.amr"
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
                f"{advice if name in CELL_COMPONENTS else ''}",
                name=name,
                obj=self,
            )

    @property
    def location(self) -> str:
        """File, folder or URL of the snapshot, with the step of a series."""
        return self._source.location

    @property
    def info(self) -> RamsesInfo | AmrexInfo | CodeInfo:
        """Run information: box, time, cosmology, levels and units."""
        return self._source.info

    @property
    def _stored_at(self) -> tuple[Store, str] | None:
        """The store and the path of its group; None for data that are not in a store."""
        source = self._source
        if isinstance(source, SourceWithUnits):
            source = source.source
        if isinstance(source, StoredSource):
            return source.store, source.path or "/"
        return None

    @property
    def components(self) -> dict[str, list[str]]:
        """The available components and their fields.

        Components of RAMSES are hydro, gravity, rt, particles, sinks and clumps. Those of AMReX are
        cells and, for each species, particles/SPECIES.
        """
        return {name: list(fields) for name, fields in self._source.components.items()}

    @property
    def missing(self) -> dict[str, str]:
        """Unavailable components, and the reason for each."""
        return dict(self._source.missing)

    @property
    def namelist(self) -> str:
        """The namelist of the run as text; empty if the output has none."""
        return self.info.namelist

    @cached_property
    def amr(self) -> Amr:
        """The leaf cells of all levels with all their fields."""
        if not has_cells(self._source.components):
            raise self._absent("cells", *CELL_COMPONENTS)
        return Amr(self._source)

    @property
    def particles(self) -> Particles:
        """Particles of all families; for AMReX the only species.

        Raises ValueError if there are several species: use `species`.
        """
        if "particles" in self._source.components or not self.species:
            return self._rows("particles")
        if len(self.species) > 1:
            raise _core.InvalidError(
                f"{self.location}: expected one species of particles, found "
                f"{', '.join(self.species)}; use one of snapshot.species"
            )
        return next(iter(self.species.values()))

    @property
    def species(self) -> dict[str, Particles]:
        """Species of the particles, by name; empty for RAMSES, whose particles have families."""
        return self._tables_below(SPECIES)

    @property
    def halos(self) -> dict[str, Particles]:
        """Catalogues of halos that were converted with the snapshot, by name; often empty.

        "groups" and "subhalos" are those of FOF and Subfind, "rockstar" and "hop" those of the
        codes of this name. Their positions are in code length, so that regions select halos.
        """
        return self._tables_below(HALOS)

    def _tables_below(self, start: str) -> dict[str, Particles]:
        names = [name for name in self._source.components if name.startswith(start)]
        what = "species" if start == SPECIES else "catalogue of halos"
        return _Tables(
            {name.removeprefix(start): self._rows(name) for name in names},
            f"{self.location}: the {what}",
        )

    @property
    def sinks(self) -> Particles:
        """Sink particles."""
        return self._rows("sinks")

    @property
    def clumps(self) -> Particles:
        """Clumps, as the clump finder of RAMSES wrote them."""
        return self._rows("clumps")

    def with_units(self, units: Units | str) -> Snapshot:
        """Return the snapshot with given code units, which plotfiles do not state.

        Parameters
        ----------
        units : Units or {"cgs", "Nyx", "SI", "WarpX"}
            The units, or a name: "cgs", for example of Castro; "SI"; "WarpX", which is SI with
            electric and magnetic fields, currents, and a density of charge as "rho"; "Nyx", which
            is comoving Mpc, solar masses and km/s. Its lengths and densities become proper ones, by
            ``info.aexp``. ``info.age`` is the proper time since the start of the run.
            Magnetic fields are such that B**2 / 2 is a pressure in code units.

        Returns
        -------
        Snapshot
            A view; no data are read.

        Raises
        ------
        TypeError
            If `units` are neither `Units` nor a string.
        ValueError
            If the name is unknown.

        Examples
        --------
        >>> run = ambar.open_snapshot("plt00200").with_units("Nyx")
        >>> round(run.info.units.velocity("km/s"), 6)
        1.0

        Any units, here kpc and Myr:

        >>> kpc, sun, myr = 3.08567758128e21, 1.9891e33, 3.15576e13
        >>> run = run.with_units(ambar.Units(unit_l=kpc, unit_d=sun / kpc**3, unit_t=myr))
        """
        if isinstance(units, str):
            units = unit_system(units, self.info.aexp)
        if not isinstance(units, Units):
            raise TypeError(f"expected ambar.Units or the name of a system, found {units!r:.80}")
        return Snapshot(SourceWithUnits(self._source, units))

    def load(
        self,
        fields: Sequence[str] | str | None = None,
        *,
        region: Region | None = None,
        levels: tuple[int, int] | None = None,
        max_level: int | None = None,
        threads: int | None = None,
    ) -> Snapshot:
        """Return the snapshot, or a part of it, in memory.

        Parameters
        ----------
        fields : str or sequence of str, optional
            Components ("hydro", "cells", "particles"), fields of one component ("particles/mass"),
            and fields of any component ("density", also as "rho"). By default everything. Derived
            columns of cells need not be loaded.
        region : Region, optional
            Cells whose centre, and particles, sinks and clumps whose position, is inside. It
            extends across periodic faces of the box. Of patches, the boxes are cut to the bounding
            box of the region, rounded outward to cells of level 0.
        levels : tuple of int, optional
            ``(lowest, highest)`` level of the leaf cells, both included, as in `Amr.read`. Not for
            patches.
        max_level : int, optional
            The level at which the hierarchy ends: refined cells of this level become leaves, with
            the values that the simulation code stores in them. `levels` then selects among these
            leaves. Not for trees in stores, which have leaf cells only: `ambar.convert` has a
            `max_level`.
        threads : int, optional
            Number of threads; all cores by default.

        Returns
        -------
        Snapshot
            With the chosen components and fields. Reading from it does not touch files any more. It
            pickles as its location and these arguments: another process loads it again.

        Raises
        ------
        KeyError
            If a component or field does not exist.
        ValueError
            If the region or the levels are invalid, if a component has no positions for the region,
            or if "x" is given together with cells: "particles/x" is a field of particles.
        UnsupportedError
            If `levels` are given for patches, or `max_level` for a tree in a store.
        CorruptError
            If a file is damaged or cut short.

        Examples
        --------
        >>> snapshot = ambar.open_snapshot("output_00002")
        >>> part = snapshot.load(["rho", "particles/mass"], region=ambar.Sphere("bc", 0.25))
        >>> part.components
        {'hydro': ['density'], 'particles': ['mass']}
        >>> len(part.amr) < len(snapshot.amr)
        True
        """
        chosen = choose_fields(self._source, fields)
        request = LoadRequest(chosen, region, levels, max_level, threads)
        return Snapshot(LoadedSource(self._source, request))

    def plot(
        self, fields: str | Sequence[str] | None = None, *, ax: Axes | None = None, **options: Any
    ) -> Any:
        """Draw the cells or particles as ``ambar plot`` does.

        Cells are drawn as a map, of two dimensions as an image, of one as a line. Units, colours
        and limits suit the values.

        Parameters
        ----------
        fields : str or sequence of str, optional
            Fields, derived fields or arithmetic of fields, each in a panel; by default the density,
            or the mass of particles.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on, for one panel; by default a new figure of pyplot.
        **options
            Options of ``ambar plot``: `slice_at`, `axis`, `up`, `particles`, `species`, `weight`,
            `statistic`, `where`, `region`, `cut`, `center`, `width`, `depth`, `length_unit`,
            `code_units`, `level`, `resolution`, `levels`, `unit`, `log`, `limits`, `colors`,
            `title`, and `against`, another version of the snapshot.

        Returns
        -------
        matplotlib.axes.Axes or numpy.ndarray
            The axes; of several panels an array of them.

        Raises
        ------
        KeyError
            If a field does not exist.
        ValueError
            If an option is invalid, or there are no values to draw.
        ModuleNotFoundError
            If matplotlib or xarray is not installed.

        Examples
        --------
        >>> run = ambar.open_snapshot("run.ambar")
        >>> axes = run.plot("density", axis="x", center="max:density", width=0.5)
        >>> axes.get_xlabel()
        'y [code length]'
        >>> axes.figure.savefig("density.png")
        """
        from ambar.snapshot.pictures.drawing import draw
        from ambar.snapshot.pictures.options import CellsPlot

        return draw_object(draw, self, ("snapshot", CellsPlot), self.location, fields, ax, options)

    def to_xarray(self) -> xr.DataTree:
        """Return everything as a DataTree: cells in /amr, rows in /particles and so on.

        Data in a store are dask arrays and are read when they are computed; other data are read
        into memory.

        Returns
        -------
        xarray.DataTree
            Datasets of `Amr.to_xarray` and `Particles.to_xarray`.

        Raises
        ------
        ModuleNotFoundError
            If xarray is not installed, or, for data in a store, dask.

        Examples
        --------
        >>> tree = ambar.open_snapshot("run.ambar").to_xarray()
        >>> list(tree.children)
        ['amr', 'particles']
        >>> tree["particles/mass"].dims
        ('particles',)
        """
        require("xarray", purpose="to_xarray", install="ambar[xarray]")
        import xarray as xr

        tree = {}
        if has_cells(self._source.components):
            tree["/amr"] = self.amr.to_xarray()
        for name in self._source.components:
            if is_table(name):
                rows = self._rows(name).to_xarray()
                dimension = name.removeprefix(SPECIES).removeprefix(HALOS)
                tree[f"/{name}"] = rows.rename_dims(dict.fromkeys(rows.sizes, dimension))
        return xr.DataTree.from_dict(tree)

    def to_yt(self, **options: Any) -> Any:
        """Return a yt dataset; values are read when they are needed.

        It has the cells, and the particles that yt reads from the files: yt reads a plotfile
        without ``job_info`` as a ``BoxlibDataset``, which has none. `species` has them.
        Fields, units, cosmology and derived fields are those of yt's own readers of RAMSES and
        AMReX (yt 4.4): ("gas", "density"), ("io", "particle_mass"). ``yt.load("run.ambar")``
        returns the same for a store, ``yt.load("run.ambar", output=2)`` for one of a series. Of
        other codes, the dataset is one of ``yt.load_amr_grids``, with cells only.

        Parameters
        ----------
        **options
            Options of yt's datasets: ``units_override``, ``unit_system``.

        Returns
        -------
        yt.data_objects.static_output.Dataset
            Of yt's class for the code that wrote the snapshot.

        Raises
        ------
        UnsupportedError
            If there are no cells; for trees, if they have fewer than three dimensions, or leaf
            cells do not fill the box.
        ModuleNotFoundError
            If yt is not installed.

        Examples
        --------
        >>> dataset = ambar.open_snapshot("run.ambar").to_yt()
        >>> ball = dataset.sphere("c", (0.2, "code_length"))
        >>> dataset.domain_dimensions.tolist(), ball["gas", "density"].size
        ([16, 16, 16], 1225)
        """
        require("yt", purpose="to_yt", install="yt")
        from ambar.snapshot.interop.yt.datasets import dataset_of

        return dataset_of(self, **options)

    def __repr__(self) -> str:
        """Return box, time, levels and sizes, and the fields of each component."""
        components = [(name, ", ".join(fields)) for name, fields in self._source.components.items()]
        return text.representation(
            f"<ambar.Snapshot> {self.location}", self._properties(), text.columns(components, 4)
        )

    def _repr_html_(self) -> str:
        """Return what `__repr__` returns as HTML, for notebooks, with the fields' sizes.

        Of a small local store, it has a thumbnail of the usual field.
        """
        from ambar.snapshot.pictures.thumbnails import thumbnail_of

        return html.representation(
            f"ambar.Snapshot {self.location}",
            self._properties(),
            thumbnail_of(self),
            *map(self._section, self.components),
        )

    def _properties(self) -> dict[str, object]:
        known = dict(self.info.summary())
        names = ("code", "dimensions", "box", "domain", "time", "aexp", "levels", "boxes")
        stored = self._source.stored_fields("")
        return {
            **{name.capitalize(): known[name] for name in names if name in known},
            "Size": None if stored is None else stored.sizes,
            "Missing": ", ".join(self.missing) or None,
            "Components": len(self._source.components),
        }

    def _section(self, component: str) -> str:
        """Return the fields of a component as HTML; no data are read."""
        fields = self._source.components[component]
        title = f"{component}: {len(fields)} fields"
        group = "amr" if component in CELL_COMPONENTS else component
        stored = self._source.stored_fields(group)
        if stored is None:
            return html.details(
                title,
                html.table([(name, code_unit(name, self.info, component)) for name in fields]),
            )
        owner = self.amr if component in CELL_COMPONENTS else self._rows(component)
        return field_details(title, describe_fields(fields, self.info, group, owner.dtype, stored))

    def _rows(self, name: str) -> Particles:
        if name not in self._tables:
            if name not in self._source.components:
                raise self._absent(name, name)
            self._tables[name] = Particles(self._source, name)
        return self._tables[name]

    @cached_property
    def _tables(self) -> dict[str, Particles]:
        return {}

    def _absent(self, what: str, *components: str) -> Exception:
        reasons = [self.missing[name] for name in components if name in self.missing]
        available = ", ".join(self._source.components) or "nothing"
        why = "; ".join(dict.fromkeys(reasons)) or f"available: {available}"
        return _core.NotFoundError(f"{self.location}: no {what}: {why}")
