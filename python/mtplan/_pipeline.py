"""Runs the stages of a pipeline with ``torch.distributed.pipelining``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mtplan._data_parallel import begin_step, end_step
from mtplan._import_torch import torch_module
from mtplan._plan import Plan
from mtplan._plan_names import Family
from mtplan._stages import layers_of_stages, stage_of, stages_of_rank
from mtplan._tensor_split import Split

#: Maps a plan's schedules to PyTorch's classes. They run a rank's forwards and
#: backwards in the plan's order, except that gpipe begins backward with the
#: first micro-batch and not with the last.
SCHEDULES = {"gpipe": "ScheduleGPipe", "1f1b": "Schedule1F1B",
             "interleaved": "ScheduleInterleaved1F1B",
             "zero-bubble": "ScheduleInterleavedZeroBubble"}
_SINGLE = ("gpipe", "1f1b")  # their classes take one stage and not a list

#: Marks messages of backward, which use the same ranks as those of forward.
BACKWARD_TAG = 1


class Pipeline:
    """Holds the stages of a rank, and runs steps with a schedule of PyTorch.

    >>> SCHEDULES["1f1b"]
    'Schedule1F1B'
    >>> Pipeline(plan, model, family, split, mesh, dtype)  # doctest: +SKIP
    """

    def __init__(self, plan: Plan, module: Any, family: Family, split: Split,
                 mesh: Any, dtype: Any) -> None:
        """Makes the stages of a module that ``keep_stages`` has reduced.

        ``mesh`` has the dimension pp, and ``dtype`` is that of the messages.
        """
        distributed = torch_module("distributed")
        self._plan, self._split, self._dtype = plan, split, dtype
        self._device = next(module.parameters()).device
        self._hidden = module.config.hidden_size
        self.group = mesh["pp"].get_group()
        rank = mesh["pp"].get_local_rank()
        self.stages = {number: stage_of(plan, module, family, number, dtype)
                       for number in stages_of_rank(plan, rank)}
        self._schedules: dict[int, Any] = {}
        self._entered: Callable[[str], None] = lambda _: None
        self.tied: Any = None
        self._ends = self.group
        # Only a weight shared by first and last stage is all-reduced over pp.
        if any(one.axis == "pp" and one.kind == "all_reduce"
               for one in plan.collectives):
            ranks = distributed.get_process_group_ranks(self.group)
            if len(ranks) > 2:
                self._ends = _pair_group([ranks[0], ranks[-1]])
            name = {0: "wte", len(ranks) - 1: "lm_head"}.get(rank)
            if name:
                self.tied = module.get_submodule(family.names[name])

    def axes(self) -> dict[tuple[int, ...], str]:
        """Maps the ranks of each group over pp to "pp".

        >>> pipeline.axes()  # doctest: +SKIP
        {(0, 2): 'pp'}
        """
        ranks = torch_module("distributed").get_process_group_ranks
        return {tuple(ranks(one)): "pp" for one in (self.group, self._ends)
                if one is not None}

    def step(self, batch: dict[str, Any], entered: Callable[[str], None]
             ) -> float:
        """Computes the gradients of one step, and returns the loss.

        ``entered`` is called with "forward", "backward" or "update" before a
        part of that phase runs.

        >>> pipeline.step({"input_ids": ids, "labels": ids}, print)  # doctest: +SKIP
        """
        torch = torch_module()
        distributed = torch_module("distributed")
        degrees = self._plan.parallelism
        count, size = degrees.micro_batches, degrees.micro_batch
        schedule = self._schedule(batch["input_ids"].shape[1])
        self._entered = entered
        losses: list[Any] = []
        before = None  # a gradient that is already summed over stages
        if self.tied is not None:
            before, self.tied.weight.grad = self.tied.weight.grad, None
        if degrees.dp > 1:
            for stage in self.stages.values():
                begin_step(self._plan, stage)
        try:
            schedule.step(
                kwarg_mbs=[{key: value[number * size:(number + 1) * size]
                            for key, value in batch.items()}
                           for number in range(count)],
                target_mbs=[None] * count, losses=losses,
                return_outputs=False)
        except BaseException:
            self._schedules.clear()  # they hold the state of the failed step
            raise
        if degrees.dp > 1:
            for stage in self.stages.values():
                end_step(self._plan, stage)
        entered("update")
        if self.tied is not None:
            gradient = self.tied.weight.grad
            distributed.all_reduce(local_part(gradient), group=self._ends)
            if before is not None:
                gradient += before
        loss = torch.tensor([sum(map(float, losses))], dtype=torch.float64,
                            device=self._device)
        distributed.broadcast(loss, group=self.group, group_src=degrees.pp - 1)
        return float(loss)

    def has_schedule(self, length: int) -> bool:
        """Returns whether a step with samples of this many tokens has run.

        >>> pipeline.has_schedule(32)  # doctest: +SKIP
        False
        """
        return length in self._schedules

    def _schedule(self, length: int) -> Any:
        """Returns the schedule for samples of ``length`` tokens."""
        if length not in self._schedules:
            degrees = self._plan.parallelism
            made = getattr(torch_module("distributed.pipelining"),
                           SCHEDULES[degrees.schedule])
            stages = [_stage_class()(
                module, number, len(degrees.layers), self._device,
                input_args=self._received(number, length),
                output_args=self._received(number + 1, length),
                group=self.group) for number, module in self.stages.items()]
            for stage in stages:
                stage.pipeline = self
            count = degrees.micro_batches
            self._schedules[length] = made(
                stages[0] if degrees.schedule in _SINGLE else stages, count,
                loss_fn=lambda loss, _: loss / count, scale_grads=False)
        return self._schedules[length]

    def _received(self, number: int, length: int) -> tuple[Any, ...]:
        """Returns an example of the value that a virtual stage receives.

        Stage 0 receives nothing. The number after that of the last stage stands
        for the loss.
        """
        degrees = self._plan.parallelism
        all_layers = layers_of_stages(self._plan)
        if number == 0:
            return ()
        shape: tuple[int, ...] = ()
        if number < len(all_layers):
            parts = (degrees.tp if degrees.tp > 1 and self._split.streams[
                all_layers[number].start - 1] == "S1" else 1)
            shape = degrees.micro_batch, length // parts, self._hidden
        return torch_module().empty(shape, dtype=self._dtype, device="meta",
                                    requires_grad=True),


def _pair_group(mine: list[int]) -> Any:
    """Returns the group of a pair of ranks, or None outside of the pair.

    All ranks call this function together, each with the pair of its pipeline.
    """
    distributed = torch_module("distributed")
    pairs: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(pairs, mine)
    groups = {tuple(pair): None for pair in sorted(pairs)}
    made = {pair: distributed.new_group(pair) for pair in groups}
    return (made[tuple(mine)] if distributed.get_rank() in mine else None)


def local_part(gradient: Any) -> Any:
    """Returns the part of a gradient that this rank holds.

    >>> local_part(0.5)
    0.5
    """
    local = gradient.to_local() if hasattr(gradient, "to_local") else gradient
    return local.wait() if hasattr(local, "wait") else local


@functools.cache
def _stage_class() -> Any:
    """Returns a subclass of PipelineStage that reports when it enters forward
    and backward, and that tags the messages of backward."""
    base = torch_module("distributed.pipelining").PipelineStage
    module = torch_module().nn.Module

    class Shell(module):  # type: ignore[misc,valid-type]
        """Hides a stage's ``fully_shard`` from PipelineStage, which would
        otherwise override ``begin_step`` and ``end_step``."""

        def __init__(self, stage: Any) -> None:
            super().__init__()
            self.stage = stage

        def forward(self, *args: Any, **keywords: Any) -> Any:
            return self.stage(*args, **keywords)

    class TaggedStage(base):  # type: ignore[misc,valid-type]
        """Is a PipelineStage whose attribute ``pipeline`` is set."""

        def __init__(self, stage: Any, *args: Any, **keywords: Any) -> None:
            super().__init__(Shell(stage), *args, **keywords)

        def forward_one_chunk(self, *args: Any, **keywords: Any) -> Any:
            self.pipeline._entered("forward")
            return super().forward_one_chunk(*args, **keywords)

        def backward_one_chunk(self, *args: Any, **keywords: Any) -> Any:
            self.pipeline._entered("backward")
            return super().backward_one_chunk(*args, **keywords)

        def backward_weight_one_chunk(self, *args: Any, **keywords: Any
                                      ) -> Any:
            self.pipeline._entered("backward")
            return super().backward_weight_one_chunk(*args, **keywords)

        def get_bwd_send_ops(self, bwd_chunk_id: int) -> Any:
            return _tagged(super().get_bwd_send_ops(bwd_chunk_id))

        def get_bwd_recv_ops(self, bwd_chunk_id: int) -> Any:
            return _tagged(super().get_bwd_recv_ops(bwd_chunk_id))

    return TaggedStage


def _tagged(messages: Any) -> Any:
    """Marks messages as those of backward."""
    for message in messages:
        message.tag = BACKWARD_TAG
    return messages
