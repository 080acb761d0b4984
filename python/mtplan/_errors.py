"""Defines the exceptions of the package."""

from __future__ import annotations

import json
from typing import Any


class Error(ValueError):
    """Is raised for bad input, with the words that the command prints.

    ``errors`` holds every fault that was found, one line each.

    >>> import mtplan
    >>> try:
    ...     mtplan.plan("examples/llama-3-8b.json", tp=0)
    ... except mtplan.Error as error:
    ...     print(error)
    --tp: must be a whole number from 1 to 1048576, but is 0
    """

    errors: list[str]

    def __init__(self, errors: list[str] | str) -> None:
        """Takes the faults, one line each, or a single fault."""
        self.errors = [errors] if isinstance(errors, str) else list(errors)
        super().__init__("\n".join(self.errors))


class NothingFits(Error):
    """Is raised if no plan fits into the memory of the GPUs.

    ``report`` is the report of ``mtplan --json`` (docs/json-output.md): its key
    ``nearest`` holds the candidate that needs the least memory, in bytes, and
    ``remedies`` the changes under which a plan was found.

    >>> import mtplan
    >>> try:
    ...     mtplan.plan("examples/llama-3-8b.json", gpus=1, memory_gib=20,
    ...                 offload="none")
    ... except mtplan.NothingFits as error:
    ...     print(error.report["nearest"]["micro_batch"], error.remedies[0])
    1 --gpus 12 fits: tp 2 x pp 6, ...
    """

    report: dict[str, Any]

    def __init__(self, errors: list[str] | str, report: str) -> None:
        """Takes what the command prints, and the text of its JSON report."""
        super().__init__(errors)
        self.report = json.loads(report)

    @property
    def remedies(self) -> list[str]:
        """Returns the changes under which a plan fits, one sentence each.

        >>> NothingFits("nothing fits", '{"remedies": ["--gpus 4 fits"]}').remedies
        ['--gpus 4 fits']
        """
        return list(self.report.get("remedies", []))
