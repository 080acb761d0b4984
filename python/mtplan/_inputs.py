"""Turns the arguments of the package's functions into a request."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, Union, runtime_checkable

from mtplan import _core
from mtplan._errors import Error
from mtplan._machine import Machine
from mtplan._torch import TorchModel, from_torch, is_module


@runtime_checkable
class Config(Protocol):
    """Is a configuration with ``to_dict()``, such as those of transformers."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the content of a config.json."""
        ...


@runtime_checkable
class Module(Protocol):
    """Is a ``torch.nn.Module``.

    >>> isinstance("config.json", Module)
    False
    """

    def state_dict(self) -> Any:
        """Returns the parameters and buffers.

        >>> Module.state_dict.__name__
        'state_dict'
        """
        ...


Model: TypeAlias = Union[str, "os.PathLike[str]", Mapping[str, Any], Config,
                         Module, TorchModel]
Hardware: TypeAlias = Union[str, "os.PathLike[str]", Mapping[str, Any], Machine]

ACCEPTED = ("a path of a config.json, of mtplan's own JSON or of MLIR text, "
            "a dict, a configuration with to_dict(), or a torch.nn.Module")


def source_of_model(model: Model) -> tuple[str, str]:
    """Returns the model's name in messages, and its text ("" for a file).

    Raises ``TypeError`` for objects that are no model, and ``Error`` for a dict
    that JSON cannot express.

    >>> source_of_model("config.json")
    ('config.json', '')
    >>> source_of_model({"model_type": "gpt2"})
    ('gpt2', '{"model_type": "gpt2"}')
    """
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model), ""
    if isinstance(model, TorchModel):
        return model.name, model.text
    if isinstance(model, Mapping):
        fields = dict(model)
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

    Raises ``TypeError`` for other objects, and ``Error`` for a dict that JSON
    cannot express.

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
               imported: tuple[str, str] = ("", ""), output: str = "",
               example_inputs: Any = None) -> _core.Request:
    """Returns the request for a model and keyword arguments.

    The keys of ``space`` are those of a constraints file (docs/plan-files.md),
    one per flag; a key with the value None is left out. ``hardware`` may also be
    a ``Machine`` or a dict, and ``software`` a dict. The core checks the rest. A
    module is exported first, with ``example_inputs``.

    Raises ``TypeError`` for objects of another type, and ``Error`` for values
    that JSON cannot express and modules that cannot be imported.

    >>> request = request_of("plan", "config.json", {"gpus": 8, "tp": None})
    """
    given = {key: value for key, value in space.items() if value is not None}
    if is_module(model):
        model = from_torch(model, example_inputs, precision=_precision(given),
                           seq=given.get("seq"))
    elif example_inputs is not None:
        raise TypeError("example_inputs is for a torch.nn.Module, but the model is "
                        f"a {type(model).__name__}")
    if isinstance(model, TorchModel):
        _check_sequence(model, given)
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


def _precision(given: Mapping[str, Any]) -> str:
    """Returns the precision that is asked for, or else the machine's.

    >>> _precision({}), _precision({"hardware": "cpu"}), _precision({"precision": "fp16"})
    ('bf16', 'fp32', 'fp16')
    """
    if isinstance(given.get("precision"), str):
        return str(given["precision"])
    hardware = given.get("hardware")
    if hardware is None:
        return "bf16"
    machine = (hardware if isinstance(hardware, Machine) else
               Machine(dict(hardware) if isinstance(hardware, Mapping)
                       else hardware))
    return str(machine.data.get("default_precision", "bf16"))


def _check_sequence(model: TorchModel, given: dict[str, Any]) -> None:
    """Removes ``seq``; raises ``Error`` if the example has another length."""
    asked = given.pop("seq", None)
    if asked is not None and model.sequence not in (None, asked):
        raise Error(f"{model.name}: --seq: the example has {model.sequence} "
                    f"positions, and not {asked}; a module is imported for the "
                    "length of its example_inputs")


def words_of(choices: Mapping[str, Any]) -> str:
    """Returns choices in the form of --why.

    >>> words_of({"tp": 8, "micro_batch": [1, 2], "overlap": "off"})
    'tp=8 micro-batch=1,2 overlap=off'
    """
    return " ".join(f"{key.replace('_', '-')}={_text(value)}"
                    for key, value in choices.items())


def _text(value: Any) -> str:
    """Returns one value in the form of --why."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(_text(one) for one in value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
