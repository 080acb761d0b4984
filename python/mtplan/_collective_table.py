"""Compares the collectives that a step issues with those of a plan.

Where a library differs from the plan for a known reason, the reason predicts
exactly what the library issues instead.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

from mtplan._record import Record

#: Counts calls by phase, kind, axis and bytes that a rank passes in.
Calls: TypeAlias = "Counter[tuple[str, str, str, int]]"


@dataclass(frozen=True)
class Reason:
    """Holds a known difference of a library: the planned calls that it leaves
    out, and the calls that it issues instead.

    >>> Reason("x", Counter(), Counter()).words
    'x'
    """

    words: str
    planned: Calls  #: lines of the plan that the library leaves out
    issued: Calls  #: calls that the library issues instead


@dataclass(frozen=True)
class Comparison:
    """Holds the collectives of a step, as planned and as issued.

    ``rows`` has a record per phase, kind, axis and number of bytes, with the
    counts ``planned``, ``expected`` (after the known differences) and
    ``issued``, the operators that are the ``causes``, and the ``reasons`` for
    differences. ``unexplained`` are the rows whose count no reason predicts.

    >>> Comparison([]).holds
    True
    """

    rows: list[Record]

    @property
    def unexplained(self) -> list[Record]:
        """Returns the rows whose difference has no reason.

        >>> Comparison([Record(expected=1, issued=2)]).unexplained
        [{'expected': 1, 'issued': 2}]
        """
        return [row for row in self.rows if row.expected != row.issued]

    @property
    def holds(self) -> bool:
        """Returns whether every difference is explained.

        >>> Comparison([Record(expected=1, issued=1)]).holds
        True
        """
        return not self.unexplained

    def __str__(self) -> str:
        """Returns a table, with the reasons below it."""
        words = list(dict.fromkeys(reason for row in self.rows
                                   for reason in row.reasons))
        lines = [f"{'phase':9}{'kind':15}{'axis':5}{'bytes':>12}"
                 f"{'planned':>9}{'issued':>8}  cause"]
        for row in self.rows:
            marks = "".join(f" ({words.index(one) + 1})"
                            for one in row.reasons)
            odd = "" if row.expected == row.issued else (
                f"  !! {row.expected} expected")
            lines.append(f"{row.phase:9}{row.kind:15}{row.axis:5}"
                         f"{row.bytes:12}{row.planned:9}{row.issued:8}  "
                         f"{', '.join(row.causes)}{marks}{odd}")
        return "\n".join(lines + [f"({number}) {one}"
                                  for number, one in enumerate(words, 1)])


def compared(ledger: list[Record], reasons: list[Reason], issued: Calls
             ) -> Comparison:
    """Compares the lines of a ledger with the calls that a step issued.

    >>> line = Record(phase="forward", kind="all_reduce", axis="tp",
    ...               bytes=8.0, count_per_step=2, cause="wte")
    >>> print(compared([line], [], Counter({("forward", "all_reduce", "tp",
    ...                                      8): 2})))
    phase    kind           axis        bytes  planned  issued  cause
    forward  all_reduce     tp              8        2       2  wte
    """
    planned: Calls = Counter()
    causes: dict[tuple[str, str, str, int], list[str]] = {}
    for line in ledger:
        key = key_of(line)
        planned[key] += int(line.count_per_step)
        causes.setdefault(key, []).append(line.cause)
    expected = Counter(planned)
    for reason in reasons:
        expected.subtract(reason.planned)
        expected.update(reason.issued)
    rows = []
    for key in [*planned, *(key for key in sorted({*expected, *issued})
                            if key not in planned)]:
        if not (planned[key] or expected[key] or issued[key]):
            continue
        phase, kind, axis, size = key
        rows.append(Record(
            phase=phase, kind=kind, axis=axis, bytes=size,
            planned=planned[key], expected=expected[key], issued=issued[key],
            causes=causes.get(key, []),
            reasons=[one.words for one in reasons
                     if one.planned[key] or one.issued[key]]))
    return Comparison(rows)


def key_of(line: Record) -> tuple[str, str, str, int]:
    """Returns phase, kind, axis and bytes of a line of the ledger.

    >>> key_of(Record(phase="update", kind="all_gather", axis="all",
    ...               bytes=24.0))
    ('update', 'all_gather', 'all', 24)
    """
    return line.phase, line.kind, line.axis, int(line.bytes)
