"""Defines Machine, which describes a preset or a machine file."""

from __future__ import annotations

import copy
import json
import os
from typing import Any

from mtplan import _core
from mtplan._errors import Error


def machines() -> list[str]:
    """Returns the names of the machine presets, sorted.

    >>> import mtplan
    >>> "dgx-h100" in mtplan.machines()
    True
    """
    return _core.machine_names()


class Machine:
    """Holds the description of a machine (docs/machine-format.md).

    Numbers have the units of their keys: ``memory_GiB`` is in GiB,
    ``bandwidth_GBps`` in 10^9 bytes per second. Each is an object with the keys
    ``value`` and ``source``.

    >>> import mtplan
    >>> machine = mtplan.Machine("dgx-h100")
    >>> machine["/device/memory_GiB"]
    79.11
    >>> larger = machine.edited("/device/memory_GiB", 94, "NVIDIA H100 NVL")
    >>> plan = mtplan.plan("examples/llama-3-8b.json", hardware=larger)
    >>> plan.memory.limit / 2**30
    94.0
    """

    def __init__(self, name_or_data: str | os.PathLike[str] | dict[str, Any]
                 ) -> None:
        """Reads a preset, a file, or the content of a file.

        Raises ``Error`` for an unknown name, an unreadable file, and a content
        that is no machine.
        """
        if isinstance(name_or_data, dict):
            self.data: dict[str, Any] = copy.deepcopy(name_or_data)
            _core.check_machine(self.to_json(), self.name)
        elif isinstance(name_or_data, (str, os.PathLike)):
            path = os.fspath(name_or_data)
            text = _core.machine_text(path)
            _core.check_machine(text, path)
            self.data = json.loads(text)
        else:
            raise TypeError("a machine must be the name of a preset, a path or "
                            f"a dict, but is a {type(name_or_data).__name__}")

    @property
    def name(self) -> str:
        """Returns the name in reports.

        >>> Machine("dgx-a100-80g").name
        'dgx-a100-80g'
        """
        return str(self.data.get("name", "hardware"))

    def __getitem__(self, pointer: str) -> Any:
        """Returns the value at a JSON pointer, without its source.

        Raises ``KeyError`` if there is none.

        >>> Machine("dgx-h100")["/devices_per_node"]
        8
        """
        found: Any = self.data
        for token in _tokens(pointer):
            try:
                found = found[int(token) if isinstance(found, list) else token]
            except (KeyError, IndexError, ValueError, TypeError):
                raise KeyError(pointer) from None
        if isinstance(found, dict) and set(found) == {"value", "source"}:
            return found["value"]
        return found

    def edited(self, pointer: str, value: Any, source: str) -> Machine:
        """Returns a copy in which the figure at a JSON pointer is ``value``.

        ``source`` says where the figure is from; the file keeps this text.
        A figure that the machine lacks is added to its object. Raises ``Error``
        if the result is no machine.

        >>> slow = Machine("dgx-h100").edited("/device/bandwidth_GBps", 3000,
        ...                                   "measured")
        >>> slow["/device/bandwidth_GBps"]
        3000
        """
        data = copy.deepcopy(self.data)
        *path, last = _tokens(pointer)
        target: Any = data
        for token in path:
            try:
                target = target[int(token) if isinstance(target, list)
                                else token]
            except (KeyError, IndexError, ValueError, TypeError):
                raise Error(f"{self.name}: {pointer}: {token} does not exist"
                            ) from None
        if not isinstance(target, dict):
            raise Error(f"{self.name}: {pointer}: is no member of an object")
        target[last] = (value if pointer in ("/name", "/default_precision")
                        else {"value": value, "source": source})
        return Machine(data)

    def to_json(self) -> str:
        """Returns the text of the machine file.

        >>> Machine("dgx-h100").to_json()[:20]
        '{"name": "dgx-h100",'
        """
        return json.dumps(self.data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the machine file, which ``mtplan --hardware`` reads.

        Raises ``Error`` if the machine is malformed, and ``OSError`` if the
        file cannot be written.

        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "machine.json")
        ...     Machine("dgx-h100").save(path)
        ...     Machine(path).name
        'dgx-h100'
        """
        _core.check_machine(self.to_json(), self.name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.data, file, indent=2)
            file.write("\n")

    def __repr__(self) -> str:
        """Returns the name in angle brackets."""
        return f"<mtplan.Machine {self.name}>"


def _tokens(pointer: str) -> list[str]:
    """Returns the tokens of a JSON pointer.

    >>> _tokens("/device/memory_GiB")
    ['device', 'memory_GiB']
    """
    if not pointer.startswith("/") or pointer == "/":
        raise Error(f"{pointer!r} must be a JSON pointer such as "
                    "/device/memory_GiB")
    return [token.replace("~1", "/").replace("~0", "~")
            for token in pointer[1:].split("/")]
