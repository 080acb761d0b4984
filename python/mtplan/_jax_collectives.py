"""Compares the collectives of a step that XLA compiled with those of a plan.

Where XLA differs from the plan for a known reason, the reason predicts exactly
what the compiled program has instead.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from mtplan._collective_table import (Calls, Comparison, Reason, compared,
                                      key_of)
from mtplan._jax_hlo import collectives_of
from mtplan._jax_layouts import jax_module
from mtplan._plan import Plan, Record

if TYPE_CHECKING:
    from mtplan._jax import Shardings


def compare(shardings: Shardings, step: Any, args: Any, kwargs: Any
            ) -> Comparison:
    """Compiles a step, and compares its collectives with the plan's.

    ``Shardings.check`` describes it.

    >>> compare(shardings, step, (params, state, batch), {})  # doctest: +SKIP
    """
    jitted = step if hasattr(step, "lower") else jax_module().jit(step)
    text = jitted.lower(*args, **kwargs).compile().as_text()
    issued = collectives_of(text, dict(shardings.mesh.shape))
    ledger = ledger_of(shardings.plan)
    platform = shardings.mesh.devices.flat[0].platform
    return compared(ledger, reasons_of(shardings.plan, ledger, platform,
                                       shardings.shared), issued)


def ledger_of(plan: Plan) -> list[Record]:
    """Returns the lines of a plan, with sums of gradients in backward.

    XLA sums gradients where they are computed, also those that the plan sums
    once per step.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=2, dp=2)
    >>> {line.phase for line in ledger_of(plan) if line.cause != "loss"
    ...  and line.kind == "all_reduce"}
    {'backward'}
    """
    return [Record(line, phase="backward")
            if line.kind in ("all_reduce", "reduce_scatter")
            and line.phase == "update" and line.cause != "loss" else line
            for line in plan.collectives]


def reasons_of(plan: Plan, ledger: list[Record], platform: str,
               shared: set[str]) -> list[Reason]:
    """Returns the named behaviours of XLA that change a plan's lines.

    ``shared`` are the operators whose inputs went through ``products``.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=2, dp=2, zero=0)
    >>> [one.words.split(":")[0] for one in reasons_of(
    ...     plan, ledger_of(plan), "gpu", set())]
    ['gradient norm', 'loss']
    """
    reasons = []

    def add(words: str, lines: list[Record], issued: Calls) -> None:
        planned: Calls = Counter()
        for line in lines:
            planned[key_of(line)] += int(line.count_per_step)
        if planned or issued:
            reasons.append(Reason(words, planned, issued))

    add("gradient norm: the optimizer's, which sums it where it wants it",
        [line for line in ledger if line.axis == "all"], Counter())
    losses = [line for line in ledger if line.cause == "loss"
              and line.phase == "update"]
    add("loss: XLA sums one number over dp in forward", losses,
        Counter({("forward", "all_reduce", "dp", 4): len(losses)}))
    return reasons
