"""Defines the commands of the package: mtplan and mtrun."""

from __future__ import annotations

import os
import pathlib
import signal
import sys

from mtplan import _core

MTRUN = pathlib.Path(_core.__file__).parent / "bin" / "mtrun"


def mtplan() -> int:
    """Runs the command ``mtplan`` with the arguments of the process.

    Returns the exit status: 0 if a plan was found, 1 if nothing fits or a proof
    failed, 2 for bad input.

    >>> import subprocess, sys
    >>> subprocess.run([sys.executable, "-c",
    ...     "import sys; from mtplan._commands import mtplan; sys.exit(mtplan())",
    ...     "--version"], capture_output=True, text=True).stdout
    'mtplan 0.1.0\\n'
    """
    # Python would handle the signal only after the command has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.run_command(sys.argv[1:])


def mtrun() -> None:
    """Replaces the process by the program ``mtrun`` of the package.

    >>> import subprocess, sys
    >>> subprocess.run([sys.executable, "-c",
    ...     "from mtplan._commands import mtrun; mtrun()",
    ...     "no-such-folder"], capture_output=True).returncode
    2
    """
    os.execv(MTRUN, ["mtrun", *sys.argv[1:]])
