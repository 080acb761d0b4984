"""Defines Plan, the result of a search."""

from __future__ import annotations

import html
import json
import os
from typing import TYPE_CHECKING, Any

from mtplan import _core
from mtplan._inputs import words_of
from mtplan._record import Memory, Record

if TYPE_CHECKING:
    from mtplan._collective_table import Comparison
    from mtplan._jax import Shardings


class Plan:
    """Holds the plan that a search found.

    Times are in seconds, sizes in bytes of one GPU.

    >>> import mtplan
    >>> plan = mtplan.plan("examples/gpt2-8.3b.json", hardware="dgx-2h",
    ...                    gpus=8, dp=1, tp=8,
    ...                    splits=["column", "row", "head", "vocab"])
    >>> plan
    <mtplan.Plan gpt2-8.3b on 8 x V100-SXM3-32GB: tp 8, micro-batch 4, 29.1 of 31.7 GiB, 68.1 s a step>
    >>> print(f"{plan.step_time:.1f}")
    68.1
    """

    def __init__(self, found: _core.FoundPlan) -> None:
        """Takes the core's plan, and reads its report once."""
        self._found = found
        self._report = json.loads(found.json(False), object_hook=Record)
        self._added_notes: list[str] = []

    def add_note(self, note: str) -> None:
        """Adds a sentence to the notes.

        >>> import mtplan
        >>> plan = mtplan.plan("examples/llama-3-8b.json")
        >>> plan.add_note("seen")
        >>> plan.notes[-1]
        'seen'
        """
        self._added_notes.append(note)

    def summary(self) -> str:
        """Returns the degrees, memory and step time in a few words.

        >>> import mtplan
        >>> mtplan.plan("examples/llama-3-8b.json", tp=8, gpus=8).summary()
        'tp 8, micro-batch ...'
        """
        return self._found.summary()

    @property
    def step_time(self) -> float:
        """Returns the predicted time of one step in seconds.

        >>> import mtplan
        >>> 0 < mtplan.plan("examples/tiny-gpt2.json", gpus=1).step_time < 1
        True
        """
        return float(self._report.prediction.step_time_s)

    @property
    def prediction(self) -> Record:
        """Returns the figures of the step, as docs/json-output.md names them:
        ``tokens_per_s``, ``mfu``, ``breakdown_s`` and so on.

        >>> import mtplan
        >>> round(mtplan.plan("examples/llama-3-8b.json").prediction.mfu, 2)
        0.53
        """
        prediction: Record = self._report.prediction
        return prediction

    @property
    def parallelism(self) -> Record:
        """Returns the degrees and other choices: ``dp``, ``tp``, ``pp``,
        ``zero``, ``schedule``, ``micro_batch`` (in samples) and so on.

        >>> import mtplan
        >>> plan = mtplan.plan("examples/llama-3-8b.json", gpus=8, tp=2, pp=2)
        >>> plan.parallelism.dp * plan.parallelism.cp
        2
        """
        return Record((key, value) for key, value in self._report.plan.items()
                      if key not in ("ops", "parameters"))

    @property
    def memory(self) -> Memory:
        """Returns the memory of a GPU by class and stage, in bytes, and the
        moment at which it peaks.

        >>> import mtplan
        >>> memory = mtplan.plan("examples/llama-3-8b.json", gpus=8).memory
        >>> memory.peak.phase in ("forward", "backward", None)
        True
        """
        prediction = self._report.prediction
        classes = Record(prediction.memory_bytes)
        total, limit = classes.pop("total"), classes.pop("limit")
        return Memory(classes, total, limit, prediction.peak,
                      prediction.stages, prediction.host_memory_bytes)

    @property
    def collectives(self) -> list[Record]:
        """Returns the collectives and messages of a step, each with ``kind``,
        ``axis``, ``bytes`` of one call, ``count_per_step``, ``phase``,
        ``cause`` and ``time_s`` of one call.

        >>> import mtplan
        >>> plan = mtplan.plan("examples/gpt2-1.2b.json", gpus=2, tp=2)
        >>> {one.kind for one in plan.collectives if one.axis == "tp"} <= {
        ...     "all_reduce", "all_gather", "reduce_scatter", "all_to_all"}
        True
        """
        return list(self._report.collectives)

    @property
    def layers(self) -> list[Record]:
        """Returns the runs of equal layers in the order of the model. Each has
        ``segment``, the number ``first`` of its first layer, the number
        ``copies`` of its layers, ``ops`` and ``parameters`` with their
        strategies, local shapes (elements on one GPU) and layouts.

        >>> import mtplan
        >>> plan = mtplan.plan("examples/llama-3-8b.json")
        >>> sum(run.copies for run in plan.layers if run.segment == "h")
        32
        """
        runs: dict[tuple[str, int, int], Record] = {}
        for kind in ("ops", "parameters"):
            for entry in self._report.plan[kind]:
                key = (entry.segment, entry.first, entry.copies)
                run = runs.setdefault(key, Record(
                    segment=key[0], first=key[1], copies=key[2], ops=[],
                    parameters=[]))
                run[kind].append(Record(
                    (name, value) for name, value in entry.items()
                    if name not in ("segment", "first", "copies")))
        return list(runs.values())

    @property
    def alternatives(self) -> list[Record]:
        """Returns the next best plans, each with its degrees, ``step_time_s``,
        ``slower_by`` (0.12 is 12 %), ``why`` and ``memory_bytes``.

        >>> import mtplan
        >>> plan = mtplan.plan("examples/llama-3-8b.json", top=3)
        >>> len(plan.alternatives)
        2
        """
        return list(self._report.alternatives)

    @property
    def gap(self) -> float:
        """Returns by which share the fastest plan found may be slower than the
        optimum; 0 if it is the optimum.

        >>> import mtplan
        >>> mtplan.plan("examples/llama-3-8b.json").gap
        0.0
        """
        return float(self._report.search.gap)

    @property
    def notes(self) -> list[str]:
        """Returns a sentence for each ignored option and each assumption.

        >>> import mtplan
        >>> isinstance(mtplan.plan("examples/llama-3-8b.json").notes, list)
        True
        """
        return [*self._report.notes, *self._added_notes]

    def to_json(self) -> str:
        """Returns the text that ``mtplan --json`` prints (docs/json-output.md).

        >>> import json, mtplan
        >>> json.loads(mtplan.plan("examples/llama-3-8b.json").to_json())["mtplan"]
        1
        """
        return self._found.json(False)

    def explain(self) -> str:
        """Returns a line for the plan, for each listed alternative and for each
        mesh without a plan. Each line names the cost or limit that decided.

        >>> import mtplan
        >>> print(mtplan.plan("examples/llama-3-8b.json").explain())
        chosen: dp 4 x pp 2, micro-batch 1 x 128, ...
        """
        return "\n".join(self._found.explain())

    def verify(self) -> Record:
        """Proves the plan by execution, as ``mtplan --verify`` does.

        The step runs with smaller dimensions and in double precision: once
        divided as planned over all ranks, and once undivided on one rank. The
        loss, every gradient and every updated parameter must agree, and the
        executed collectives must be those that the plan lists.

        Returns a record: ``holds``; the numbers of compared ``ranks`` and
        ``tensors``; ``worst_error``, the largest difference relative to the
        largest element of its tensor, or None if a run failed; ``worst``, the
        name of that tensor; ``failures``, a sentence each. Raises ``Error`` for
        more than 256 ranks. Ctrl-C takes effect after the proof.

        >>> import mtplan
        >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=4, tp=2, pp=2)
        >>> proof = plan.verify()
        >>> proof.holds, proof.ranks, proof.worst_error < 1e-10
        (True, 4, True)
        """
        proof: Record = json.loads(self._found.verified(),
                                   object_hook=Record)["proof"]
        return proof

    def why(self, **choices: Any) -> str:
        """Returns a sentence that says what other choices would cost.

        The choices are keywords of ``plan`` about parallelism and memory. They
        are added to the request, and the search runs again. Raises ``Error``
        for unknown choices.

        >>> import mtplan
        >>> plan = mtplan.plan("examples/llama-3-8b.json", gpus=8)
        >>> print(plan.why(tp=8))
        why not tp=8: tp 8, micro-batch 8 x 64 takes 65.8 s, ...
        """
        return self._found.why(words_of(choices))

    def report(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns the plan as a web page, and writes it to ``path`` if given.

        The page needs no other file. Raises ``OSError`` if it cannot be
        written.

        >>> import mtplan
        >>> page = mtplan.plan("examples/tiny-gpt2.json", gpus=2).report()
        >>> page.startswith("<!DOCTYPE html>")
        True
        """
        page = self._found.page()
        _write(path, page)
        return page

    def trace(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns the simulated step as trace events for Perfetto, and writes
        it to ``path`` if given. Times are in microseconds.

        >>> import json, mtplan
        >>> plan = mtplan.plan("examples/tiny-gpt2.json", gpus=2)
        >>> "traceEvents" in json.loads(plan.trace())
        True
        """
        trace = self._found.trace()
        _write(path, trace)
        return trace

    def export(self, notation: str) -> str:
        """Returns the plan in another tool's notation: "megatron",
        "deepspeed", "torchtitan", "accelerate", "hf-tp-plan", "jax", "shardy",
        "dtensor", "mesh-tensorflow" or "constraints".

        Choices that must be set elsewhere, such as in the training script, are
        issued as warnings.
        Raises ``Error`` for an unknown notation, and, with the reasons, for
        a plan that the notation's tool would not run as planned.

        >>> import mtplan
        >>> plan = mtplan.plan("examples/gpt2-1.2b.json", gpus=8, tp=8, pp=1,
        ...                    splits="column,row,head,vocab")
        >>> "--tensor-model-parallel-size 8" in plan.export("megatron")
        True
        """
        import warnings
        text, notes = self._found.exported(notation)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        return text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan to a file that ``load`` and ``mtplan --load`` read.

        Raises ``OSError`` if the file cannot be written.

        >>> import mtplan, os, tempfile
        >>> plan = mtplan.plan("examples/tiny-gpt2.json", gpus=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "plan.json")
        ...     plan.save(path)
        ...     mtplan.load(path).step_time == plan.step_time
        True
        """
        _write(path, self.saved_text())

    def compile(self, folder: str | os.PathLike[str], cuda: bool = False
                ) -> None:
        """Compiles the plan into a folder that ``train`` and ``mtrun`` read.

        ``cuda`` also writes a stand-alone CUDA and NCCL program. A compiled
        zero-bubble schedule postpones no gradients; ``plan(..., output=...)``
        searches only plans that run as planned. Raises ``Error`` if the plan cannot
        be compiled or the folder cannot be written.

        >>> import mtplan, os, tempfile
        >>> plan = mtplan.plan("examples/tiny-gpt2.json", gpus=2,
        ...                    hardware="cpu", global_batch=8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     plan.compile(folder)
        ...     sorted(os.listdir(folder))
        ['plan.json', 'predicted.json']
        """
        self._found.compile(os.fspath(folder), cuda)

    def parallelize(self, module: Any, device_mesh: Any = None) -> Any:
        """Applies the plan to a module of transformers, in place.

        ``module`` is a LlamaForCausalLM, Qwen2ForCausalLM, GPT2LMHeadModel or
        BertForMaskedLM, and the plan is for its configuration. After
        ``torch.distributed.init_process_group``, every rank calls this method
        with the same weights, which are compared. ``device_mesh`` has the
        dimensions dp and tp, and pp if there are stages (default: all ranks,
        pp outermost and tp innermost, on the module's device).

        With stages, the module keeps the stages of this rank, under their
        names, and frees the memory of the others. Only ``backward`` runs it.

        ``module.config`` is changed (``use_cache``, and with selective
        recomputation ``_attn_implementation``), and ``loss_parallel`` stays on
        in the process if logits are split. If PyTorch itself fails during the
        change, the module cannot be used again.

        Returns the module, whose parameters are DTensors now: build the
        optimizer afterwards. Raises ``Error``, before anything is changed,
        with every choice of the plan that PyTorch does not support, and with
        the keywords of the nearest plan that it supports.

        >>> import mtplan
        >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=4, tp=2)
        >>> plan.parallelize(None)  # doctest: +SKIP
        Traceback (most recent call last):
        ...
        mtplan._errors.Error: a plan for llama is applied to LlamaForCausalLM...
        """
        from mtplan._parallelize import parallelize
        return parallelize(self, module, device_mesh)

    def backward(self, module: Any, **batch: Any) -> float:
        """Computes the gradients of one step of a parallelized module.

        ``batch`` holds the tensors that the module takes, with the samples of
        this replica, on the ranks of all its stages. They are divided into
        micro-batches. The ZeRO stage decides when gradients are averaged over
        replicas. Micro-batches and replicas have equal weights, however
        many labels are ignored (-100). The gradient of a weight that the first
        and the last stage share is summed over both. Returns the mean loss of
        the replica, on every rank. Clip with ``clip_grad_norm``: with stages,
        PyTorch's ``clip_grad_norm_`` sees one stage only. Raises ``Error`` for
        another number of samples, and unless ``parallelize`` of this plan
        returned the module.

        >>> import mtplan
        >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=2)
        >>> plan.backward(None)
        Traceback (most recent call last):
        ...
        mtplan._errors.Error: this plan has not been applied to the module: ...
        """
        from mtplan._step import backward
        return backward(self, module, batch)

    def clip_grad_norm(self, module: Any, max_norm: float) -> float:
        """Scales gradients so that their global norm is at most ``max_norm``.

        Every rank calls this method after ``backward``. Returns the 2-norm
        before scaling, over all shards and stages; a weight that two stages
        share counts once. Raises ``Error`` as ``backward`` does, and unless
        ``max_norm`` is above 0.

        >>> import mtplan
        >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=2)
        >>> plan.clip_grad_norm(None, 1.0)  # doctest: +SKIP
        Traceback (most recent call last):
        ...
        mtplan._errors.Error: this plan has not been applied to the module: ...
        """
        from mtplan._gradient_norm import clip_gradients
        return clip_gradients(self, module, max_norm)

    def check(self, module: Any, **batch: Any) -> Comparison:
        """Runs one step of a parallelized module, and compares the collectives
        that it issues with those of the plan.

        The arguments are those of ``backward``. Gradients are set to None
        afterwards. Returns the comparison of this rank, or, with stages, of
        one rank of every stage, as the plan counts: ``print`` it for a table;
        ``holds`` says whether all differences are explained. Before the first
        step with stages, another step runs that is not counted, in which
        PyTorch connects the ranks. Raises ``Error`` as ``backward`` does.

        >>> import mtplan, torch, transformers  # doctest: +SKIP
        >>> torch.distributed.init_process_group(  # doctest: +SKIP
        ...     "gloo", rank=0, world_size=1,
        ...     store=torch.distributed.HashStore())
        >>> model = transformers.LlamaForCausalLM(  # doctest: +SKIP
        ...     transformers.LlamaConfig.from_json_file(
        ...         "examples/tiny-llama.json"))
        >>> plan = mtplan.plan(model.config, gpus=1,  # doctest: +SKIP
        ...                    hardware="cpu", global_batch=2, micro_batch=2)
        >>> ids = torch.zeros(2, 32, dtype=torch.long)  # doctest: +SKIP
        >>> plan.check(plan.parallelize(model),  # doctest: +SKIP
        ...            input_ids=ids, labels=ids).holds
        True
        >>> torch.distributed.destroy_process_group()  # doctest: +SKIP
        """
        from mtplan._collectives import compare
        return compare(self, module, batch)

    def shardings(self, params: Any, names: dict[str, str] | None = None,
                  mesh: Any = None) -> Shardings:
        """Returns the plan in JAX's terms, for a tree of parameters.

        ``params`` is a tree of arrays or of ``jax.ShapeDtypeStruct``: nested
        dicts, lists, the variables of a Flax module. A leaf is found by its
        path: a label of the plan (``h.0.attn.q.weight``) or a name of Hugging
        Face's checkpoints, also with Flax's ``kernel``, ``embedding`` and
        ``scale``. ``names`` maps other paths to labels, as in
        ``{"blocks/*/wq": "h.*.attn.q.weight"}``, where ``*`` is one name.
        Matrices are [in, out]; a path without the layer's number is an array
        of all layers. ``mesh`` has the axes dp and tp of the type Auto
        (default: JAX's first devices).

        Raises ``Error`` with every choice of the plan that JAX does not
        support, with the keywords of the nearest plan that it supports, and
        with every leaf that is no parameter of the plan.

        >>> import mtplan
        >>> plan = mtplan.plan("examples/tiny-llama.json", gpus=4, pp=2)
        >>> plan.shardings({})
        Traceback (most recent call last):
        ...
        mtplan._errors.Error: pp 2: ...
        nearest: mtplan.plan(..., pp=1)
        """
        from mtplan._jax import Shardings
        return Shardings(self, params, names, mesh)

    def saved_text(self) -> str:
        """Returns the text of the file that ``save`` writes.

        >>> import json, mtplan
        >>> plan = mtplan.plan("examples/tiny-gpt2.json", gpus=2)
        >>> json.loads(plan.saved_text())["mtplan_plan"]
        1
        """
        return self._found.saved()

    def __str__(self) -> str:
        """Returns the report that the command prints."""
        return "\n".join([self._found.screen().rstrip("\n"), *(
            f"note: {one}" for one in self._added_notes)])

    def __repr__(self) -> str:
        """Returns one line: model, machine, degrees, memory and step time."""
        hardware = self._report.hardware
        return (f"<mtplan.Plan {self._report.model.name} on {hardware.gpus} x "
                f"{hardware.device}: {self.summary()}>")

    def _repr_html_(self) -> str:
        """Returns the page in a frame, which notebooks show."""
        page = html.escape(self._found.page(), quote=True)
        return (f'<iframe srcdoc="{page}" style="width: 100%; height: 640px; '
                'border: 0" title="mtplan"></iframe>')


def _write(path: str | os.PathLike[str] | None, text: str) -> None:
    """Writes a text file in UTF-8, unless ``path`` is None."""
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
