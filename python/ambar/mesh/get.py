"""Reading the mesh in a group of a store: all of it, some of its arrays, a block, or a box."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ambar import _core
from ambar.mesh.storage.description import (
    ASSOCIATIONS,
    Block,
    Names,
    chosen_block,
    description_of,
    select,
)
from ambar.snapshot.regions import Bounds, Box
from ambar.store.store import Store

if TYPE_CHECKING:
    from ambar.mesh.storage.source import Source


def get_mesh(
    store: Store,
    path: str,
    *,
    point_data: Names = None,
    cell_data: Names = None,
    field_data: Names = None,
    block: Block | None = None,
    region: Box | Bounds | None = None,
    original_ids: bool = False,
    threads: int | None = None,
    wrap: bool = True,
) -> Any:
    """Return the VTK object in the group `path` of a store; arguments are as for `read_mesh`.

    With ``wrap=False`` it is VTK's own, even where PyVista is installed.
    """
    from ambar.mesh.storage.source import Source
    from ambar.mesh.vtk.pyvista_wrapping import wrapped

    about = description_of(store, path)
    source = Source(store, path, about.get("packed"), threads)
    user_dict = about.get("user_dict") if block is None else None
    described = chosen_block(about, block, source.where)
    wanted = {
        "point_data": point_data,
        "cell_data": cell_data,
        "row_data": cell_data,
        "field_data": field_data,
    }
    found: dict[str, set[str]] = {key: set() for key in ASSOCIATIONS}
    kept = select(described, wanted, found)
    found["cell_data"] |= found["row_data"]
    for key in ("point_data", "cell_data", "field_data"):
        missing = [name for name in wanted[key] or () if name not in found[key]]
        if missing:
            raise _core.NotFoundError(
                f"{source.where}: there is no array {', '.join(map(repr, missing))} in "
                f"{key.replace('_', ' ')}; there are {', '.join(map(repr, sorted(found[key])))}"
            )
    mesh, built = _built(kept, source, region, original_ids)
    return wrapped(mesh, built, user_dict) if wrap else mesh


def _built(
    described: Any, source: Source, region: Box | Bounds | None, original_ids: bool
) -> tuple[Any, Any]:
    """Return the VTK object of a description, or of the part in a box, and the description then."""
    from ambar.mesh.select.region import chosen_part
    from ambar.mesh.select.touching import Touching
    from ambar.mesh.vtk.type_dispatch import build

    touching = None if region is None else Touching(region)
    try:
        described = chosen_part(described, source, touching, original_ids)
        source.load(described)
        return build(described, source), described
    except _core.AmbarError:
        raise
    except (
        AttributeError,
        IndexError,
        KeyError,
        OverflowError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise _core.CorruptError(
            f"{source.where}: its description is not that of a mesh: {error!r}; restore the store "
            "from a copy"
        ) from error
