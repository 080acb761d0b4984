"""Compares the collectives that a step issues with those of a plan.

A step runs under a dispatch mode, which sees every operator that PyTorch
dispatches. PyTorch's own ``CommDebugMode`` records neither axes nor bytes.
Where PyTorch differs from the plan for a known reason, the reason predicts
exactly what PyTorch issues instead.
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass
from typing import Any

from mtplan._collective_table import (Calls, Comparison, Reason, compared,
                                      key_of)
from mtplan._data_parallel import groups_of
from mtplan._import_torch import torch_module
from mtplan._pipeline import BACKWARD_TAG
from mtplan._plan import Plan
from mtplan._record import Record
from mtplan._plan_names import FAMILIES, Family, family_name
from mtplan._step import backward, roots_of
from mtplan._weight_types import widths

#: Maps operators to the kind of collective and the position of its group.
OPERATORS = {
    "_c10d_functional.all_reduce": ("all_reduce", 2),
    "_c10d_functional.all_reduce_": ("all_reduce", 2),
    "_c10d_functional.all_gather_into_tensor": ("all_gather", 2),
    "_c10d_functional.reduce_scatter_tensor": ("reduce_scatter", 3),
    "_c10d_functional.all_to_all_single": ("all_to_all", 3),
    "_c10d_functional.broadcast": ("broadcast", 2),
    "_dtensor.shard_dim_alltoall": ("all_to_all", 3),
    "c10d.allreduce_": ("all_reduce", 1),
    "c10d._allgather_base_": ("all_gather", 2),
    "c10d.allgather_into_tensor_coalesced_": ("all_gather", 2),
    "c10d._reduce_scatter_base_": ("reduce_scatter", 2),
    "c10d.reduce_scatter_tensor_coalesced_": ("reduce_scatter", 2),
    "c10d.alltoall_base_": ("all_to_all", 2),
    "c10d.broadcast_": ("broadcast", 1),
    "c10d.send": ("send", 1),
}

#: Lists the namespaces of the dispatcher's collectives.
_NAMESPACES = ("_c10d_functional", "c10d.", "_dtensor.")
#: Lists operators of these namespaces that communicate nothing.
_LOCAL = ("wait_tensor", "_wrap_tensor_autograd", ".recv_")


@functools.cache
def _mode() -> Any:
    """Returns a class of dispatch modes that count calls in ``mode.calls``."""
    base = torch_module("utils._python_dispatch").TorchDispatchMode
    dtensor = torch_module("distributed.tensor").DTensor

    class RecordCollectives(base):  # type: ignore[misc,valid-type]
        """Counts the collectives of the dispatcher in ``calls``."""

        def __init__(self, axes: dict[tuple[int, ...], str]) -> None:
            super().__init__()
            self.axes, self.phase = axes, "forward"
            self.calls: Calls = Counter()

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (),
                               kwargs: Any = None) -> Any:
            if dtensor in types:  # DTensor then dispatches local operators
                return NotImplemented
            name = str(getattr(function, "_overloadpacket", function))
            kind, place = OPERATORS.get(name, ("", 0))
            if kind:
                axis = self.axes.get(_ranks_of(args[place]), "other")
                phase = self.phase if kind != "send" else (
                    "backward" if args[3] == BACKWARD_TAG else "forward")
                self.calls[phase, kind, axis, _bytes_of(args, name)] += 1
            elif name.startswith(_NAMESPACES) and not name.endswith(_LOCAL):
                # An unknown collective is counted under its own name.
                self.calls[self.phase, name, "other", 0] += 1
            return function(*args, **(kwargs or {}))

    return RecordCollectives


def _ranks_of(group: Any) -> tuple[int, ...]:
    """Returns the ranks of a group: a name, a ProcessGroup or a boxed one."""
    distributed = torch_module("distributed")
    if isinstance(group, str):
        group = torch_module("distributed.distributed_c10d"
                             )._resolve_process_group(group)
    elif not isinstance(group, distributed.ProcessGroup):
        group = distributed.ProcessGroup.unbox(group)
    return tuple(distributed.get_process_group_ranks(group))


def _bytes_of(args: Any, name: str) -> int:
    """Returns the bytes that a rank passes to a collective."""
    given = args[1] if "_base_" in name or "_coalesced_" in name else args[0]
    tensors = given if isinstance(given, (list, tuple)) else [given]
    return sum(one.numel() * one.element_size() for one in tensors)


def compare(plan: Plan, module: Any, batch: dict[str, Any]) -> Comparison:
    """Runs a step, and compares its collectives with the plan's.

    This implements ``Plan.check``.

    >>> compare(plan, model, {"input_ids": ids, "labels": ids})  # doctest: +SKIP
    """
    tensor = torch_module("distributed.tensor")
    axes, kind = dict[tuple[int, ...], str](), "cpu"
    for one in module.parameters():
        if isinstance(one, tensor.DTensor):
            mesh, kind = one.device_mesh, one.device_mesh.device_type
            for number, name in enumerate(mesh.mesh_dim_names or ()):
                axes[_ranks_of(mesh.get_group(number))] = name
    pipeline = getattr(module, "mtplan_pipeline", None)
    if pipeline:
        axes |= pipeline.axes()
    if pipeline and not pipeline.has_schedule(batch["input_ids"].shape[1]):
        # The ranks connect, and agree on shapes, in the first step only.
        backward(plan, module, batch)
        module.zero_grad(set_to_none=True)
    mode = _mode()(axes)

    def entered(phase: str) -> None:
        mode.phase = phase

    sizes = _sizes(plan, module)
    with mode:
        backward(plan, module, batch, entered)
    module.zero_grad(set_to_none=True)
    calls = mode.calls
    if pipeline:  # the plan counts one rank of every stage
        found: list[Any] = [None] * plan.parallelism.pp
        torch_module("distributed").all_gather_object(
            found, (sizes, calls), group=pipeline.group)
        sizes = [size for one, _ in found for size in one]
        calls = sum((one for _, one in found), Counter())
    return compared(plan.collectives, reasons_of(plan, sizes, kind), calls)


@dataclass(frozen=True)
class _Group:
    """Holds the sizes of parameters grouped in one collective, on one tp
    rank."""

    elements: int
    padded: int  #: with the padding of fully_shard
    names: tuple[str, ...]


def _sizes(plan: Plan, module: Any) -> list[_Group]:
    """Returns the groups of ``fully_shard`` or ``replicate``."""
    tensor = torch_module("distributed.tensor")
    family: Family = FAMILIES[family_name(plan)]
    degrees, seen = plan.parallelism, set[int]()
    groups = []
    parts = []
    for root, model in roots_of(module):
        apart = list(groups_of(model, family))
        parts += (apart if degrees.zero
                  else [[one] for group in apart for one in group])
        parts.append([root])
    for group in parts:
        elements, padded, names = 0, 0, []
        for one in (one for part in group for one in part.parameters()):
            if id(one) in seen:
                continue
            seen.add(id(one))
            shape = list(one.shape)
            if isinstance(one, tensor.DTensor):
                for number, name in enumerate(
                        one.device_mesh.mesh_dim_names or ()):
                    place = one.placements[number]
                    if name == "tp" and place.is_shard():
                        shape[place.dim] //= degrees.tp
            size = functools.reduce(lambda a, b: a * b, shape, 1)
            rows = -(-shape[0] // degrees.dp) * degrees.dp
            elements += size
            padded += size // shape[0] * rows
            names.append(str(shape))
        if names:
            groups.append(_Group(elements, padded, tuple(names)))
    return groups


def reasons_of(plan: Plan, groups: list[_Group], device: str) -> list[Reason]:
    """Returns the known ways in which PyTorch differs from a plan's lines.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=2, tp=2)
    >>> [one.words.split(":")[0] for one in reasons_of(plan, [], "cuda")]
    ['clip_grad_norm_']
    """
    reasons = []

    def add(words: str, lines: list[Record], issued: Calls) -> None:
        planned: Calls = Counter()
        for line in lines:
            planned[key_of(line)] += int(line.count_per_step)
        if planned or issued:
            reasons.append(Reason(words, planned, issued))

    ledger = plan.collectives
    add("clip_grad_norm_: the training loop computes the gradient norm",
        [line for line in ledger if line.axis == "all"], Counter())
    add("loss: each PyTorch replica keeps its own loss",
        [line for line in ledger if line.axis == "dp" and line.cause == "loss"],
        Counter())
    if plan.parallelism.pp > 1:
        add("loss: the last stage broadcasts it", [], Counter({
            ("update", "broadcast", "pp", 8): plan.parallelism.pp}))
    _add_data_parallel(plan, groups, add)
    _add_tensor_parallel(plan, add, device)
    return reasons


def _add_data_parallel(plan: Plan, groups: list[_Group], add: Any) -> None:
    degrees = plan.parallelism
    if degrees.dp == 1:
        return
    lines = [line for line in plan.collectives
             if line.axis == "dp" and line.cause != "loss"]
    weight, gradient = widths(plan)
    issued: Calls = Counter()
    steps = degrees.micro_batches
    labels = {one.label for run in plan.layers for one in run.parameters}
    # From ZeRO 2 on, the plan reduces the two gradients of a tied table one by
    # one. PyTorch adds them first, unless they are in different stages.
    tied = degrees.pp == 1 and "lm_head.weight" not in labels
    once = [line for line in lines
            if not (tied and line.cause == "lm_head.dw")]
    if not _same_volume(degrees, groups, once, gradient):
        return  # no reason explains the difference
    for group in groups:
        if degrees.zero == 0:
            issued["backward", "all_reduce", "dp",
                   group.elements * gradient] += 1
            continue
        shard = group.padded * weight // degrees.dp
        issued["forward", "all_gather", "dp", shard] += (
            steps if degrees.zero == 3 else 1)
        if degrees.zero == 3:
            issued["backward", "all_gather", "dp", shard] += steps
        issued["backward", "reduce_scatter", "dp",
               group.padded * gradient] += (
            steps if degrees.zero >= 2 else 1)
    words = {
        0: "replicate: sums the gradients of a layer in one call, within "
           "backward",
        3: "fully_shard: gathers and scatters the parameters of a layer in "
           "one call, and gathers all of them again in backward"}
    add(words.get(degrees.zero,
                  f"fully_shard(reshard_after_forward=False) for ZeRO "
                  f"{degrees.zero}: gathers in the next forward and not after "
                  "the update, a layer in one call"), lines, issued)


def _same_volume(degrees: Record, groups: list[_Group], lines: list[Record],
                 width: int) -> bool:
    """Returns whether the module's gradients, of ``width`` bytes an element,
    have the bytes that the plan sums over dp.

    With tp the bytes are not compared, because PyTorch also splits the biases
    of column-parallel layers.

    >>> line = Record(kind="all_reduce", bytes=8.0, count_per_step=1)
    >>> degrees = Record(tp=1, zero=0, micro_batches=1)
    >>> [_same_volume(degrees, [_Group(size, size, ())], [line], 4)
    ...  for size in (2, 3)]
    [True, False]
    """
    if degrees.tp > 1:
        return True
    times = degrees.micro_batches if degrees.zero >= 2 else 1
    planned = sum(int(line.bytes) * int(line.count_per_step) for line in lines
                  if line.kind in ("all_reduce", "reduce_scatter"))
    return (sum(one.elements for one in groups) * width * times <= planned
            <= sum(one.padded for one in groups) * width * times)


def _add_tensor_parallel(plan: Plan, add: Any, device: str) -> None:
    degrees = plan.parallelism
    if degrees.tp == 1:
        return
    lines = [line for line in plan.collectives if line.axis == "tp"]
    add("biases of columns: PyTorch stores them split over tp",
        [line for line in lines if line.kind == "all_gather"
         and line.cause.endswith((".db", ".bias"))], Counter())
    if degrees.zero and degrees.dp > 1:
        sums = [line for line in lines if line.kind == "all_reduce"
                and line.phase == "backward" and (
                    ".grad#" in line.cause or line.cause.endswith(".db"))]
        whole: Calls = Counter()
        for line in sums:
            phase, kind, axis, size = key_of(line)
            whole[phase, kind, axis, size * degrees.dp] += int(
                line.count_per_step)
        add("fully_shard: sums gradients of norms over tp before it scatters "
            "them over dp", sums, whole)
    _add_sequence_parallel(degrees, lines, add)
    if device == "cpu":
        exchanged = [line for line in lines if line.kind == "all_to_all"]
        gathered: Calls = Counter()
        for line in exchanged:
            phase, _, axis, size = key_of(line)
            gathered[phase, "all_gather", axis, size] += int(
                line.count_per_step)
        add("shard_dim_alltoall: gloo gathers and slices", exchanged, gathered)


def _add_sequence_parallel(degrees: Record, lines: list[Record], add: Any
                           ) -> None:
    scattered = any(line.kind == "reduce_scatter"
                    and line.cause.startswith("loss.") for line in lines)
    if scattered:
        values = [line for line in lines if line.cause.startswith("loss")]
        summed: Calls = Counter()
        for line in values:
            if line.kind == "reduce_scatter":
                phase, _, axis, size = key_of(line)
                summed[phase, "all_reduce", axis, size] += int(
                    line.count_per_step)
        add("loss_parallel: computes the loss of all tokens on every rank, "
            "and not only of its part of the sequence", values, summed)
    once = [line for line in lines if line.phase == "update"
            and line.kind == "all_reduce" and line.cause != "loss"]
    # Partial sums accumulate if fully_shard communicates once per step.
    times = (1 if degrees.dp > 1 and degrees.zero < 2
             else degrees.micro_batches)
    shards = degrees.dp if degrees.zero else 1
    early: Calls = Counter()
    for line in once:
        _, kind, axis, size = key_of(line)
        early["backward", kind, axis, size * shards] += times * int(
            line.count_per_step)
    add("micro-batches: gradients of norms are summed over tp in backward, and "
        "not in the update", once, early)
