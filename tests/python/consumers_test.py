"""Loads every text of ``mtplan --export`` in the program that it is for. A
test is skipped if its program is not installed.

The current folder is the repository's. MTPLAN_COMMAND may name the command to
test; without it, the package's command is tested.
"""

import argparse
import contextlib
import functools
import importlib
import io
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

from helpers import command

LLAMA = "examples/tiny-llama.json"
SPLITS = ["--splits", "column,row,head,vocab"]
SEQUENCE = [
    word for pin in [
        "wte=vocab", "h.*.attn.q=column", "h.*.attn.k=column",
        "h.*.attn.v=column", "h.*.attn.core=head", "h.*.attn.proj=row",
        "h.*.mlp.gate=column", "h.*.mlp.up=column", "h.*.mlp.down=row",
        "*ln_*=sequence", "*.add=sequence", "lm_head=vocab"]
    for word in ("--pin", pin)]
TENSOR = [*SPLITS, "--pin", "wte=vocab"]

# Holds the flags of plans of different axes, on 8 GPUs.
PLANS = {
    "dp": ["--dp", "8"],
    "zero1": ["--dp", "8", "--zero", "1"],
    "zero2": ["--dp", "8", "--zero", "2"],
    "zero3": ["--dp", "8", "--zero", "3", "--overlap", "on"],
    "hybrid": ["--dp", "8", "--zero", "3", "--zero-ranks", "4"],
    "overlap": ["--dp", "8", "--zero", "0", "--overlap", "on"],
    "tp": ["--tp", "4", "--dp", "2", *TENSOR],
    "tp alone": ["--tp", "8", "--dp", "1", *TENSOR],
    "tp, zero3": ["--tp", "4", "--dp", "2", "--zero", "3", *TENSOR],
    "sequence": ["--tp", "4", "--dp", "2", "--zero", "3", *SEQUENCE],
    "cp": ["--cp", "2", "--dp", "4"],
    "cp, zero3": ["--cp", "2", "--dp", "4", "--zero", "3"],
    "pp": ["--pp", "4", "--dp", "2", "--schedule", "1f1b"],
    "interleaved": ["--pp", "2", "--dp", "4", "--vp", "2", "--overlap",
                    "sends"],
    "full": ["--dp", "8", "--zero", "2", "--recompute", "full"],
}


@functools.cache
def run(model, *flags):
    """Runs the command on 8 GPUs, with plain choices by default."""
    words = [model, "--gpus", "8", "--hardware", "cpu", "--global-batch", "32",
             "--layers", "4", "--open", "none", "--tolerance", "0",
             "--precision", "bf16"]
    if "--splits" not in flags:
        words += ["--splits", "all"]
    if "--tp" not in flags:
        words += ["--tp", "1"]
    path = os.environ.get("MTPLAN_COMMAND")
    if path is None:
        return command(*words, *flags)
    return subprocess.run([path, *words, *flags], capture_output=True,
                          text=True, check=False)


class Exports(unittest.TestCase):
    """Gives each plan's text to its consumer, or checks the reason why the plan
    is refused."""

    NEEDS = "json"  # the module without which tests are skipped

    @classmethod
    def setUpClass(cls):
        try:
            importlib.import_module(cls.NEEDS)
        except ImportError as error:
            raise unittest.SkipTest(f"no {cls.NEEDS}: {error}") from None

    def plan(self, flags, model=LLAMA):
        """Returns the member ``plan`` of the report."""
        ran = run(model, *flags, "--json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return json.loads(ran.stdout)["plan"]

    def text(self, notation, flags, model=LLAMA):
        ran = run(model, *flags, "--export", notation)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def refusal(self, notation, flags, model=LLAMA):
        ran = run(model, *flags, "--export", notation)
        self.assertEqual(ran.stdout, "")
        self.assertIn(f"error: --export {notation}: ", ran.stderr)
        return ran.stderr

    def hold(self, notation, refused, check):
        """Calls ``check`` with the text and the plan of every plan that is
        not in ``refused``, which maps a plan to a part of its refusal."""
        for name, flags in PLANS.items():
            with self.subTest(name):
                if name in refused:
                    self.assertIn(refused[name], self.refusal(notation, flags))
                else:
                    check(self.text(notation, flags), self.plan(flags))

    def file(self, text, suffix):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / f"plan{suffix}"
        path.write_text(text, encoding="utf-8")
        return str(path)


class Megatron(Exports):
    """Uses Megatron-LM's argument parser and its checks of the arguments."""

    NEEDS = "megatron.training.arguments"

    def arguments(self, text, ranks=8):
        from megatron.training import arguments
        parser = argparse.ArgumentParser(allow_abbrev=False)
        arguments.add_megatron_arguments(parser)
        args = parser.parse_args(shlex.split(text.replace("\\\n", "")))
        args.rank, args.world_size = 0, ranks
        connections = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
        if args.use_megatron_fsdp:
            connections = {"CUDA_DEVICE_MAX_CONNECTIONS": "8"}
        with mock.patch.dict(os.environ, connections), mock.patch.object(
                arguments, "get_device_arch_version", return_value=9), \
                contextlib.redirect_stdout(io.StringIO()):
            arguments.validate_args(args)
        return args

    def check(self, text, plan):
        args = self.arguments(text)
        self.assertEqual(args.data_parallel_size, plan["dp"])
        self.assertEqual(args.tensor_model_parallel_size, plan["tp"])
        self.assertEqual(args.pipeline_model_parallel_size, plan["pp"])
        self.assertEqual(args.context_parallel_size, plan["cp"])
        self.assertEqual(args.micro_batch_size, plan["micro_batch"])
        self.assertEqual(args.global_batch_size, 32)
        self.assertEqual(args.use_distributed_optimizer, plan["zero"] > 0)
        self.assertEqual(args.use_megatron_fsdp, plan["zero"] > 1)
        self.assertEqual((args.hidden_dropout, args.attention_dropout), (0, 0))
        self.assertTrue(args.bf16)

    def test_every_plan_passes_the_checks(self):
        self.hold("megatron", {}, self.check)

    def test_a_model_with_experts_is_one(self):
        args = self.arguments(self.text(
            "megatron", ["--dp", "8", "--ep", "4", "--zero", "1"],
            "examples/tiny-mixtral.json"))
        self.assertEqual(args.num_experts, 8)
        self.assertEqual(args.moe_router_topk, 2)
        self.assertEqual(args.expert_model_parallel_size, 4)
        self.assertEqual(args.moe_token_dispatcher_type, "alltoall")
        self.assertEqual(args.moe_expert_capacity_factor, 1.25)
        self.assertTrue(args.swiglu)
        self.assertEqual(args.normalization, "RMSNorm")
        self.assertEqual(args.position_embedding_type, "rope")

    def test_other_models_are_refused(self):
        for name in ["t5", "vit", "bert"]:
            self.assertIn("describe a GPT",
                          self.refusal("megatron", ["--dp", "8"],
                                       f"examples/tiny-{name}.json"))


class DeepSpeed(Exports):
    """Uses DeepSpeed's configuration class, with the ranks of its launcher."""

    NEEDS = "deepspeed"

    def check(self, text, plan):
        from deepspeed import comm
        from deepspeed.runtime.config import DeepSpeedConfig
        unit = None
        if plan["pp"] > 1:  # the unit that PipelineModule passes
            unit = types.SimpleNamespace(
                get_data_parallel_world_size=lambda: plan["dp"])
        with mock.patch.object(comm, "get_rank", return_value=0), \
                mock.patch.object(comm, "get_world_size", return_value=8):
            config = DeepSpeedConfig(json.loads(text), unit)
        self.assertEqual(config.train_micro_batch_size_per_gpu,
                         plan["micro_batch"])
        self.assertEqual(config.gradient_accumulation_steps
                         * plan["micro_batch"] * plan["dp"], 32)
        self.assertEqual(config.zero_optimization_stage, plan["zero"])
        self.assertTrue(config.bfloat16_config.enabled)
        self.assertEqual(max(1, config.tensor_parallel_config.autotp_size),
                         plan["tp"])

    def test_every_plan_is_a_configuration(self):
        heads = "exchange heads by all-to-all"
        self.hold("deepspeed", {
            "sequence": "hold all positions", "cp": heads, "cp, zero3": heads,
            "interleaved": "by the schedule 1f1b",
            "hybrid": "nearest: --zero-ranks all"}, self.check)


class Torchtitan(Exports):
    """Uses torchtitan's job configuration, and its degrees on 8 ranks."""

    NEEDS = "torchtitan.config.job_config"

    def check(self, text, plan):
        from torchtitan.config import ConfigManager
        from torchtitan.distributed import ParallelDims
        config = ConfigManager().parse_args(
            [f"--job.config_file={self.file(text, '.toml')}"])
        degrees = config.parallelism
        ParallelDims(
            dp_replicate=degrees.data_parallel_replicate_degree,
            dp_shard=degrees.data_parallel_shard_degree,
            cp=degrees.context_parallel_degree,
            tp=degrees.tensor_parallel_degree,
            pp=degrees.pipeline_parallel_degree,
            ep=degrees.expert_parallel_degree,
            etp=degrees.expert_tensor_parallel_degree, world_size=8)
        self.assertEqual(degrees.data_parallel_replicate_degree
                         * degrees.data_parallel_shard_degree, plan["dp"])
        self.assertEqual(degrees.tensor_parallel_degree, plan["tp"])
        self.assertEqual(config.training.global_batch_size, 32)
        self.assertEqual(config.training.mixed_precision_reduce, "float32")

    def test_every_plan_is_a_job(self):
        positions = "always split the sequence"
        self.hold("torchtitan", {
            "zero1": "nearest: --zero 2", "tp": positions,
            "tp alone": positions, "tp, zero3": positions,
            "cp": "nearest: --cp 1"}, self.check)


class Accelerate(Exports):
    """Uses accelerate's loader, its launcher, and the configuration that a
    launched script finds in its environment."""

    NEEDS = "accelerate"

    def check(self, text, plan):
        from accelerate import ParallelismConfig
        from accelerate.commands import launch
        from accelerate.commands.config.config_args import (
            load_config_from_file)
        from accelerate.utils.launch import prepare_multi_gpu_env
        path = self.file(text, ".yaml")
        self.assertEqual(load_config_from_file(path).num_processes, 8)
        args = launch.launch_command_parser().parse_args(
            ["--config_file", path, "script.py"])
        args, *_ = launch._validate_launch_command(args)
        self.assertEqual(args.use_fsdp, plan["zero"] > 1)
        with mock.patch.dict(os.environ, prepare_multi_gpu_env(args)):
            config = ParallelismConfig()
        if "parallelism_config:" in text:
            self.assertEqual(config.total_size, 8)
            self.assertEqual(config.tp_size, plan["tp"])
            self.assertEqual(config.data_parallel_size, plan["dp"])

    def test_every_plan_is_loaded(self):
        stages = "accelerate has no pipeline"
        self.hold("accelerate", {
            "zero1": "nearest: --zero 2", "cp": "nearest: --cp 1",
            "sequence": "hold all positions", "pp": stages,
            "interleaved": stages,
            "tp": "no replicas of tensor ranks"}, self.check)


class Transformers(Exports):
    """Checks the rules that transformers makes of a DistributedConfig."""

    NEEDS = "transformers.distributed"

    def rules(self, model, flags=()):
        """Returns the model, and the style of each of its modules."""
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM
        from transformers.distributed import DistributedConfig
        fields = json.loads(self.text(
            "hf-tp-plan", ["--tp", "4", "--dp", "2", *SPLITS, *flags], model))
        text = json.loads(pathlib.Path(model).read_text(encoding="utf-8"))
        text["num_hidden_layers"] = 4
        config = AutoConfig.for_model(**text)
        with torch.device("meta"):
            built = AutoModelForCausalLM.from_config(config)
        plan, _, _ = built._resolve_parallel_plans(
            DistributedConfig.from_dict(fields))
        return built, plan

    def test_every_product_and_table_has_the_plan_s_rule(self):
        import torch
        for name in ["llama", "qwen2", "mistral", "gpt_neox"]:
            with self.subTest(name):
                model, rules = self.rules(f"examples/tiny-{name}.json")
                for path, module in model.named_modules():
                    if isinstance(module, (torch.nn.Linear,
                                           torch.nn.Embedding)):
                        self.assertIn(path, rules)
                styles = {path.split(".")[-1]: style
                          for path, style in rules.items()}
                self.assertEqual(styles["lm_head"], "colwise_gather_output")
                last = "dense" if name == "gpt_neox" else "o_proj"
                self.assertEqual(styles[last], "rowwise")

    def test_modules_that_stay_whole_are_replicated(self):
        _, rules = self.rules(LLAMA, ["--pin", "wte=replicated", "--pin",
                                      "h.*.mlp.*=replicated"])
        self.assertEqual(rules["model.embed_tokens"], "replicate")
        for layer in range(4):
            self.assertEqual(rules[f"model.layers.{layer}.mlp.up_proj"],
                             "replicate")
            self.assertEqual(rules[f"model.layers.{layer}.self_attn.q_proj"],
                             "colwise")

    def test_what_transformers_cannot_run_is_refused(self):
        tensor = ["--tp", "4", "--dp", "2", *SPLITS]
        for name in ["gpt2", "gptj"]:
            self.assertIn("cannot run", self.refusal(
                "hf-tp-plan", tensor, f"examples/tiny-{name}.json"))
        self.assertIn("one style for", self.refusal(
            "hf-tp-plan", [*tensor, "--pin", "h.1.mlp.gate=replicated"]))
        self.assertIn("split the sequence", self.refusal(
            "hf-tp-plan", PLANS["sequence"]))


class DTensors(Exports):
    """Checks placements of torch.nn.Linear's weights on a mesh of 8 ranks."""

    NEEDS = "torch.distributed.tensor"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        import torch.distributed as dist
        from torch.testing._internal.distributed.fake_pg import FakeStore
        dist.init_process_group("fake", world_size=8, rank=0,
                                store=FakeStore())
        cls.addClassCleanup(dist.destroy_process_group)

    def test_products_give_results_as_planned(self):
        import torch
        from torch.distributed.tensor import (Replicate, Shard,
                                              distribute_tensor)
        from torch.nn.functional import linear
        text = self.text("dtensor", PLANS["tp"])
        names = {}
        exec(text.replace('"cuda"', '"cpu"'), names)
        self.assertEqual(len(names["shapes"]), len(names["placements"]))

        def weight(name):
            return distribute_tensor(
                torch.zeros(names["shapes"][name]), names["mesh"],
                names["placements"][name])

        x = distribute_tensor(torch.zeros(8, 32, 64), names["mesh"],
                              (Shard(0), Replicate()))
        up = linear(x, weight("h.0..3.mlp.up.weight"))
        down = linear(up, weight("h.0..3.mlp.down.weight"))
        results = names["activation_placements"]
        self.assertEqual(up.placements, results["h.0..3.mlp.up"])
        self.assertEqual(down.placements, results["h.0..3.mlp.down"])
        table = weight("wte.weight")
        self.assertEqual(table.shape, (512, 64))  # 500 tokens, 12 of padding


# Runs the text on 8 CPU devices, places parameters, and constrains results.
JAX = """
import jax, jax.numpy as jnp, sys
names = {}
exec(open(sys.argv[1]).read(), names)
mesh = names["mesh"]
assert names["shapes"].keys() == names["shardings"].keys()
for name, spec in names["shardings"].items():
    jax.device_put(jnp.zeros(names["shapes"][name]),
                   jax.NamedSharding(mesh, spec))
for name, spec in names["activations"].items():
    jax.jit(lambda x: jax.lax.with_sharding_constraint(
        x, jax.NamedSharding(mesh, spec))).lower(jnp.zeros((8,) * len(spec)))
print(len(names["activations"]))
"""


class Jax(Exports):
    """Checks shardings on a mesh of 8 CPU devices."""

    NEEDS = "jax"

    def test_parameters_are_placed_and_results_constrained(self):
        for name in ["sequence", "hybrid"]:
            with self.subTest(name):
                path = self.file(self.text("jax", PLANS[name]), ".py")
                devices = "--xla_force_host_platform_device_count=8"
                ran = subprocess.run(
                    [sys.executable, "-c", JAX, path], capture_output=True,
                    text=True, check=False,
                    env={**os.environ, "JAX_PLATFORMS": "cpu",
                         "XLA_FLAGS": devices})
                self.assertEqual(ran.returncode, 0, ran.stderr[-2000:])
                self.assertGreater(int(ran.stdout), 10)


if __name__ == "__main__":
    unittest.main()
