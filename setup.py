"""Lists the packages; everything else about the build stands in pyproject.toml.

The shipped models lie in models/ at the root of the repository, and in the wheel as
skipbo_env/models. That mapping of one folder beside found packages is what pyproject.toml
alone cannot say.
"""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(include=["skipbo_env*", "training*", "serve*"]),
        "skipbo_env.models",
    ],
    package_dir={"skipbo_env.models": "models"},
)
