"""Finding the vectors nearest to a query's: exact, and approximate above a size (numpy, usearch).

Both give the same: the best positions with their cosine. Exact search multiplies one matrix;
`bench/dense.py` says how long that takes. The approximate one needs the extra `ann`; without
it, and until it is built, exact search goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Matrix: TypeAlias = npt.NDArray[np.float32]

EXACT_ROWS = 200_000
"""Up to this many vectors exact search takes about 10 ms at 384 dimensions."""

DEPTH = 4096
"""How many positions one exact search gives at most; in smaller namespaces it gives all."""

APPROXIMATE_DEPTH = 512
"""How many an approximate search gives: what can still reach a prompt."""


def unit_rows(rows: Any, *, count: int, dimension: int) -> Matrix:
    """Check an embedder's vectors and bring them to unit length.

    Raises:
        ValueError: They are not `count` finite vectors of the dimension; the message says
            what they are.
    """
    matrix = np.asarray(rows, dtype=np.float32)
    if matrix.shape != (count, dimension):
        raise ValueError(f"gave an array of shape {matrix.shape}, not {(count, dimension)}")
    if not np.isfinite(matrix).all():
        raise ValueError("gave numbers that are not finite")
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit: Matrix = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return unit


def decode(vectors: Sequence[bytes], dimension: int) -> Matrix:
    """Read vectors that `index.vectors.encode` wrote."""
    halves = np.frombuffer(b"".join(vectors), dtype="<f2")
    return halves.astype(np.float32).reshape(len(vectors), dimension)


class Cosines(Mapping[int, float]):
    """The cosine of some positions, as arrays and, for who asks for one, by position."""

    def __init__(
        self, positions: npt.NDArray[np.int64], cosines: npt.NDArray[np.floating[Any]]
    ) -> None:
        self.positions = positions
        self.cosines = cosines

    @cached_property
    def _by_position(self) -> dict[int, float]:
        return dict(zip(self.positions.tolist(), self.cosines.tolist(), strict=True))

    def __getitem__(self, position: int) -> float:
        return self._by_position[position]

    def __iter__(self) -> Iterator[int]:
        return iter(self._by_position)

    def __len__(self) -> int:
        return len(self.positions)


class Nearest:
    """The vectors of one namespace in memory, by position.

    Not safe for threads by itself; the owner holds a lock.
    """

    def __init__(self, dimension: int, *, exact_rows: int = EXACT_ROWS) -> None:
        self._rows: Matrix = np.empty((0, dimension), dtype=np.float32)
        self._positions: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._slots: dict[int, int] = {}
        self._exact_rows = exact_rows
        self._approximate: _Approximate | None = None

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, position: int) -> bool:
        return position in self._slots

    def put(self, positions: Sequence[int], rows: Matrix) -> None:
        """Add vectors of unit length, each in place of the one at its position."""
        new = [position for position in dict.fromkeys(positions) if position not in self._slots]
        self._grow(len(self) + len(new))
        for position in new:
            self._slots[position] = len(self._slots)
        slots = [self._slots[position] for position in positions]
        self._rows[slots] = rows
        self._positions[slots] = positions
        if self._approximate is not None:
            self._approximate.put(positions, rows)

    def _grow(self, needed: int) -> None:
        """Make room, twice as much as there was, so that adding one by one copies seldom."""
        room = len(self._positions)
        if needed <= room:
            return
        size = max(needed, 2 * room, 64)
        rows = np.empty((size, self._rows.shape[1]), dtype=np.float32)
        positions = np.empty(size, dtype=np.int64)
        rows[:room], positions[:room] = self._rows, self._positions
        self._rows, self._positions = rows, positions

    def drop(self, positions: Iterable[int]) -> None:
        """Forget the vectors at these positions, where there are any."""
        for position in positions:
            slot = self._slots.pop(position, None)
            if slot is None:
                continue
            last = len(self._slots)
            if slot != last:
                self._rows[slot] = self._rows[last]
                self._positions[slot] = self._positions[last]
                self._slots[int(self._positions[slot])] = slot
            if self._approximate is not None:
                self._approximate.drop(position)

    def best(self, query: Matrix) -> Cosines:
        """Give the cosine of the best positions, in no order.

        Args:
            query: One vector of unit length.

        Returns:
            All of them in a namespace of up to `DEPTH`, else that many; of an approximate
            search `APPROXIMATE_DEPTH`.
        """
        if len(self) > self._exact_rows and find_spec("usearch") is not None:
            found = self._from_approximate(query)
            if found is not None:
                return found
        return self._among(query, slice(0, len(self)), DEPTH)

    def _among(self, query: Matrix, slots: slice | Sequence[int], depth: int) -> Cosines:
        # On one thread, unlike a product of matrices: its pool costs more than it gives.
        scores = np.vecdot(self._rows[slots], query)
        positions = self._positions[slots]
        if len(scores) > depth:
            # In place order, and of equal ones at the end all: what reads them reads on in memory.
            chosen = scores >= np.partition(scores, -depth)[-depth]
            scores, positions = scores[chosen], positions[chosen]
        return Cosines(positions.copy(), scores)

    def _from_approximate(self, query: Matrix) -> Cosines | None:
        """Search the approximate index; None, and a beginning is made, while there is none."""
        if self._approximate is None:
            size = len(self)
            self._approximate = _Approximate(self._positions[:size].copy(), self._rows[:size])
        candidates = self._approximate.search(query)
        if candidates is None:
            return None
        slots = [self._slots[place] for place in candidates if place in self._slots]
        return self._among(query, slots, APPROXIMATE_DEPTH)


class _Approximate:
    """An HNSW graph over half floats, built beside the searches that still are exact."""

    def __init__(self, positions: npt.NDArray[np.int64], rows: Matrix) -> None:
        from usearch.index import Index

        self._index = Index(ndim=rows.shape[1], metric="ip", dtype="f16")
        self._later: list[tuple[Collection[int], Matrix | None]] = []
        self._built = False
        half = rows.astype(np.float16)  # a copy: the matrix goes on changing
        threading.Thread(
            target=self._build, args=(positions, half), name="zero-mem-vectors", daemon=True
        ).start()

    def _build(self, positions: npt.NDArray[np.int64], rows: npt.NDArray[np.float16]) -> None:
        self._index.add(positions.astype(np.uint64), rows, threads=1)
        self._built = True

    def put(self, positions: Sequence[int], rows: Matrix) -> None:
        """Add or replace vectors, once the graph is built."""
        self._later.append((list(positions), rows.copy()))

    def drop(self, position: int) -> None:
        """Take a vector out, once the graph is built."""
        self._later.append(([position], None))

    def search(self, query: Matrix) -> list[int] | None:
        """Give the positions that are probably nearest, None while the graph is being built."""
        if not self._built:
            return None
        self._catch_up()
        found = self._index.search(query, APPROXIMATE_DEPTH, threads=1)
        return [int(key) for key in found.keys]

    def _catch_up(self) -> None:
        for positions, rows in self._later:
            keys = np.asarray(list(positions), dtype=np.uint64)
            self._index.remove(keys)
            if rows is not None:
                self._index.add(keys, rows, threads=1)
        self._later.clear()
