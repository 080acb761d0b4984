"""Holds helpers that the tests of the Python package share."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LLAMA = "examples/llama-3-8b.json"
TINY = "examples/tiny-gpt2.json"


def command(*arguments):
    """Runs the command of the package."""
    return subprocess.run(
        [sys.executable, "-c",
         "import sys; from mtplan._commands import mtplan; sys.exit(mtplan())",
         *arguments], capture_output=True, text=True, check=False)


def imports_without(module, framework):
    """Returns whether a module is imported without importing a framework."""
    return subprocess.run(
        [sys.executable, "-c", f"import sys, mtplan, {module}; "
         f"sys.exit({framework!r} in sys.modules)"],
        check=False).returncode == 0
