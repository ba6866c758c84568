"""What kernels need to run as plain Python, under NUMBA_DISABLE_JIT=1 (`make coverage-kernels`).

Machine instructions of `engine.bits` and `engine.simd` have no body in Python; these stand in for
them. tests/conftest.py puts them in before anything imports the kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skipbo_env.engine import bits, simd


def popcount(word: Any) -> np.uint64:
    return np.uint64(int(word).bit_count())


def lowest_bit(word: Any) -> np.uint64:
    return np.uint64((int(word) & -int(word)).bit_length() - 1)


def prefetch(array: NDArray[Any], index: int) -> None:
    pass


def positive_cells(array: NDArray[np.int32], first: int) -> np.uint64:
    return np.uint64(sum(1 << i for i in range(16) if array[first + i] > 0))


def spread_bits(word: Any, array: NDArray[np.int8], first: int) -> None:
    array[first : first + 64] = [int(word) >> i & 1 for i in range(64)]


def narrow_cells(
    source: NDArray[np.int32], first: int, target: NDArray[np.int8], at: int, n: int
) -> None:
    target[at : at + n] = np.minimum(source[first : first + n], 127)


def subtract_kinds(
    source: NDArray[np.int32],
    a: int,
    b: int,
    c: int,
    each: int,
    last: int,
    target: NDArray[np.int32],
    at: int,
) -> None:
    target[at : at + 13] = [each] * 12 + [last]
    for first in (a, b, c):
        target[at : at + 13] -= source[first : first + 13]


def subtract_bits(word: Any, target: NDArray[np.int32], at: int) -> None:
    target[at : at + 13] -= np.array([int(word) >> i & 1 for i in range(13)], np.int32)


def spread_ones(word: Any, target: NDArray[np.float32], at: int, n: int) -> None:
    target[at : at + n] = [int(word) >> i & 1 for i in range(n)]


def spread_levels(
    source: NDArray[np.int32], first: int, target: NDArray[np.float32], at: int
) -> None:
    levels = source[first : first + 16, None] > np.arange(4)
    target[at : at + 64] = levels.ravel()


def divide_cells(
    source: NDArray[np.int32],
    first: int,
    most: int,
    divisor: np.float32,
    target: NDArray[np.float32],
    at: int,
    n: int,
) -> None:
    cells = np.minimum(source[first : first + n], most).astype(np.float32)
    target[at : at + n] = cells / divisor


def dense_head(
    acc: NDArray[np.float32],
    hidden: NDArray[np.float32],
    w2: NDArray[np.float32],
    b2: NDArray[np.float32],
    w3: NDArray[np.float32],
) -> np.float32:
    hidden[:] = np.maximum(acc, 0)
    return np.float32(np.maximum(hidden @ w2 + b2, 0) @ w3)


def install() -> None:
    """Put them in the place of the machine instructions."""
    for function in (
        popcount,
        lowest_bit,
        prefetch,
        positive_cells,
        spread_bits,
        spread_ones,
        subtract_kinds,
        subtract_bits,
        spread_levels,
        divide_cells,
        narrow_cells,
    ):
        setattr(bits, function.__name__, function)
    simd.dense_head = dense_head
