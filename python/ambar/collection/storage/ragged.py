"""Arrays of arrays: values end to end, and where each dataset's begin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Ragged(Sequence[np.ndarray]):
    """Values of datasets whose shapes differ; ``ragged[i]`` is what dataset number i has."""

    values: np.ndarray
    """All values, those of one dataset behind those of the one before: (total, ...)."""
    offsets: np.ndarray
    """int64 (datasets + 1): where each dataset's values begin and end in `values`."""
    shapes: np.ndarray | None = None
    """int64 (datasets, dimensions) unless the first length alone differs; `values` is flat then."""

    @property
    def counts(self) -> np.ndarray:
        """How long each dataset's part is: int64 (datasets,)."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        """Return the number of datasets."""
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> Any:
        """Return the values of one dataset: a view."""
        at = range(len(self))[index]
        if isinstance(at, range):
            return [self[i] for i in at]
        part = self.values[self.offsets[at] : self.offsets[at + 1]]
        return part if self.shapes is None else part.reshape(self.shapes[at])

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[i] for i in range(len(self)))

    @classmethod
    def of(cls, parts: list[np.ndarray]) -> Ragged:
        """Put arrays of any shapes, but of one number of dimensions, end to end."""
        inner = {part.shape[1:] for part in parts}
        if len(inner) <= 1 and all(part.ndim for part in parts):
            return cls(np.concatenate(parts), _offsets([len(part) for part in parts]))
        flat = np.concatenate([part.ravel() for part in parts])
        return cls(
            flat,
            _offsets([part.size for part in parts]),
            np.array([part.shape for part in parts], np.int64),
        )


def _offsets(lengths: list[int]) -> np.ndarray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
