"""The `skipbo` command: finds a subcommand in the entry-point group "skipbo.commands" and runs it.

A subcommand is a plain function whose parameters are its options (tyro reads them) and whose
docstring is its help; it returns an exit code, or None for 0. A module is imported only when its
subcommand is asked for, so that neither training nor serve is needed for the rest. Any distribution
can add one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points
from io import TextIOWrapper
from typing import Any

GROUP = "skipbo.commands"

# One line each for `skipbo --help`, which imports no subcommand.
SUMMARIES = {
    "play": "play a game in the terminal against agents",
    "suggest": "rank the moves of a position",
    "analyse": "find the mistakes in a game record",
    "evaluate": "measure an agent against others, with intervals",
    "tournament": "let agents play each other and rate them",
    "record": "check, show and export game records",
    "train": "train an agent",
    "plot": "draw the curves of a training run",
    "export": "export a model",
    "serve": "run the HTTP service and its page",
    "benchmark": "measure decisions per second on this machine",
}

# What to install where a subcommand's module lacks a library.
_EXTRAS = {
    "train": "train",
    "serve": "serve",
    "tournament": "rate",
    "plot": "plot",
    "export": "export",
}


def commands() -> dict[str, EntryPoint]:
    """The installed subcommands by name, the known ones first."""
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    order = {name: place for place, name in enumerate(SUMMARIES)}
    return dict(sorted(found.items(), key=lambda item: (order.get(item[0], len(order)), item[0])))


def overview() -> str:
    """The text of `skipbo --help`."""
    found = commands()
    lines = ["usage: skipbo COMMAND [OPTIONS]", "", "Skip-Bo: play, train, measure and serve.", ""]
    if not found:
        lines += ["No command is installed; run `pip install` on this package first.", ""]
    for name, entry in found.items():
        lines.append(f"  {name:<12} {SUMMARIES.get(name, 'from ' + entry.value)}")
    lines += [
        "",
        "skipbo COMMAND --help describes a command, with an example; skipbo --version tells the",
        "version. SKIPBO_TRACEBACK=1 in the environment shows where an error came from.",
    ]
    return "\n".join(lines)


def run(command: Callable[..., Any] | EntryPoint, name: str, args: Sequence[str]) -> int:
    """Run a subcommand with its options.

    Args:
        command: its function, or where to import that from.
        name: what it is called on the command line.
        args: the words after its name.

    Returns:
        The exit code: the function's own, 2 for an error in what was asked for, 130 for Ctrl-C.
    """
    import tyro

    config = (
        tyro.conf.OmitArgPrefixes,
        tyro.conf.OmitSubcommandPrefixes,
        tyro.conf.FlagCreatePairsOff,
    )
    try:
        function = _load(command) if isinstance(command, EntryPoint) else command
        code = tyro.cli(function, prog=f"skipbo {name}", args=list(args), config=config)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return _nobody_reads()
    except (ValueError, OSError, ImportError) as error:
        if os.environ.get("SKIPBO_TRACEBACK"):
            raise
        print(f"skipbo {name}: {_one_line(error, name)}", file=sys.stderr)
        return 2
    return int(code or 0)


def _nobody_reads() -> int:
    """The exit code where whoever read the output has gone, and no traceback after it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _load(entry: EntryPoint) -> Callable[..., Any]:
    try:
        function: Callable[..., Any] = entry.load()
    except AttributeError as error:
        raise ImportError(f"{entry.value} is not there: {error}") from error
    return function


def _one_line(error: Exception, name: str) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, ModuleNotFoundError) and name in _EXTRAS:
        extra = f"pip install 'skipbo-env[{_EXTRAS[name]}]'"
        text += f"; it comes with {extra}, in a checkout with make install"
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        text = f"{error.filename}: {error.strerror}"
    return text


def main(argv: Sequence[str] | None = None) -> int:
    """Run `skipbo` with these words (default: the command line's) and return the exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, TextIOWrapper):  # names may hold what its encoding lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    if not args or args[0] in ("-h", "--help", "help"):
        try:
            print(overview(), flush=True)
        except BrokenPipeError:
            return _nobody_reads()
        return 0 if args else 2
    if args[0] == "--version":
        from importlib.metadata import version

        print(f"skipbo-env {version('skipbo-env')}")
        return 0
    name, found = args[0], commands()
    if name not in found:
        known = ", ".join(found) or "none is installed"
        print(f"skipbo: no command {name!r:.40}; the commands are: {known}", file=sys.stderr)
        return 2
    return run(found[name], name, args[1:])


if __name__ == "__main__":
    sys.exit(main())
