"""Runs plans on eight devices of JAX, and compares them with one device.

    python3 jax_devices.py RESULT.json [CASE or CHECK ...]

RESULT.json says whether each check passed. For each case it has the largest
difference of the losses of three steps and of any gradient, and the table of
collectives.
"""

import functools
import importlib.util
import json
import os
import sys
import traceback
import warnings

if __name__ == "__main__":  # JAX reads these when it is imported
    os.environ["XLA_FLAGS"] = (
        "--xla_force_host_platform_device_count=8 "
        # Machine code of small models needs no optimization.
        "--xla_backend_optimization_level=0")
    os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
from jax_models import (CONFIGS, MODELS, SIZES, Apart, Plain, random_params,
                        stacked)

import mtplan

STEPS, SAMPLES = 3, 8
PLAIN = {"sequence_parallel": False}
SEQUENCE = {"sequence_parallel": True, "pins": [
    "wte=vocab", "h.*.ln_1=sequence", "h.*.ln_2=sequence", "ln_f=sequence",
    "h.*.attn.add=sequence", "h.*.mlp.add=sequence"]}


def cases():
    """Returns the model, its form and the keywords of the plan of every case.

    Forms are "apart", without ``products``, "stacked", with one array for all
    layers, and "flax".
    """
    found = {}
    for model in CONFIGS:
        for name, keywords in {
                "tp4": {"tp": 4, **PLAIN},
                "dp2 tp2": {"dp": 2, "tp": 2, **PLAIN},
                "dp4 zero3": {"dp": 4, "zero": 3}}.items():
            found[f"{model} {name}"] = model, "", keywords
    both = {"dp": 2, "tp": 2}
    found["gpt2 dp2 tp2 sequence"] = "gpt2", "", {
        **both, **SEQUENCE, "pins": [*SEQUENCE["pins"], "wpe=replicated"]}
    for name, form, keywords in (
            ("dp4 zero1", "", {"dp": 4, "zero": 1}),
            ("dp2 tp2 zero3", "", {**both, "zero": 3, **PLAIN}),
            ("dp2 tp2 sequence", "", {**both, **SEQUENCE}),
            ("dp2 tp2 sequence zero3", "", {**both, "zero": 3, **SEQUENCE}),
            ("dp2 tp2 micro-batches", "", {**both, "micro_batch": 2, **PLAIN}),
            ("dp2 tp2 zero3 stacked", "stacked", {**both, "zero": 3, **PLAIN}),
            ("tp4 apart", "apart", {"tp": 4, **PLAIN}),
            ("dp2 tp2 zero3 flax", "flax", {**both, "zero": 3, **PLAIN})):
        if form != "flax" or importlib.util.find_spec("flax"):
            found[f"llama {name}"] = "llama", form, keywords
    return found


def plan_of(model, keywords):
    """Returns the plan of a model."""
    return mtplan.plan(CONFIGS[model], global_batch=SAMPLES,
                       seq=SIZES["length"],
                       **{"gpus": 4, "hardware": "cpu", "precision": "fp32",
                          "pp": 1, "cp": 1, "recompute": "none", "dp": 1,
                          "tp": 1, "offload": "none", "zero": 0,
                          "micro_batch": SAMPLES // keywords.get("dp", 1),
                          **keywords})


class Adam:
    """Is an optimizer with the two functions of optax."""

    @staticmethod
    def init(params):
        none = jax.tree.map(jnp.zeros_like, params)
        return {"count": jnp.zeros((), jnp.int32),
                "moments": (none, jax.tree.map(jnp.copy, none))}

    @staticmethod
    def update(gradients, state, params):
        count = state["count"] + 1
        mean, square = state["moments"]
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradients)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square,
                              gradients)
        steps = jax.tree.map(
            lambda m, s: -1e-2 * (m / (1 - 0.9 ** count)) / (
                jnp.sqrt(s / (1 - 0.99 ** count)) + 1e-5), mean, square)
        return steps, {"count": count, "moments": (mean, square)}


def batch_of(step):
    """Returns the samples of a step."""
    tokens = jax.random.randint(jax.random.key(step),
                                (SAMPLES, SIZES["length"]), 0,
                                SIZES["vocabulary"])
    return {"tokens": tokens, "targets": jnp.roll(tokens, -1, 1)}


@functools.cache
def reference(model):
    """Returns the losses and gradients of every step on one device."""
    @jax.jit
    def step(params, state, batch):
        loss, gradients = jax.value_and_grad(
            lambda one: MODELS[model](one, batch, Plain))(params)
        changes, state = Adam.update(gradients, state, params)
        return jax.tree.map(jnp.add, params, changes), state, loss, gradients

    params = random_params(model)
    state, found = Adam.init(params), []
    for number in range(STEPS):
        params, state, loss, gradients = step(params, state, batch_of(number))
        found.append((float(loss), jax.device_get(gradients)))
    return found


def compared_gradients(mine, theirs):
    """Returns the largest difference of gradients, relative to the largest
    entry of each, or of all for the bias of k, whose true gradient is 0."""
    largest = max(float(abs(one).max()) for one in jax.tree.leaves(theirs))
    worst = 0.0
    for (path, one), other in zip(jax.tree.leaves_with_path(theirs),
                                  jax.tree.leaves(mine), strict=True):
        zero = jax.tree_util.keystr(path).endswith("['k']['bias']")
        scale = largest if zero else float(abs(one).max())
        error = float(abs(one - other).max()) / scale
        worst = max(worst, error if error == error else float("inf"))
    return worst


def run_case(model, form, keywords):
    """Returns the differences of one case."""
    plan = plan_of(model, keywords)
    params = random_params(model)
    function, back = MODELS[model], lambda tree: tree
    if form == "stacked":
        params, back = stacked(params), jax.device_get
    elif form == "flax":
        import jax_flax
        params, function = jax_flax.variables(params), jax_flax.loss
        back = jax_flax.gradients
    shardings = plan.shardings(params)
    hooks = Apart(shardings) if form == "apart" else shardings
    both = shardings.value_and_grad(
        lambda one, batch: function(one, batch, hooks))

    @jax.jit
    def step(params, state, batch):
        loss, gradients = both(params, batch)
        return (*shardings.update(Adam, params, gradients, state), loss,
                gradients)

    state = Adam.init(params)
    params = jax.device_put(params, shardings.params)
    state = jax.device_put(state, shardings.optimizer(state))
    losses, loss_error, gradient_error = [], 0.0, 0.0
    for number, (loss, gradients) in enumerate(reference(model)):
        batch = batch_of(number)
        batch = jax.device_put(batch, shardings.inputs(batch))
        if number == 0:
            program = step.lower(params, state, batch).compile()
            table = shardings.check(program)
        before = jax.tree.leaves((params, state))
        params, state, ours, found = program(params, state, batch)
        for old, new in zip(before, jax.tree.leaves((params, state))):
            assert old.sharding.is_equivalent_to(new.sharding, new.ndim), (
                old.sharding, new.sharding)
        losses.append(float(ours))
        loss_error = max(loss_error, abs(losses[-1] - loss))
        right = stacked(gradients) if form == "stacked" else gradients
        gradient_error = max(gradient_error, compared_gradients(
            back(jax.device_get(found)), right))
    return {"loss": loss_error, "gradient": gradient_error, "losses": losses,
            "holds": table.holds, "table": str(table),
            "exact": sum(row.planned == row.issued for row in table.rows),
            "rows": len(table.rows)}


def check_misuse():
    """Raises an AssertionError unless misuse gets the expected message."""
    plan = plan_of("llama", {"dp": 2, "tp": 2, "micro_batch": 2, **PLAIN})
    params = random_params("llama")
    shardings = plan.shardings(params)

    def fails(words, call, *args):
        try:
            call(*args)
        except mtplan.Error as refused:
            assert words in str(refused), refused
        else:
            raise AssertionError(f"not refused: {words}")

    value = jnp.ones((8, 32, 64))
    fails("h.0.attn.query: the plan has no such operator or parameter; the "
          "nearest is h.0.attn.", shardings.constrain, "h.0.attn.query", value)
    fails("h.0.attn.k: the value is [8, 32, 64], and the plan's [4, 32, 32]",
          shardings.constrain, "h.0.attn.k", value)
    for other in (shardings, plan_of("llama", {"dp": 2, "tp": 2, **PLAIN}
                                     ).shardings(params)):
        fails("8 samples per step, but an array of the batch is [4, 32]",
              other.value_and_grad(lambda one, batch: 0.0), params,
              {"tokens": jnp.ones((4, 32), int)})
    devices = jax.devices()
    fails("axes of the type Auto", plan.shardings, params, None, jax.make_mesh(
        (2, 2), ("dp", "tp"), devices=devices[:4],
        axis_types=(jax.sharding.AxisType.Explicit,) * 2))
    fails("dp 2, tp 2, and the mesh {'dp': 4, 'tp': 2}", plan.shardings, params,
          None, jax.make_mesh((4, 2), ("dp", "tp"), devices=devices,
                              axis_types=(jax.sharding.AxisType.Auto,) * 2))


def check_sums_of_micro_batches():
    """Raises an AssertionError unless sums of bfloat16 keep small addends."""
    plan = plan_of("llama", {"gpus": 1, "micro_batch": 1, "precision": "bf16"})
    params = jax.tree.map(lambda one: one.astype(jnp.bfloat16),
                          random_params("llama"))
    both = plan.shardings(params).value_and_grad(lambda one, batch: jnp.mean(
        batch["x"]) * batch["scale"] * one["model"]["norm"]["weight"].sum())
    # In bfloat16, 1 + 3/1024 is 1, and 1 + 21/1024 is 1 + 3/128.
    parts = jnp.array([1.0] + [3 / 1024] * (SAMPLES - 1), jnp.bfloat16)
    _, gradients = jax.jit(both)(params, {"x": parts, "scale": jnp.bfloat16(
        SAMPLES)})
    found = gradients["model"]["norm"]["weight"]
    assert found.dtype == jnp.bfloat16, found.dtype
    assert (found == 1 + 3 / 128).all(), found


def check_types():
    """Raises an AssertionError unless other types than planned are refused."""
    plan = plan_of("llama", {"dp": 4, "precision": "bf16"})
    try:
        plan.shardings(random_params("llama"))
    except mtplan.Error as refused:
        assert "float32, and weights under precision bf16 are bfloat16" in str(
            refused), refused
    else:
        raise AssertionError("not refused")


def check_masked_optimizers():
    """Raises an AssertionError unless parts of a tree are sharded, too."""
    params = random_params("llama")
    shardings = plan_of("llama", {"dp": 4, "zero": 1}).shardings(params)
    head, norm = params["lm_head"], params["model"]["norm"]
    masked = {"lm_head": {"weight": None}, "model": {"norm": norm}}
    state = {"lm_head": ({"lm_head": head}, jnp.zeros(())), "rest": [masked]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = shardings.optimizer(state)
    wanted = shardings.gradients
    assert found["lm_head"][0]["lm_head"] == wanted["lm_head"], found
    assert found["rest"][0]["model"]["norm"] == wanted["model"]["norm"], found
    assert "dp" in wanted["lm_head"]["weight"].spec, wanted
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        shardings.optimizer({"rows": {"lm_head": {"weight": jnp.ones(64)}}})
    assert "1 arrays that are replicated" in str(caught[0].message), caught
    assert "['rows']['lm_head']['weight'] [64]" in str(caught[0].message)


def check_two_models_of_one_plan():
    """Raises an AssertionError unless ``check`` forgets earlier programs."""
    params = random_params("llama")
    shardings = plan_of("llama", {"tp": 4, **PLAIN}).shardings(params)
    batch = batch_of(0)
    for hooks in (shardings, Apart(shardings), shardings):
        step = jax.jit(
            shardings.value_and_grad(lambda one, batch, hooks=hooks: MODELS[
                "llama"](one, batch, hooks)),
            in_shardings=(shardings.params, shardings.inputs(batch)))
        table = shardings.check(step, params, batch)
        assert table.holds, table


CHECKS = (check_misuse, check_sums_of_micro_batches, check_types,
          check_masked_optimizers, check_two_models_of_one_plan)


def main():
    """Runs the checks and cases, and writes the results after each."""
    result, *chosen = sys.argv[1:]
    found = {"checks": {}, "cases": {}}

    def write():
        with open(result, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)

    for check in CHECKS:
        if not chosen or check.__name__ in chosen:
            try:
                check()
                found["checks"][check.__name__] = "passed"
            except Exception:
                found["checks"][check.__name__] = traceback.format_exc()
            write()
    for name, case in cases().items():
        if not chosen or name in chosen:
            try:
                found["cases"][name] = run_case(*case)
            except mtplan.Error as refused:
                found["cases"][name] = {"refused": refused.errors}
            except Exception:
                found["cases"][name] = {"failed": traceback.format_exc()}
            write()


if __name__ == "__main__":
    main()
