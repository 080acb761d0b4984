"""Defines Record and Memory, which hold parts of reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class Record(dict[str, Any]):
    """Is a dict whose keys are also attributes: ``record.kind``.

    >>> record = Record(kind="all_reduce", bytes=1024)
    >>> record.kind, record["bytes"]
    ('all_reduce', 1024)
    """

    def __getattr__(self, key: str) -> Any:
        """Returns the value of a key, or raises ``AttributeError``."""
        try:
            return self[key]
        except KeyError:
            raise AttributeError(f"no {key}; there are {', '.join(self)}"
                                 ) from None


@dataclass(frozen=True)
class Memory:
    """Holds the memory of one GPU of the fullest stage, in bytes.

    >>> import mtplan
    >>> memory = mtplan.plan("examples/llama-3-8b.json").memory
    >>> memory.fits, memory.total <= memory.limit
    (True, True)
    >>> list(memory.by_class)[:3]
    ['parameters', 'gradients', 'optimizer']
    >>> memory.peak.stage < len(memory.stages)
    True
    """

    by_class: Record  #: bytes of parameters, gradients, optimizer, ...
    total: float
    limit: float  #: memory of the GPU
    peak: Record  #: stage, rank, phase and operator at which memory peaks
    stages: list[Record]  #: one per stage: memory_bytes by class, and time_s
    host: Record  #: bytes of host memory for one GPU: optimizer and limit

    @property
    def fits(self) -> bool:
        """Returns whether the total is within the limit.

        >>> none = Record()
        >>> Memory(none, 81e9, 80e9, none, [], none).fits
        False
        """
        return self.total <= self.limit
