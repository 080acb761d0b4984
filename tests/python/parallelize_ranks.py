"""Runs plans on four gloo ranks, and compares them with one process.

    python3 parallelize_ranks.py RESULT.json [CASE ...]

RESULT.json has, for each case, the largest difference of the losses of five
steps and of any gradient, and the table of collectives.
"""

import copy
import gc
import json
import math
import sys
import tempfile
import traceback
import warnings
import weakref

import mtplan
from mtplan._step import backward

RANKS, STEPS, SAMPLES, LENGTH = 4, 5, 8, 32
#: This clip is below the gradient norm of every case.
NORM = 0.5

#: With transformers' default of 0.02, attention is uniform to 1e-4, and
#: gradients of q and k are too small to be compared.
SPREAD = {"initializer_range": 0.1}
SIZES = {**SPREAD, "hidden_size": 64, "num_attention_heads": 8, "num_hidden_layers": 2,
         "intermediate_size": 192, "vocab_size": 512,
         "max_position_embeddings": LENGTH}
CONFIGS = {
    "llama": ("LlamaConfig", "LlamaForCausalLM",
              dict(SIZES, num_key_value_heads=4)),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM",
              dict(SIZES, num_key_value_heads=8)),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel",
             {**SPREAD, "n_embd": 64, "n_head": 8, "n_layer": 2, "vocab_size": 512,
              "n_positions": LENGTH, "attn_pdrop": 0.0, "embd_pdrop": 0.0,
              "resid_pdrop": 0.0, "bos_token_id": 0, "eos_token_id": 0}),
    "bert": ("BertConfig", "BertForMaskedLM",
             dict(SIZES, hidden_dropout_prob=0.0,
                  attention_probs_dropout_prob=0.0)),
}

SEQUENCE = {"sequence_parallel": True, "pins": [
    "wte=vocab", "h.*.ln_1=sequence", "h.*.ln_2=sequence", "ln_f=sequence",
    "h.*.attn.add=sequence", "h.*.mlp.add=sequence"]}
POSITIONS = {"sequence_parallel": True, "pins": [
    *SEQUENCE["pins"], "wpe=replicated"]}
LOSS = {"sequence_parallel": True, "pins": [
    *SEQUENCE["pins"], "lm_head=vocab", "loss.max=vocab",
    "loss.sum_exp=vocab", "loss.pick=vocab"]}
PLAIN = {"sequence_parallel": False}
#: In BERT, transformers computes these operators for the whole sequence.
WHOLE = ["wtt=replicated", "embed.add=replicated", "embed.norm=replicated",
         "cls.transform=replicated", "cls.norm.grad=replicated"]


def cases():
    """Returns the model and the keywords of the plan of every case."""
    found = {}
    for model in CONFIGS:
        for zero in (0, 2, 3):
            found[f"{model} dp4 zero{zero}"] = model, {
                "dp": 4, "zero": zero, "micro_batch": 2}
        found[f"{model} tp4"] = model, {"tp": 4, **PLAIN}
        found[f"{model} tp2 dp2 zero3"] = model, {
            "tp": 2, "dp": 2, "zero": 3, "micro_batch": 4, **PLAIN,
            **({"pins": ["wtt=replicated", "embed.add=replicated"]}
               if model == "bert" else {})}
        found[f"{model} tp4 recompute"] = model, {
            "tp": 4, "recompute": "full", **PLAIN}
    for model in ("llama", "qwen2", "gpt2"):
        pins = POSITIONS if model == "gpt2" else SEQUENCE
        found[f"{model} tp4 sequence"] = model, {"tp": 4, **pins}
        for zero in (0, 3):
            found[f"{model} tp2 dp2 sequence zero{zero}"] = model, {
                "tp": 2, "dp": 2, "zero": zero, "micro_batch": 4, **pins}
    for zero in range(4):
        found[f"llama tp2 dp2 sequence zero{zero} micro-batches"] = "llama", {
            "tp": 2, "dp": 2, "zero": zero, "micro_batch": 2, **LOSS}
    found["llama tp4 sequence micro-batches"] = "llama", {
        "tp": 4, "micro_batch": 4, **LOSS}
    for zero in range(4):
        found[f"llama dp4 zero{zero} failed forward"] = "llama", {
            "dp": 4, "zero": zero, "micro_batch": 1}
        found[f"llama tp2 dp2 zero{zero} failed backward"] = "llama", {
            "tp": 2, "dp": 2, "zero": zero, "micro_batch": 2, **PLAIN}
    found["bert tp4 sequence"] = "bert", {
        "tp": 4, "sequence_parallel": True, "pins": [
            *SEQUENCE["pins"][:3], *SEQUENCE["pins"][4:], "wpe=replicated",
            *WHOLE]}
    for one in ("dp4 zero1", "pp2 dp2"):
        degrees = {"dp": 4} if one[0] == "d" else {
            "pp": 2, "dp": 2, "schedule": "1f1b"}
        found[f"llama {one} bf16"] = "llama", {
            **degrees, "zero": 1, "micro_batch": 2, "precision": "bf16"}
    found["llama dp4 zero3 recompute"] = "llama", {
        "dp": 4, "zero": 3, "micro_batch": 2, "recompute": "full"}
    found["llama tp4 selective"] = "llama", {
        "tp": 4, "recompute": "selective", **PLAIN}
    return found


def stages():
    """Returns the cases with stages."""
    found = {}
    for model in CONFIGS:
        for zero in range(4):
            found[f"{model} pp2 dp2 zero{zero}"] = model, {
                "pp": 2, "dp": 2, "zero": zero, "micro_batch": 2,
                "schedule": "1f1b", "stage_layers": [1, 3]}
        found[f"{model} pp4"] = model, {
            "pp": 4, "micro_batch": 2, "schedule": "1f1b"}
        found[f"{model} pp2 tp2"] = model, {
            "pp": 2, "tp": 2, "micro_batch": 2, "schedule": "1f1b", **PLAIN,
            **({"pins": WHOLE} if model == "bert" else {})}
    for model in ("llama", "gpt2"):
        found[f"{model} pp2 tp2 sequence interleaved"] = model, {
            "pp": 2, "tp": 2, "micro_batch": 2, "schedule": "interleaved",
            "vp": 2, "sequence_parallel": True, "pins": LOSS["pins"] + (
                ["wpe=replicated"] if model == "gpt2" else [])}
    for schedule in ("gpipe", "interleaved", "zero-bubble"):
        for zero in (0, 1):
            found[f"gpt2 pp2 dp2 {schedule} zero{zero}"] = "gpt2", {
                "pp": 2, "dp": 2, "zero": zero, "micro_batch": 1,
                "schedule": schedule,
                "vp": 2 if schedule == "interleaved" else 1}
    found["llama pp2 tp2 zero-bubble"] = "llama", {
        "pp": 2, "tp": 2, "micro_batch": 2, "schedule": "zero-bubble", **PLAIN}
    found["llama pp2 tp2 sequence zero-bubble"] = "llama", {
        "pp": 2, "tp": 2, "micro_batch": 2, "schedule": "zero-bubble", **LOSS}
    found["llama pp2 dp2 zero-bubble recompute"] = "llama", {
        "pp": 2, "dp": 2, "zero": 1, "micro_batch": 1,
        "schedule": "zero-bubble", "recompute": "full"}
    found["llama pp2 dp2 recompute"] = "llama", {
        "pp": 2, "dp": 2, "zero": 1, "micro_batch": 1,
        "schedule": "interleaved", "vp": 2, "recompute": "full"}
    return found


def new_model(name, layers=2):
    """Returns a model with random weights, the same on every rank."""
    import torch
    import transformers
    config, model, sizes = CONFIGS[name]
    torch.manual_seed(1)
    key = "n_layer" if name == "gpt2" else "num_hidden_layers"
    made = getattr(transformers, model)(
        getattr(transformers, config)(**{**sizes, key: layers}))
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.dim() == 1:  # no bias is 0, no gain 1
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return made.train()


def plan_of(model, keywords):
    """Returns the plan of a module's configuration."""
    return mtplan.plan(model.config, gpus=RANKS, seq=LENGTH, **{
        "global_batch": SAMPLES, "micro_batch": SAMPLES, "hardware": "cpu",
        "precision": "fp32", "pp": 1, "cp": 1, "dp": 1, "tp": 1, "zero": 0,
        "recompute": "none", "offload": "none", **keywords})


def planned_order(plan):
    """Returns the phases that every stage of a plan enters, in order."""
    phases = {"forward": "forward", "backward": "backward",
              "weight gradient": "backward"}
    order = [[] for _ in range(plan.parallelism.pp)]
    for one in tasks(plan):
        order[one["pid"]].append(phases[one["cat"]])
    return [[*one, "update"] for one in order]


def tasks(plan):
    """Returns the events of a plan's stages, by the time at which they begin."""
    return sorted((one for one in json.loads(plan.trace())["traceEvents"]
                   if one["ph"] == "X" and one["cat"] in (
                       "forward", "backward", "weight gradient")),
                  key=lambda one: one["ts"])


def whole(gradient):
    """Returns the unsharded gradient on every rank."""
    return gradient.full_tensor() if hasattr(gradient, "full_tensor") \
        else gradient


def without_gradient(name):
    """Returns whether the true gradient of a parameter is 0.

    A bias of k adds the same number to all scores of a query, which softmax
    ignores. In Qwen2, rotary embeddings come between the bias and the scores,
    so the bias of k has a gradient.
    """
    return name.endswith(("c_attn.k.bias", "attention.self.key.bias"))


def compared_gradients(parallel, reference):
    """Returns the largest difference of gradients, relative to the largest
    entry of each, and the parameter that has it; infinity for NaN."""
    mine = {name.replace("_checkpoint_wrapped_module.", ""):
            whole(one.grad) for name, one in parallel.named_parameters()}
    worst = (0.0, "")
    largest = max(float(one.grad.abs().max())
                  for one in reference.parameters())
    pipeline = hasattr(parallel, "mtplan_pipeline")
    for name, one in reference.named_parameters(remove_duplicate=not pipeline):
        theirs, width = one.grad, one.shape[-1] // 3
        pairs = {name: theirs}
        if name not in mine and pipeline and not any(
                label.startswith(name.rpartition(".")[0]) for label in mine):
            continue  # another stage has the parameter
        if name not in mine and name.endswith("bias") and name[:3] == "cls":
            continue  # the name of a tied parameter
        if name not in mine:  # q, k and v of GPT-2
            owner, _, last = name.rpartition(".")
            pairs = {f"{owner}.{part}.{last}":
                     theirs[..., number * width:(number + 1) * width]
                     for number, part in enumerate("qkv")}
        for label, right in pairs.items():
            scale = largest if without_gradient(label) \
                else float(right.abs().max())
            error = float((mine.pop(label) - right).abs().max()) / scale
            worst = max(worst, (math.inf if math.isnan(error) else error,
                                label))
    assert not mine, mine.keys()
    return worst


def run_case(name, keywords, rank, fails=None):
    """Returns the differences of one case. ``fails`` names the phase in which
    an added step fails."""
    import torch
    from torch import distributed
    model = new_model(name, 4 if "pp" in keywords else 2)
    plan = plan_of(model, keywords)
    reference = copy.deepcopy(model)
    model = plan.parallelize(model)
    degrees = plan.parallelism
    if degrees.tp == RANKS:
        check_that_a_copy_is_apart(model)
    update = [torch.optim.SGD(one.parameters(), lr=0.1, momentum=0.9)
              for one in (reference, model)]
    replica = rank // degrees.tp % degrees.dp
    size = SAMPLES // degrees.dp
    generator = torch.Generator().manual_seed(2)
    loss_error, gradient_error, norm_error, losses = 0.0, (0.0, ""), 0.0, []
    for step in range(STEPS):
        ids = torch.randint(0, 512, (SAMPLES, LENGTH), generator=generator)
        labels = ids if step % 2 else ids.roll(1)
        mine = slice(replica * size, (replica + 1) * size)
        if step == 0:
            table = plan.check(model, input_ids=ids[mine], labels=labels[mine])
        loss = reference(input_ids=ids, labels=labels).loss
        loss.backward()
        batch = {"input_ids": ids[mine], "labels": labels[mine]}
        if step == 3 and fails:
            fail(plan, model, batch, fails == "backward")
        if step == 1:
            order = []  # of forwards and backwards
            ours = torch.tensor(backward(plan, model, batch, order.append))
        else:
            ours = torch.tensor(plan.backward(model, **batch))
        distributed.all_reduce(ours)
        if step == 2 and degrees.pp == 1:
            evaluate(model, ids)
        losses.append(loss.item())
        assert math.isfinite(losses[-1]) and math.isfinite(float(ours))
        loss_error = max(loss_error, abs(float(ours) / RANKS - losses[-1]))
        error, parameter = compared_gradients(model, reference)
        largest = torch.tensor(error)
        distributed.all_reduce(largest, distributed.ReduceOp.MAX)
        gradient_error = max(gradient_error, (float(largest), parameter))
        if step == 3:
            continue  # the gradients of the last two steps are added
        norm = float(torch.nn.utils.clip_grad_norm_(reference.parameters(),
                                                    NORM))
        assert norm > NORM, norm
        norm_error = max(norm_error, abs(
            plan.clip_grad_norm(model, NORM) / norm - 1))
        for one in update:
            one.step()
            one.zero_grad()
    orders = [None] * RANKS
    distributed.all_gather_object(orders, order)
    return {"order": orders[::RANKS // degrees.pp],
            "planned_order": planned_order(plan),
            "loss": loss_error, "norm": norm_error,
            "gradient": gradient_error[0],
            "parameter": gradient_error[1], "losses": losses,
            "holds": table.holds, "table": str(table),
            "exact": sum(row.planned == row.issued for row in table.rows),
            "rows": len(table.rows)}


def check_that_a_copy_is_apart(model):
    """Raises an AssertionError unless a copy computes with its own weights, and
    has the gradients of the original."""
    import torch
    ids = torch.arange(LENGTH).repeat(SAMPLES, 1)
    copied = copy.deepcopy(model)
    for one in (model, copied):
        one(input_ids=ids, labels=ids).loss.backward()
    for one, other in zip(model.parameters(), copied.parameters()):
        assert one is not other
        assert torch.equal(whole(one.grad), whole(other.grad))
    with torch.no_grad():
        for one in copied.parameters():
            one.zero_()
    losses = [float(one(input_ids=ids, labels=ids).loss.detach())
              for one in (model, copied)]
    assert abs(losses[0] - losses[1]) > 1e-3, losses
    model.zero_grad(set_to_none=True)


def evaluate(model, ids):
    """Runs a forward whose gathered weights the next update makes stale."""
    import torch
    model.eval()
    with torch.no_grad():
        model(input_ids=ids)
    model.train()


def fail(plan, model, batch, in_backward):
    """Runs a step that fails in the forward or backward of the last micro-batch.
    """
    left = plan.parallelism.micro_batches

    def stop(*_):
        raise ZeroDivisionError

    def hook(_, __, output):
        nonlocal left
        left -= 1
        if left == 0:
            output.register_hook(stop) if in_backward else stop()

    handle = model.model.layers[1].register_forward_hook(hook)
    try:
        plan.backward(model, **batch)
    except ZeroDivisionError:
        assert all(one.grad is None for one in model.parameters())
    else:
        raise AssertionError("the step did not fail")
    finally:
        handle.remove()


def check_that_other_stages_are_freed(rank):
    """Raises an AssertionError unless a rank keeps its own stage only."""
    import torch
    model = new_model("llama", 4)
    plan = plan_of(model, {"pp": 4, "micro_batch": 2, "schedule": "1f1b"})
    weights = {name: weakref.ref(one)
               for name, one in model.named_parameters()}
    plan.parallelize(model)
    gc.collect()
    left = {name for name, one in weights.items() if one() is not None}
    kept = [f"model.layers.{rank}.", *{0: ["model.embed_tokens"], 3: [
        "model.norm", "lm_head"]}.get(rank, [])]
    assert left == {name for name in weights
                    if name.startswith(tuple(kept))}, left
    assert left == {name for name, _ in model.named_parameters()}
    try:
        model(input_ids=torch.zeros(1, 4, dtype=torch.int64))
    except mtplan.Error as refused:
        assert "call plan.backward" in str(refused), refused
    else:
        raise AssertionError("a part of the module ran alone")


def check_that_weights_are_compared(rank):
    """Raises an AssertionError unless all ranks refuse unequal weights."""
    import torch
    model = new_model("llama")
    with torch.no_grad():
        model.lm_head.weight[0, 0] += rank
    try:
        plan_of(model, {"tp": 2, "dp": 2, "micro_batch": 4,
                        **PLAIN}).parallelize(model)
    except mtplan.Error as refused:
        assert "lm_head.weight: its values differ" in str(refused), refused
    else:
        raise AssertionError("different weights were taken")


def run_rank(rank, store, chosen, result):
    """Runs all cases on one rank, and writes what rank 0 found."""
    import torch
    from torch import distributed
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    distributed.init_process_group("gloo", init_method="file://" + store,
                                   rank=rank, world_size=RANKS)
    check_that_weights_are_compared(rank)
    check_that_other_stages_are_freed(rank)
    found = {}
    for name in chosen:
        model, keywords = (cases() | stages())[name]
        try:
            found[name] = run_case(model, keywords, rank,
                                   name.partition(" failed ")[2])
        except mtplan.Error as refused:
            found[name] = {"refused": refused.errors}
        except Exception:  # the other ranks fail alike, or time out
            found[name] = {"failed": traceback.format_exc()}
            print(f"rank {rank}:", found[name]["failed"], file=sys.stderr)
        if rank == 0:
            with open(result, "w", encoding="utf-8") as file:
                json.dump(found, file, indent=1)
        if "failed" in found[name]:
            break
    distributed.destroy_process_group()


def main():
    """Starts the ranks."""
    import torch.multiprocessing
    result, *chosen = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(
            run_rank, (folder + "/store", chosen or list(cases()), result),
            nprocs=RANKS)


if __name__ == "__main__":
    main()
