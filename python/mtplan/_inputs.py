"""Turns the arguments of the package's functions into a request."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, Union, runtime_checkable

from mtplan import _core
from mtplan._errors import Error
from mtplan._machine import Machine


@runtime_checkable
class Config(Protocol):
    """Is a configuration with ``to_dict()``, such as those of transformers."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the content of a config.json."""
        ...


Model: TypeAlias = Union[str, "os.PathLike[str]", Mapping[str, Any], Config]
Hardware: TypeAlias = Union[str, "os.PathLike[str]", Mapping[str, Any], Machine]

ACCEPTED = ("a path of a config.json, of mtplan's own JSON or of MLIR text, "
            "a dict, or a configuration with to_dict()")


def source_of_model(model: Model) -> tuple[str, str]:
    """Returns the model's name in messages, and its text; "" if it is a file.

    Raises ``TypeError`` for objects that are no model, and ``Error`` for a dict
    that JSON cannot express.

    >>> source_of_model("config.json")
    ('config.json', '')
    >>> source_of_model({"model_type": "gpt2"})
    ('gpt2', '{"model_type": "gpt2"}')
    """
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model), ""
    if isinstance(model, Mapping):
        fields = dict(model)
    elif hasattr(model, "state_dict"):
        raise TypeError(
            f"a module cannot be planned, and this is a {type(model).__name__}: "
            f"give {ACCEPTED}, such as model.config of transformers")
    elif isinstance(model, Config) and not isinstance(model, type):
        fields = model.to_dict()
    else:
        raise TypeError(f"a model must be {ACCEPTED}, "
                        f"but is a {type(model).__name__}")
    name = next((str(fields[key])
                 for key in ("_name_or_path", "name", "model_type")
                 if fields.get(key)), "model")
    return name, json_text(name, fields)


def json_text(name: str, value: Any) -> str:
    """Returns a value as JSON. Raises ``Error`` if it has no JSON form.

    >>> json_text("model", {"layers": 2})
    '{"layers": 2}'
    >>> json_text("model", {"layers": {2}})
    Traceback (most recent call last):
    ...
    mtplan._errors.Error: model: Object of type set is not JSON serializable
    """
    try:
        return json.dumps(value)
    except (TypeError, ValueError) as fault:
        raise Error(f"{name}: {fault}") from None


def source_of_file(name: str, value: Any) -> tuple[str, str]:
    """Returns the name in messages and the text of a JSON file or a dict.

    >>> source_of_file("deepspeed", {"train_batch_size": 8})
    ('deepspeed', '{"train_batch_size": 8}')
    >>> source_of_file("deepspeed", "ds.json")
    ('ds.json', '')
    """
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value), ""
    if isinstance(value, Mapping):
        return name, json_text(name, dict(value))
    raise TypeError(f"{name} must be a path or a dict, "
                    f"but is a {type(value).__name__}")


def request_of(caller: str, model: Model, space: Mapping[str, Any],
               imported: tuple[str, str] = ("", ""),
               output: str = "") -> _core.Request:
    """Returns the request for a model and keyword arguments.

    The keys of ``space`` are those of a constraints file (docs/plan-files.md),
    one per flag; a key with the value None is left out. ``hardware`` may also be
    a ``Machine`` or a dict, and ``software`` a dict. The core checks the rest.

    >>> request = request_of("plan", "config.json", {"gpus": 8, "tp": None})
    """
    given = {key: value for key, value in space.items() if value is not None}
    texts = {"hardware": "", "software": ""}
    for key in texts:
        value = given.get(key)
        if isinstance(value, Machine):
            given[key], texts[key] = value.name, value.to_json()
        elif isinstance(value, Mapping):
            given[key] = str(value.get("name", key))
            texts[key] = json_text(key, dict(value))
        elif isinstance(value, os.PathLike):
            given[key] = os.fspath(value)
    flags = {key: list(value) if isinstance(value, (tuple, range)) else value
             for key, value in given.items()}
    return _core.Request(source_of_model(model), json_text(caller, flags),
                         caller, texts["hardware"], texts["software"],
                         imported, output)


def words_of(choices: Mapping[str, Any]) -> str:
    """Returns choices in the form of --why.

    >>> words_of({"tp": 8, "micro_batch": [1, 2], "overlap": "off"})
    'tp=8 micro-batch=1,2 overlap=off'
    """
    return " ".join(f"{key.replace('_', '-')}={_text(value)}"
                    for key, value in choices.items())


def _text(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(_text(one) for one in value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
