"""Settings of all tests: how long a draw of Hypothesis takes says how busy the machine is.
And kernels as plain Python, where Numba is told not to compile.
"""

from __future__ import annotations

import numba
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-machine")

if numba.config.DISABLE_JIT:
    from tests import uncompiled

    uncompiled.install()


def pytest_configure(config: pytest.Config) -> None:
    if numba.config.DISABLE_JIT:
        # The random generator counts modulo 2^64, which NumPy's scalars warn of.
        config.addinivalue_line("filterwarnings", "ignore:overflow encountered:RuntimeWarning")
