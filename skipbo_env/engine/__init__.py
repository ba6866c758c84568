"""The compiled engine: Numba kernels over one int32 array a game.

It knows no environment, agent or file format.
"""
