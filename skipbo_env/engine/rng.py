"""SplitMix64, its state inside the game's array: a copy of the array replays the same cards.

Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
"""

from __future__ import annotations

import numpy as np

from skipbo_env.engine.jit import inlined, kernel
from skipbo_env.engine.layout import RNG_HI, RNG_LO

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_LOW = np.uint64(0xFFFFFFFF)
_30, _27, _31, _32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


@inlined
def mix64(z):
    """SplitMix64's finaliser: a bijection in which every input bit moves every output bit."""
    z = (z ^ (z >> _30)) * _MIX1
    z = (z ^ (z >> _27)) * _MIX2
    return z ^ (z >> _31)


@inlined
def set_seed(state, seed):
    """Start the array's generator from a 64-bit seed."""
    mixed = mix64(np.uint64(seed) + _GAMMA)
    state[RNG_LO] = np.int32(np.uint32(mixed & _LOW))
    state[RNG_HI] = np.int32(np.uint32(mixed >> _32))


@inlined
def _read(state):
    return (np.uint64(np.uint32(state[RNG_HI])) << _32) | np.uint64(np.uint32(state[RNG_LO]))


@inlined
def _write(state, x):
    state[RNG_LO] = np.int32(np.uint32(x & _LOW))
    state[RNG_HI] = np.int32(np.uint32(x >> _32))


@inlined
def next_u64(state):
    """The next 64 random bits of the array's generator."""
    x = _read(state) + _GAMMA
    _write(state, x)
    return mix64(x)


@inlined
def _below(x, n):
    """The generator after x, and a uniform number in [0, n) without bias."""
    bound = np.uint64(n)
    x += _GAMMA
    product = (mix64(x) >> _32) * bound
    low = product & _LOW
    if low < bound:
        threshold = ((_LOW - bound) + np.uint64(1)) % bound
        while low < threshold:
            x += _GAMMA
            product = (mix64(x) >> _32) * bound
            low = product & _LOW
    return x, np.int64(product >> _32)


@inlined
def below(state, n):
    """A uniform number in [0, n), n below 2**32, without bias (Lemire, ACM TOMACS 2019)."""
    x, number = _below(_read(state), n)
    _write(state, x)
    return number


@kernel
def shuffle(state, start, n):
    """Fisher-Yates over the cells [start, start + n), with the array's generator."""
    x = _read(state)  # kept out of the array, whose cells the compiler takes to be all alike
    for i in range(n - 1, 0, -1):
        x, j = _below(x, i + 1)
        state[start + i], state[start + j] = state[start + j], state[start + i]
    _write(state, x)


@inlined
def stream_u64(streams, i):
    """The next 64 random bits of generator i in an array of uint64 states."""
    streams[i] = streams[i] + _GAMMA
    return mix64(streams[i])


@inlined
def stream_below(streams, i, n):
    """A uniform number in [0, n) from generator i; a bias under n / 2**32 is left in for speed."""
    return np.int64(((stream_u64(streams, i) >> _32) * np.uint64(n)) >> _32)


@kernel
def stream_unit(streams, i):
    """A uniform float64 in [0, 1) from generator i."""
    return np.float64(stream_u64(streams, i) >> np.uint64(11)) * (1.0 / 9007199254740992.0)
