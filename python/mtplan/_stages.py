"""Cuts a module of transformers into the stages of a pipeline.

A rank keeps the layers of its stages, the embedding if it has the first stage,
and the head if it has the last. ``Absent`` replaces other modules with
parameters, so that names stay those of transformers. The model's own forward
runs on every stage, and computes masks and positions as in the whole model.
"""

from __future__ import annotations

import copy
import functools
from itertools import accumulate, pairwise
from typing import Any

from mtplan._errors import Error
from mtplan._import_torch import torch_module
from mtplan._plan import Plan
from mtplan._plan_names import Family


def layers_of_stages(plan: Plan) -> list[range]:
    """Returns the numbers of the layers of each virtual stage.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=2, pp=2, layers=4,
    ...                    schedule="1f1b", stage_layers=[1, 3])
    >>> layers_of_stages(plan)
    [range(0, 1), range(1, 4)]
    """
    ends = accumulate(plan.parallelism.layers, initial=0)
    return [range(first, last) for first, last in pairwise(ends)]


def stages_of_rank(plan: Plan, rank: int) -> list[int]:
    """Returns the virtual stages that a rank of the axis pp runs.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=2, pp=2, vp=2,
    ...                    layers=4, schedule="interleaved")
    >>> stages_of_rank(plan, 1)
    [1, 3]
    """
    return list(range(rank, len(plan.parallelism.layers), plan.parallelism.pp))


def is_absent(module: Any) -> bool:
    """Returns whether another rank holds a module.

    >>> is_absent(None)
    False
    """
    return type(module).__name__ == "Absent"


def present(model: Any) -> dict[str, Any]:
    """Returns the modules that this rank holds, by name.

    >>> present(model)  # doctest: +SKIP
    """
    return {name: one for name, one in model.named_modules()
            if not is_absent(one)}


@functools.cache
def _parts() -> tuple[Any, Any, Any, Any]:
    """Returns the classes of the modules of this file."""
    base = torch_module().nn.Module

    class Absent(base):  # type: ignore[misc,valid-type]
        """Stands for a module of another rank, and computes nothing.

        Token and position ids become a value without memory, which only says
        how many samples and positions there are.
        """

        def __init__(self, dtype: Any, hidden: int) -> None:
            super().__init__()
            self.dtype, self.hidden = dtype, hidden

        def forward(self, value: Any = None, *_: Any, input_ids: Any = None,
                    **__: Any) -> Any:
            value = input_ids if value is None else value
            return (value if value.is_floating_point()
                    else value.new_zeros((), dtype=self.dtype).expand(
                        *value.shape, self.hidden))

    class Entrance(base):  # type: ignore[misc,valid-type]
        """Replaces the layer before a stage; returns the received value."""

        received: Any = None

        def forward(self, *_: Any, **__: Any) -> Any:
            return self.received

        def check(self, _: Any, given: Any) -> None:
            """Raises ``Error`` unless the layer gets the received value."""
            if given[0].shape != self.received.shape:
                raise Error(
                    f"a layer is given {list(given[0].shape)}, and the stage "
                    f"received {list(self.received.shape)}: layers must return "
                    "a tensor, as those of transformers 5 do")

    class Exit(base):  # type: ignore[misc,valid-type]
        """Replaces the layer after a stage; keeps the value to send."""

        kept: Any = None
        whole: tuple[int, ...] = ()

        def forward(self, value: Any, *_: Any, **__: Any) -> Any:
            self.kept = value.contiguous()
            return value.new_zeros(()).expand(self.whole)

    class Stage(base):  # type: ignore[misc,valid-type]
        """Is a virtual stage; returns the value to send, or the final loss."""

        def __init__(self, model: Any, entrance: Any, exit_: Any) -> None:
            super().__init__()
            self.model, self.entrance, self.exit = model, entrance, exit_

        def forward(self, *received: Any, **inputs: Any) -> Any:
            last = self.exit is None
            try:
                if self.entrance is not None:
                    self.entrance.received, = received
                if not last:
                    inputs.pop("labels")
                    self.exit.whole = (*inputs["input_ids"].shape,
                                       self.model.config.hidden_size)
                result = self.model(**inputs, return_dict=True)
                return result.loss if last else self.exit.kept
            finally:
                if self.entrance is not None:
                    self.entrance.received = None
                if not last:
                    self.exit.kept = None

    return Absent, Entrance, Exit, Stage


def keep_stages(plan: Plan, module: Any, family: Family, rank: int,
                dtype: Any) -> None:
    """Replaces, and so frees, the modules that a rank of pp does not run.

    ``dtype`` is the type in which the stages compute.

    >>> keep_stages(plan, model, family, 0, torch.float32)  # doctest: +SKIP
    """
    absent, hidden = _parts()[0], module.config.hidden_size
    mine, all_layers = stages_of_rank(plan, rank), layers_of_stages(plan)
    dropped = [*(family.front if 0 not in mine else ()),
               *(family.back if len(all_layers) - 1 not in mine else ()),
               *(family.in_layer(number, "")[:-1]
                 for stage, layers in enumerate(all_layers)
                 if stage not in mine for number in layers)]
    for name in dropped:
        owner, _, last = name.rpartition(".")
        setattr(module.get_submodule(owner), last, absent(dtype, hidden))


def stage_of(plan: Plan, module: Any, family: Family, number: int, dtype: Any
             ) -> Any:
    """Returns a module that runs one virtual stage.

    The result shares layers and parameters with ``module``. The function copies
    only the list of layers and the modules that contain that list.

    >>> stage_of(plan, model, family, 0, torch.float32)  # doctest: +SKIP
    """
    absent, entrance_of, exit_of, stage = _parts()
    hidden = module.config.hidden_size
    all_layers = layers_of_stages(plan)
    mine, count = all_layers[number], len(all_layers)
    model = owner = _shallow(module)
    for name in family.layers.split("."):
        inner = _shallow(getattr(owner, name))
        owner._modules[name] = inner
        owner = inner
    for index in range(len(owner)):
        if index not in mine:
            owner[index] = absent(dtype, hidden)
    for name in (*(family.front if number else ()),
                 *(family.back if number < count - 1 else ())):
        holder, _, last = name.rpartition(".")
        model.get_submodule(holder)._modules[last] = absent(dtype, hidden)
    entrance = exit_ = None
    if number:
        entrance = owner[mine.start - 1] = entrance_of()
        owner[mine.start].register_forward_pre_hook(entrance.check)
    if number < count - 1:
        exit_ = owner[mine.stop] = exit_of()
    return stage(model, entrance, exit_)


def _shallow(module: Any) -> Any:
    """Returns a copy of a module that shares its parameters and submodules."""
    made = copy.copy(module)
    made._modules = dict(module._modules)
    return made
