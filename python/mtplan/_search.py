"""Defines the functions plan, price, sweep, load and keywords."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from mtplan import _core
from mtplan._executor import (check_executor, fastest, model_and_module,
                              rows_that_run)
from mtplan._inputs import Hardware, Model, request_of, source_of_file
from mtplan._plan import Plan
from mtplan._record import Record
from mtplan._progress import Progress, watching


def plan(model: Model, example_inputs: Any = None, *, gpus: int | None = None,
         hardware: Hardware | None = None, global_batch: int | None = None,
         seq: int | None = None,
         output: str | os.PathLike[str] | None = None,
         executor: str | None = None, progress: Progress = False,
         **space: Any) -> Plan:
    """Searches for the fastest way to train a model on a machine.

    ``model`` is a path of a Hugging Face config.json, of mtplan's own JSON or of
    MLIR text, a dict of such JSON, a configuration object of transformers, or a
    ``torch.nn.Module`` with ``example_inputs``, the arguments of its ``forward``.
    ``gpus`` is the number of GPUs (default: one node), ``hardware`` a preset, a
    machine file or a ``Machine`` (default: "dgx-h100"), ``global_batch`` the
    samples per step (default: the model's, or 512), ``seq`` the tokens per
    sample (default: the model's). With ``output``, the plan is compiled into
    that folder, and the search leaves out plans that cannot be compiled.
    ``executor="pytorch"`` leaves out what ``Plan.parallelize`` cannot run: it
    adds keywords, which the notes of the plan name, and rejects keywords that
    contradict them. A module of transformers is then planned from its
    ``config``, and the plan must fit the module's weights as they are.

    ``progress=True`` shows on standard error how far the search is. A function
    instead of True is called at most twenty times a second, with a record:
    ``seconds`` since the start, the number ``open`` of configurations that are
    left to decide, and ``step_time`` of the fastest plan so far in seconds, or
    None. An exception of the function ends the search.

    Every other keyword is a flag of the command that may stand in a constraints
    file, with "_" for "-"; ``help(mtplan.keywords)`` and docs/plan-files.md
    list these flags. A value is a number or a word, several values are a list.
    The search decides everything else.

    Raises ``Error`` for bad input, with every fault that was found,
    ``NothingFits`` if no plan fits into the memory, and ``TypeError`` for a
    model that is none of these. Ctrl-C ends the search.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/llama-3-8b.json", gpus=16, seq=4096,
    ...                    global_batch=512, tp=[1, 2][1], zero=[0, 1])
    >>> plan.parallelism.tp
    2
    >>> states = []
    >>> again = mtplan.plan("examples/llama-3-8b.json", gpus=16, seq=4096,
    ...                     global_batch=512, tp=2, progress=states.append)
    >>> all(state.open >= 0 and state.seconds > 0 for state in states)
    True
    >>> mtplan.plan({"model_type": "gpt2", "n_layer": 12, "n_embd": 768,
    ...              "n_head": 12, "n_positions": 1024, "vocab_size": 50257},
    ...             gpus=4, global_batch=64)
    <mtplan.Plan gpt2 on 4 x H100-SXM5-80GB: ...>
    """
    check_executor(executor)
    given = dict(space, gpus=gpus, hardware=hardware,
                 global_batch=global_batch, seq=seq)
    planned, module = (model_and_module(model) if executor
                       else (model, None))

    def search(keywords: dict[str, Any]) -> Plan:
        request = request_of(
            "plan", planned, keywords,
            output="" if output is None else os.fspath(output),
            example_inputs=None if module is not None else example_inputs)
        with watching(progress) as watch:
            return Plan(_core.search(request, watch))

    return fastest(search, given, module) if executor else search(given)


def price(model: Model, example_inputs: Any = None, *,
          megatron_flags: str | Sequence[str] | None = None,
          deepspeed: str | os.PathLike[str] | Mapping[str, Any] | None = None,
          torchtitan: str | os.PathLike[str] | None = None,
          executor: str | None = None, progress: Progress = False,
          **space: Any) -> Plan:
    """Prices another trainer's configuration.

    Exactly one of these is given: ``megatron_flags``, the command line of
    Megatron-LM as a text or a list of words; ``deepspeed``, a configuration as
    a dict or the path of its JSON; ``torchtitan``, the text of a job
    configuration, or the path of its TOML. The other keywords are those of
    ``plan``, except for those that the configuration decides.
    ``executor="pytorch"`` adds pins as ``plan`` does, and rejects
    configurations that ``Plan.parallelize`` cannot run.

    Returns the plan of that configuration. Raises ``Error`` and ``NothingFits``
    as ``plan`` does, and ``TypeError`` unless one of the three is given.

    >>> import mtplan
    >>> megatron = mtplan.price(
    ...     "examples/gpt2-8.3b.json", gpus=8, hardware="dgx-2h",
    ...     megatron_flags="--tensor-model-parallel-size 8 "
    ...                    "--micro-batch-size 4 --global-batch-size 512")
    >>> megatron.parallelism.tp
    8
    """
    given = {"megatron_flags": megatron_flags, "deepspeed": deepspeed,
             "torchtitan": torchtitan}
    names = [name for name, value in given.items() if value is not None]
    if len(names) != 1:
        raise TypeError("price needs one of megatron_flags, deepspeed and "
                        f"torchtitan, but got {' and '.join(names) or 'none'}")
    if megatron_flags is not None:
        words = (megatron_flags if isinstance(megatron_flags, str)
                 else " ".join(map(str, megatron_flags)))
        imported = ("megatron_flags", words)
    elif deepspeed is not None:
        imported = source_of_file("deepspeed", deepspeed)
    elif isinstance(torchtitan, str) and "\n" in torchtitan:
        imported = ("torchtitan", torchtitan)
    else:
        imported = source_of_file("torchtitan", torchtitan)
    check_executor(executor)
    planned, module = (model_and_module(model) if executor
                       else (model, None))

    def search(keywords: dict[str, Any]) -> Plan:
        request = request_of(
            "price", planned, keywords, imported,
            example_inputs=None if module is not None else example_inputs)
        with watching(progress) as watch:
            return Plan(_core.search(request, watch))

    return (fastest(search, space, module, settable=["pins"]) if executor
            else search(space))


def sweep(model: Model, over: str | Sequence[str], *,
          example_inputs: Any = None, executor: str | None = None,
          progress: Progress = False,
          **space: Any) -> list[Record]:
    """Searches once for each combination of the values of some keywords.

    ``over`` names the keywords: "tp", "pp" and others that ``mtplan --sweep``
    lists. The other keywords are those of ``plan``. Returns a row per
    combination: the swept values, ``step_time_s`` in seconds, ``memory_bytes``
    of one GPU, and ``plan``. Without a plan, the last three are None and
    ``reason`` says why. ``pandas.DataFrame(rows)`` makes a table of the rows.
    ``executor`` is that of ``plan``, and needs one more search per row.

    Raises ``Error`` for bad input. Ctrl-C ends the searches.

    >>> import mtplan
    >>> rows = mtplan.sweep("examples/llama-3-8b.json", over=["tp"], gpus=8)
    >>> [row.tp for row in rows]
    [1, 2, 4, 8]
    >>> min(rows, key=lambda row: row.step_time_s or 1e9).tp
    1
    """
    check_executor(executor)
    names = over if isinstance(over, str) else ",".join(over)
    planned, module = (model_and_module(model) if executor
                       else (model, None))
    inputs = None if module is not None else example_inputs
    request = request_of("sweep", planned, space, example_inputs=inputs)
    with watching(progress) as watch:
        text = _core.sweep(request, names.replace("_", "-"), watch)
    rows = [Record((name.replace("-", "_"), _value(name, cell))
                   for name, cell in row.items())
            for row in csv.DictReader(io.StringIO(text))]
    if executor is None:
        return rows
    return rows_that_run(
        rows, names.replace("-", "_").split(","),
        lambda keywords: plan(planned, inputs, **keywords), space, module)


def _value(name: str, cell: str) -> Any:
    """Returns the value of a cell of the CSV, or None if the cell is empty.

    >>> _value("tp", "8"), _value("step_time_s", "1.5"), _value("tp", "")
    (8, 1.5, None)
    """
    if not cell:
        return None
    if name in ("plan", "reason"):
        return cell
    try:
        return float(cell) if name == "step_time_s" else int(cell)
    except ValueError:
        return cell


def load(path: str | os.PathLike[str],
         model: str | os.PathLike[str] | None = None, **flags: Any) -> Plan:
    """Reads a plan that ``Plan.save`` or ``mtplan --save`` wrote.

    ``model`` is the path of the model's file, by default the one that the plan
    names. ``hardware``, ``software`` and ``scale_network`` price the plan on
    another machine. Raises ``Error`` for a malformed file, and ``NothingFits``
    if the plan does not fit there.

    >>> import mtplan, os, tempfile
    >>> plan = mtplan.plan("examples/tiny-gpt2.json", gpus=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "plan.json")
    ...     plan.save(path)
    ...     slower = mtplan.load(path, hardware="dgx-a100-80g")
    >>> slower.step_time > plan.step_time
    True
    """
    return Plan(_core.load(os.fspath(path),
                           "" if model is None else os.fspath(model),
                           json.dumps(flags), "load"))


def keywords() -> dict[str, str]:
    """Returns the keywords that ``plan`` takes, with what each decides.

    >>> import mtplan
    >>> print(mtplan.keywords()["micro_batch"])
    N: samples per micro-batch
    """
    return {key: f"{type_}: {text}" for key, type_, text, _ in _core.flags()}
