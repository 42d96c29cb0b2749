"""Performance targets of ambar with many ranks, and the measured values: one line each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ambar_bench.parallel.results import Row, Study
from ambar_bench.parallel.versions import REFERENCE, VERSIONS, ZSTD, Kind

RAW = "ambar-raw"
BOUNDED = ("ambar-bounded", "ambar-bounded-fast")
LOSSLESS = ("ambar-fast", "ambar", "ambar-packed")
RAW_FACTOR = 1.1
CPU_SHARE = 0.5


def lines(study: Study) -> list[str]:
    """Return a line for each target that was measured."""
    return [*_raw(study), *_lossless(study), *_bounded(study), *_back(study)]


def _all(study: Study, data: Sequence[str], tell: Callable[[str, int], str | None]) -> str:
    """Return the description of each kind of data and number of ranks, as text."""
    parts = []
    for kind in data:
        described = [(ranks, tell(kind, ranks)) for ranks in study.ranks]
        if found := [f"{text} ({ranks} ranks)" for ranks, text in described if text]:
            parts.append(f"{kind}: {', '.join(found)}")
    return "; ".join(parts)


def _raw(study: Study) -> Iterator[str]:
    for what, name in (("write", "written"), ("cold", "read cold"), ("warm", "read warm")):

        def compared(data: str, ranks: int, what: str = what) -> str | None:
            ours, peer = (study.row(key, data, ranks) for key in (RAW, REFERENCE))
            return f"{ours.median(what) / peer.median(what):.2f}" if ours and peer else None

        if text := _all(study, study.data, compared):
            yield (
                f"target: raw, one file, {name} in at most {RAW_FACTOR} times the seconds of a "
                f"binary file a rank; measured: {text}"
            )


def _lossless(study: Study) -> Iterator[str]:
    for key in LOSSLESS:

        def compared(data: str, ranks: int, key: str = key) -> str | None:
            ours, peer = (study.row(name, data, ranks) for name in (key, ZSTD))
            if not ours or not peer:
                return None
            share = ours.median("write_cpu") / peer.median("write_cpu")
            return f"{share:.2f} for ratio {ours.ratio:.3f} to {peer.ratio:.3f}"

        if text := _all(study, study.data, compared):
            yield (
                f"target: a lossless write in at most {CPU_SHARE} of the CPU seconds of HDF5's "
                f"collective shuffle and zstd for no worse a ratio; measured, {key}: {text}"
            )


def _bounded(study: Study) -> Iterator[str]:
    for key in BOUNDED:

        def compared(data: str, ranks: int, key: str = key) -> str | None:
            ours = study.row(key, data, ranks)
            peers = [row for row in study.uncompressed(data, ranks) if not row.made_by.ours]
            if not ours or not peers:
                return None
            best = min(peers, key=_write)
            return f"{_write(ours) / _write(best):.2f} of {best.made_by.name}"

        if text := _all(study, ["smooth"], compared):
            yield (
                f"target: smooth data with an error bound of {study.bound:g} written faster than "
                f"by every uncompressed version; measured, {key} by the fastest of them: {text}"
            )


def _write(row: Row) -> float:
    return row.median("write")


def _back(study: Study) -> Iterator[str]:
    ours = [back for back in study.backs if _is(back.version, bounded=False)]
    if ours:
        wrong = [f"{b.version} by {b.readers} ranks" for b in ours if b.differing]
        counts = ", ".join(str(n) for n in study.readers)
        yield (
            f"target: written by {ours[0].writers} ranks, read by {counts}, bit for bit; measured: "
            + (f"other values: {'; '.join(wrong)}" if wrong else f"so are all {len(ours)} reads")
        )


def _is(key: str, *, bounded: bool) -> bool:
    """Tell whether a version is ambar's, and has an error bound or not."""
    version = VERSIONS[key]
    return version.ours and (version.kind is Kind.BOUNDED) == bounded
