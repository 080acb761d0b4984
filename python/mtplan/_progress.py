"""Shows the progress of a search."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import IO, TypeAlias, Union

from mtplan._record import Record

#: The keyword ``progress`` takes one of these.
Progress: TypeAlias = Union[bool, Callable[[Record], object]]


class Line:
    """Shows a search on one line of a stream; a state overwrites the last one.

    >>> import sys
    >>> Line(sys.stdout)(Record(seconds=3.0, open=1200, step_time=44.4))
    searching 3 s: 1,200 configurations left, fastest step 44.4 s
    """

    def __init__(self, stream: IO[str]) -> None:
        """Writes nothing before the first state."""
        self._stream = stream
        self._width = 0

    def __call__(self, state: Record) -> None:
        """Shows a state that ``watching`` made."""
        text = (f"searching {state.seconds:.0f} s: {state.open:,} "
                "configurations left")
        if state.step_time is not None:
            text += f", fastest step {state.step_time:.3g} s"
        self._show(text)

    def erase(self) -> None:
        """Erases the line.

        >>> import io
        >>> stream = io.StringIO()
        >>> line = Line(stream)
        >>> line(Record(seconds=0.0, open=1, step_time=None))
        >>> line.erase()
        >>> stream.getvalue().split("\\r")[-1]
        ''
        """
        if self._width:
            self._show("")
            self._stream.write("\r")
            self._width = 0

    def _show(self, text: str) -> None:
        """Overwrites the previous text, and fills its rest with blanks."""
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)


@contextlib.contextmanager
def watching(progress: Progress
             ) -> Iterator[Callable[[int, float], None] | None]:
    """Yields the function that the core calls during a search, or None.

    If ``progress`` is True, a line on standard error shows the search, and is
    erased at the end. If it is a function, it gets a record with ``seconds``
    since the start, the number ``open`` of configurations that are left to
    decide, and ``step_time``, the step of the fastest plan so far in seconds,
    or None.

    Raises ``TypeError`` if ``progress`` is neither.

    >>> with watching(print) as watch:
    ...     watch(7, float("inf"))
    {'seconds': ..., 'open': 7, 'step_time': None}
    """
    if not progress:
        yield None
        return
    if progress is not True and not callable(progress):
        raise TypeError("progress must be True or a function, but is a "
                        f"{type(progress).__name__}")
    line = Line(sys.stderr)
    call = line if progress is True else progress
    start = time.monotonic()

    def watch(count: int, fastest: float) -> None:
        call(Record(seconds=time.monotonic() - start, open=count,
                    step_time=fastest if math.isfinite(fastest) else None))

    try:
        yield watch
    finally:
        line.erase()
