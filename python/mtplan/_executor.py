"""Restricts a search to plans that PyTorch can run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mtplan._errors import Error
from mtplan._expressible import ALWAYS, checked, judged
from mtplan._plan import Plan
from mtplan._torch import is_module

#: Returns the plan that a search with these keywords finds.
Search = Callable[[dict[str, Any]], Plan]
_MOST = 6  # largest number of faults that are avoided one after another


def check_executor(executor: str | None) -> None:
    """Raises ``Error`` for an unknown executor.

    >>> check_executor("tensorflow")
    Traceback (most recent call last):
    ...
    mtplan._errors.Error: executor: must be "pytorch", but is "tensorflow"
    """
    if executor not in (None, "pytorch"):
        raise Error(f'executor: must be "pytorch", but is "{executor}"')


def model_and_module(model: Any) -> tuple[Any, Any]:
    """Returns the model to plan, and the module to parallelize, if any.

    For a module of transformers, the model to plan is its configuration.

    >>> model_and_module("config.json")
    ('config.json', None)
    """
    if is_module(model) and hasattr(model, "config"):
        return model.config, model
    return model, None


def narrowed(key: str, given: Any, wanted: Any) -> Any:
    """Returns the values that are both given and wanted.

    Raises ``Error`` if there are none. ``given`` is None or "any" if the user
    leaves the choice open.

    >>> narrowed("zero", [0, 1, 2], [1, 0])
    [0, 1]
    >>> narrowed("cp", 2, 1)
    Traceback (most recent call last):
    ...
    mtplan._errors.Error: cp=2 contradicts executor="pytorch", which takes cp=1...
    """
    if key == "pins":
        return _merged_pins(given or [], wanted)
    if given is None or given == "any":
        return wanted
    wants = wanted if isinstance(wanted, list) else [wanted]
    gives = list(given) if isinstance(given, (list, tuple, range)) else [given]
    both = [one for one in gives if one in wants]
    if not both:
        why = f": {ALWAYS[key][1]}" if key in ALWAYS else ""
        raise Error(f'{key}={given!r} contradicts executor="pytorch", which '
                    f"takes {key}={wanted!r}{why}")
    return both[0] if len(both) == 1 else both


def _merged_pins(given: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Returns the pins of the user and of PyTorch, which may overlap.

    >>> _merged_pins(["wte=vocab"], ["wte=vocab", "ln_f=replicated"])
    ['wte=vocab', 'ln_f=replicated']
    """
    mine = dict(one.split("=", 1) for one in given)
    for one in wanted:
        label, _, strategy = one.partition("=")
        if mine.get(label, strategy) != strategy:
            raise Error(f'pins: {label}={mine[label]} contradicts '
                        f'executor="pytorch", which takes {one}')
    return [*given, *(one for one in wanted if one not in given)]


def fastest(search: Search, given: Mapping[str, Any], module: Any = None,
            settable: Sequence[str] | None = None) -> Plan:
    """Returns the fastest plan found that PyTorch can run.

    ``given`` are the keywords of the user. Keywords that exclude what PyTorch
    does not support are added, one after another, and every alternative is
    tried. If 1f1b has too few micro-batches, other schedules are tried, and not
    smaller micro-batches. ``settable`` names the keywords that may be added
    (default: all). The notes of the plan name the added keywords. Raises
    ``Error`` for keywords that contradict PyTorch's needs, and whatever
    ``search`` raises.

    >>> import mtplan
    >>> plan = fastest(lambda keywords: mtplan.plan(
    ...     "examples/tiny-llama.json", **keywords), {"gpus": 4})
    >>> plan.notes[-1]
    'executor "pytorch" set cp=1, ep=1, tiles=1, offload=\\'none\\', zero_ranks=\\'all\\''
    """
    given = {key: value for key, value in given.items() if value is not None}
    added: dict[str, Any] = {}
    if settable is None:
        added = {key: narrowed(key, given.get(key), value)
                 for key, (value, _) in ALWAYS.items()}
    plan, added = _fastest(search, given, added, module, settable, _MOST)
    words = ", ".join(f"{key}={value!r}" for key, value in added.items()
                      if value != given.get(key))
    if words:
        plan.add_note(f'executor "pytorch" set {words}')
    return plan


def _fastest(search: Search, given: dict[str, Any], added: dict[str, Any],
             module: Any, settable: Sequence[str] | None, left: int
             ) -> tuple[Plan, dict[str, Any]]:
    """Returns the fastest plan that PyTorch can run, and all added keywords."""
    plan = search({**given, **added})
    verdict = judged(plan)
    if not verdict.faults:
        if module is not None:
            checked(plan, module)
        return plan, added
    found: list[tuple[Plan, dict[str, Any]]] = []
    failed: list[Error] = []
    for way in verdict.ways if left else []:
        try:
            more = {key: narrowed(key, given.get(key), value)
                    for key, value in way.items()
                    if settable is None or key in settable}
            if any(key in added for key in more):
                continue  # these values did not help
            if more:
                found.append(_fastest(search, given, {**added, **more}, module,
                                      settable, left - 1))
        except Error as fault:
            failed.append(fault)
    if found:
        return min(found, key=lambda one: one[0].step_time)
    raise failed[0] if failed else Error(verdict.faults
                                         + verdict.nearest_words())


def rows_that_run(rows: list[Any], names: Sequence[str], search: Search,
                  given: Mapping[str, Any], module: Any) -> list[Any]:
    """Returns the rows of a sweep with the fastest plans that PyTorch can run.

    >>> rows_that_run([], ["tp"], None, {}, None)
    []
    """
    for row in rows:
        if row["plan"] is None:
            continue
        try:
            plan = fastest(search, {**given, **{
                name: row[name] for name in names}}, module)
        except Error as fault:
            row.update(step_time_s=None, memory_bytes=None, plan=None,
                       reason=fault.errors[0])
        else:
            row.update(step_time_s=plan.step_time,
                       memory_bytes=int(plan.memory.total),
                       plan=plan.summary())
    return rows
