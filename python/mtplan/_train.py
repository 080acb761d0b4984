"""Runs mtrun, and yields the records that mtrun logs."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import IO, Any

from mtplan._commands import MTRUN
from mtplan._errors import Error
from mtplan._record import Record

POLL_SECONDS = 0.05


def train(folder: str | os.PathLike[str], *,
          data: str | os.PathLike[str] = "synthetic", steps: int = 100,
          **flags: Any) -> Iterator[Record]:
    """Trains a compiled plan on CPU ranks of this machine.

    ``folder`` is one that ``Plan.compile`` wrote, ``data`` a text or token file, or
    "synthetic", and ``steps`` the number of steps. The other keywords are flags
    of ``mtrun``, with "_" for "-".

    Yields a record per step, as soon as it is logged: ``step``, ``loss`` in nats
    per token, ``grad_norm``, ``lr``, ``tokens_per_s`` and so on
    (docs/training-data.md). Closing the iterator, or Ctrl-C, ends the run; a
    run with ``checkpoint`` first saves its state. Raises ``Error`` with the
    words of ``mtrun`` if the run fails or its flags are wrong.

    >>> import mtplan, tempfile
    >>> plan = mtplan.plan("examples/tiny-gpt2.json", gpus=2, dp=2,
    ...                    hardware="cpu", global_batch=8, micro_batch=4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plan.compile(folder)
    ...     for step in mtplan.train(folder, data="examples/data/opticks.txt",
    ...                              steps=2):
    ...         print(step.step, round(step.loss))
    1 6
    2 6
    """
    arguments = [os.fspath(MTRUN), os.fspath(folder), "--data",
                 os.fspath(data), "--steps", str(steps)]
    keeps = "metrics" in flags
    for key, value in flags.items():
        if value is not None:
            arguments += ["--" + key.replace("_", "-"),
                          os.fspath(value) if isinstance(value, os.PathLike)
                          else str(value)]
    with tempfile.TemporaryDirectory() as scratch:
        metrics = pathlib.Path(flags["metrics"] if keeps
                               else os.path.join(scratch, "metrics.jsonl"))
        if not keeps:
            arguments += ["--metrics", os.fspath(metrics)]
        with open(os.path.join(scratch, "errors"), "w+",
                  encoding="utf-8") as errors:
            yield from _run(arguments, metrics, errors)


def _run(arguments: list[str], metrics: pathlib.Path, errors: IO[str]
         ) -> Iterator[Record]:
    """Yields the records of a run, and interrupts it if nobody reads them.

    Raises ``Error`` with the lines in ``errors`` if the run fails.
    """
    before = metrics.read_bytes() if metrics.exists() else b""
    process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=errors)
    try:
        yield from _records(process, metrics, before)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        status = process.wait()
    if status != 0:
        errors.seek(0)
        raise Error([line.removeprefix("error: ")
                     for line in errors.read().splitlines()]
                    or [f"mtrun ended with status {status}"])


def _records(process: subprocess.Popen[bytes], metrics: pathlib.Path,
             before: bytes) -> Iterator[Record]:
    """Yields the lines that the run adds to the file, which held ``before``.

    A resumed run keeps the first lines, up to its checkpoint. A new run replaces
    all of them.
    """
    position = 0 if not before else None
    while True:
        ended = process.poll() is not None
        if metrics.exists():
            with open(metrics, "rb") as file:
                if position is None:
                    position = _end_of_kept_lines(before, file.read())
                if position is not None:
                    file.seek(position)
                    while (line := file.readline()).endswith(b"\n"):
                        position = file.tell()
                        yield json.loads(line, object_hook=Record)
        if ended:
            return
        time.sleep(POLL_SECONDS)


def _end_of_kept_lines(before: bytes, now: bytes) -> int | None:
    """Returns the bytes of the lines with which both begin; None if equal.

    >>> _end_of_kept_lines(b"1\\n2\\n", b"1\\n3\\n")
    2
    """
    if now == before:
        return None
    kept = 0
    for old, new in zip(before.splitlines(True), now.splitlines(True)):
        if old != new:
            break
        kept += len(old)
    return kept
