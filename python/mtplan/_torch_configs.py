"""Changes the configs of transformers while a module is exported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Maps keys of configs to their values during the export. Caches of keys and
# values have no gradient. Only "batched_mm", which multiplies each token by the
# weights of its experts, has shapes that do not depend on the data.
DURING = {"use_cache": False, "_experts_implementation_internal": "batched_mm"}


@contextmanager
def exportable(module: Any) -> Iterator[None]:
    """Sets the configs of a module and its parts, and restores them at the end.

    >>> class Config: use_cache = True
    >>> class Module:
    ...     config = Config()
    ...     def modules(self): return [self]
    >>> with exportable(Module()):
    ...     Module.config.use_cache
    False
    >>> Module.config.use_cache
    True
    """
    parts = module.modules() if hasattr(module, "modules") else []
    configs = {id(config): config for part in parts
               if (config := getattr(part, "config", None)) is not None}
    kept = [(config, key, value) for config in configs.values() for key in DURING
            if (value := getattr(config, key, None))]
    for config, key, _ in kept:
        setattr(config, key, DURING[key])
    try:
        yield
    finally:
        for config, key, value in kept:
            setattr(config, key, value)
