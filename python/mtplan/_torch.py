"""Imports a ``torch.nn.Module`` as a model."""

from __future__ import annotations

import importlib
import sys
import warnings
from dataclasses import dataclass
from typing import Any

from mtplan._errors import Error

# Maps precisions to types of numbers in textual IR.
ELEMENTS = {"bf16": "bf16", "fp16": "f16", "fp32": "f32", "fp8": "bf16"}
LONGEST = 8192


@dataclass(frozen=True)
class TorchModel:
    """Is an imported module, which ``plan``, ``price`` and ``sweep`` take.

    ``name`` is the module's class, ``text`` is textual IR
    (docs/model-format.md), and ``samples`` counts the samples of the example.
    ``parameters`` says from which part of the module's parameters each parameter
    of the text comes. ``inputs`` says which node of the exported ``program``
    computes each input.

    ``sequence`` counts the positions, and is None if there are none. ``notes``
    tell where mtplan trains differently from PyTorch; they are also issued as
    warnings.

    >>> TorchModel("MLP", "module {}", 2, None, [], [], None).name
    'MLP'
    """

    name: str
    text: str
    samples: int
    sequence: int | None
    parameters: list[Any]
    inputs: list[Any]
    program: Any
    notes: tuple[str, ...] = ()


def is_module(given: Any) -> bool:
    """Returns whether something is a ``torch.nn.Module``, without importing torch.

    >>> is_module("config.json")
    False
    """
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(given, torch.nn.Module)


def from_torch(module: Any, example_inputs: Any = None, *,
               precision: str = "bf16", seq: int | None = None,
               capacity_factor: float | None = None) -> TorchModel:
    """Imports a module, so that several plans need to export it only once.

    ``example_inputs`` are the arguments of ``forward``: a tuple, or a dict of
    named ones. The first dimension of each tensor counts samples. Without
    example inputs, a module of transformers gets ``seq`` tokens and as many
    labels. The output must be the mean cross entropy, or logits. Weights may be
    on the device meta.

    By default, experts take all tokens that choose them, as in the module. With a
    ``capacity_factor``, an expert takes this multiple of an even share of a sample's
    tokens and drops the others, as in models that mtplan reads from configs.

    Raises ``Error`` with the Python line of the code that cannot be imported.

    >>> import torch                                           # doctest: +SKIP
    >>> mlp = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(),
    ...                           torch.nn.Linear(256, 10))    # doctest: +SKIP
    >>> from_torch(mlp, (torch.zeros(8, 64),)).name            # doctest: +SKIP
    'Sequential'
    """
    export = importlib.import_module("mtplan._torch_export")
    finish = importlib.import_module("mtplan._torch_finish")
    layers = importlib.import_module("mtplan._torch_layers")
    text = importlib.import_module("mtplan._torch_text")
    values = importlib.import_module("mtplan._torch_values")
    if precision not in ELEMENTS:
        raise Error(f"precision must be one of {', '.join(ELEMENTS)}, but is "
                    f"{precision}")
    name = type(module).__name__
    if example_inputs is None:
        example_inputs = example_of(module, seq)
    example = export.of_two_samples(example_inputs)
    program = export.export(module, example)
    walk = export.Walk(module, program, export.samples_of(example))
    walk.importer.capacity_factor = capacity_factor
    outputs = walk.run()
    check_capacity(walk.importer, name)
    try:
        loss = export.loss_among(walk.importer, outputs)
    except values.Refusal as refusal:
        raise Error(f"{name}: {refusal}") from None
    graph = walk.importer.graph
    finish.finish(graph, loss)
    segments = layers.segments_of(graph)
    writer = text.Writer(ELEMENTS[precision], name)
    written = writer.text(segments)
    sources = [op for op in graph.ops if op.is_leaf]
    check_trained(module, sources, name)
    for note in walk.importer.notes:
        warnings.warn(f"{name}: {note}", stacklevel=2)
    sequence = next((dim.size for op in sources if op.kind == "input"
                     for dim in op.results[0].dims if dim.role == "sequence"), None)
    return TorchModel(name, written, walk.importer.batch, sequence,
                      [op for op in sources if op.kind == "parameter"],
                      [op for op in sources if op.kind == "input"], program,
                      tuple(walk.importer.notes))


def check_capacity(importer: Any, name: str) -> None:
    """Adds a note if experts drop tokens that the module's experts take.

    Raises ``Error`` for a capacity factor that is not above 0, or if there are no
    experts.

    >>> class Importer: capacity_factor, routings = 1.25, []
    >>> check_capacity(Importer(), "m")
    Traceback (most recent call last):
    ...
    mtplan._errors.Error: m: capacity_factor is for experts, and the module has none
    """
    factor = importer.capacity_factor
    if factor is None:
        return
    if not importer.routings:
        raise Error(f"{name}: capacity_factor is for experts, and the module has none")
    routing = importer.routings[0]
    _, positions, experts = routing.logits.shape
    if not factor > 0:
        raise Error(f"{name}: capacity_factor must be above 0, but is {factor}; "
                    f"{experts / routing.count:g} drops no token")
    experts_of = importlib.import_module("mtplan._torch_experts")
    places = experts_of.places_of(importer, routing)
    if places < positions:
        importer.notes.append(
            f"each of the {experts} experts takes {places} of the {positions} tokens "
            f"of a sample (capacity_factor {factor:g}) and drops the others, which "
            "the module does not")


def check_trained(module: Any, sources: list[Any], name: str) -> None:
    """Raises ``Error`` if a part of a parameter is not read by the model.

    Parameters that the loss does not read at all are allowed, because they get no
    gradient in PyTorch, either.

    >>> check_trained(None, [], "m")
    """
    parts: dict[str, list[Any]] = {}
    for op in sources:
        if op.source is not None and op.source.stop is not None:
            parts.setdefault(op.source.name, []).append(op.source)
    for parameter, read in parts.items():
        size = module.get_parameter(parameter).shape[read[0].dim]
        if sum(one.groups * (one.stop - one.start) for one in read) != size:
            raise Error(f"{name}: only a part of the parameter {parameter} is read")


def example_of(module: Any, seq: int | None) -> dict[str, Any]:
    """Returns example inputs for a module of transformers, from its sizes.

    Raises ``Error`` for other modules.

    >>> example_of(None, 8)
    Traceback (most recent call last):
    ...
    mtplan._errors.Error: NoneType: example_inputs is missing: ...
    """
    name = type(module).__name__
    config = getattr(module, "config", None)
    main = getattr(module, "main_input_name", None)
    if config is None or main not in ("input_ids", "pixel_values"):
        raise Error(f"{name}: example_inputs is missing: give the arguments of "
                    "forward, as a tuple or as a dict of named ones")
    torch = importlib.import_module("torch")
    device = next(iter(module.parameters())).device
    if main == "pixel_values":
        kind = next(iter(module.parameters())).dtype
        shape = (2, config.num_channels, config.image_size, config.image_size)
        return {"pixel_values": torch.zeros(shape, device=device, dtype=kind),
                "labels": torch.zeros(2, dtype=torch.long, device=device)}
    longest = next((getattr(config, key)
                    for key in ("max_position_embeddings", "n_positions")
                    if getattr(config, key, None)), LONGEST)
    window = getattr(config, "sliding_window", None)
    length = seq or min(longest, LONGEST, window or LONGEST)
    ids = torch.zeros(2, length, dtype=torch.long, device=device)
    example = {"input_ids": ids, "labels": ids.clone()}
    if getattr(config, "type_vocab_size", 0) > 0:
        example["token_type_ids"] = ids.clone()
    return example
