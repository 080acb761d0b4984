"""Tests that plans run in PyTorch: losses, gradients and collectives.

parallelize_ranks.py runs every case on four gloo ranks. Without PyTorch and
transformers only the refusals that need no module are tested.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import mtplan
from helpers import imports_without
from mtplan._data_parallel import groups_of, reset_step
from mtplan._parallelize import checked
from mtplan._plan_names import FAMILIES

HERE = pathlib.Path(__file__).parent
TORCH = all(map(importlib.util.find_spec, ("torch", "transformers")))


@unittest.skipUnless(TORCH, "no torch or no transformers")
class Ranks(unittest.TestCase):
    """Checks that four ranks compute the losses and gradients of one process,
    and communicate as planned."""

    @staticmethod
    def cases():
        from parallelize_ranks import cases
        return list(cases())

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "result.json"
            subprocess.run(
                [sys.executable, HERE / "parallelize_ranks.py", path,
                 *cls.cases()],
                check=True, env=dict(os.environ, OMP_NUM_THREADS="1"),
                capture_output=True)
            cls.found = json.loads(path.read_text(encoding="utf-8"))

    def test_every_case_runs(self):
        self.assertEqual(list(self.found), self.cases())
        for name, one in self.found.items():
            with self.subTest(name):
                self.assertIn("loss", one, one)

    def test_losses_and_gradients_are_those_of_one_process(self):
        for name, one in self.found.items():
            with self.subTest(name):
                bf16 = name.endswith("bf16")  # its rounding is 2**-9
                self.assertLess(one["loss"], 5e-3 if bf16 else 1e-5)
                self.assertLess(one["norm"], 1e-2 if bf16 else 1e-5)
                # The bound allows for rounding in fp32. In float64, GPT-2 and
                # BERT with tp 4 differ by less than 1e-13.
                self.assertLess(one["gradient"], 0.1 if bf16 else 5e-5,
                                one["parameter"])
                self.assertNotEqual(one["losses"][0], one["losses"][-1])

    def test_differences_from_the_ledger_are_explained(self):
        for name, one in self.found.items():
            with self.subTest(name):
                self.assertTrue(one["holds"], one["table"])

    def test_tensor_parallel_collectives_are_the_ledgers(self):
        for name, one in self.found.items():
            if " tp4" in name and "micro" not in name:  # all but the norm of the gradient
                with self.subTest(name):
                    self.assertEqual(one["exact"], one["rows"] - 1,
                                     one["table"])


@unittest.skipUnless(TORCH, "no torch or no transformers")
class Modules(unittest.TestCase):
    """Checks that modules that a plan does not fit are refused before they are
    changed, and steps of other modules before they run."""

    def refused(self, model, **keywords):
        from parallelize_ranks import new_model, plan_of
        module = new_model(model)
        before = {name: id(one) for name, one in module.named_parameters()}
        with self.assertRaises(mtplan.Error) as caught:
            plan_of(module, keywords).parallelize(module)
        self.assertEqual(before, {name: id(one) for name, one
                                  in module.named_parameters()})
        return caught.exception.errors

    def test_axes_without_words(self):
        errors = self.refused("llama", cp=2, dp=2, micro_batch=4)
        self.assertRegex(errors[0], "^cp 2: ")
        self.assertEqual(errors[-1], "nearest: mtplan.plan(..., cp=1)")

    def test_positions_along_the_sequence(self):
        from parallelize_ranks import new_model, plan_of
        module = new_model("gpt2")
        errors = self.refused("gpt2", tp=4, sequence_parallel=True,
                              pins=["wpe=sequence"])
        self.assertRegex("\n".join(errors), "wpe: is split along the sequence")
        # The plan that the message names can be applied.
        pins = errors[-1].partition("pins=")[2].removesuffix(")")
        checked(plan_of(module, {
            "tp": 4, "sequence_parallel": True,
            "pins": json.loads(pins.replace("'", '"'))}), module)

    def test_other_modules(self):
        from parallelize_ranks import new_model, plan_of
        plan = plan_of(new_model("llama"), {"tp": 4})
        with self.assertRaisesRegex(mtplan.Error, "this is a Qwen2Model"):
            plan.parallelize(new_model("qwen2").model)
        with self.assertRaisesRegex(mtplan.Error, "a GPT2LMHeadModel"):
            plan.parallelize(new_model("gpt2"))

    def test_other_types(self):
        from parallelize_ranks import new_model, plan_of
        llama = new_model("llama")
        for module, keywords, words in (
                (llama, {"tp": 4, "precision": "bf16"},
                 "dp 1: .* are torch.float32, and must be torch.bfloat16"),
                (new_model("llama").bfloat16(), {"dp": 4, "micro_batch": 2},
                 "dp 4: .* are torch.bfloat16, .* master weights"),
                (llama, {"dp": 4, "micro_batch": 2, "precision": "fp8",
                         "hardware": "dgx-h100"}, "fp8: modules of")):
            with self.subTest(words):
                with self.assertRaisesRegex(mtplan.Error, words):
                    checked(plan_of(module, keywords), module)

    def test_another_size(self):
        from parallelize_ranks import SIZES, new_model, plan_of
        import transformers
        other = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            **SIZES, num_key_value_heads=8))
        with self.assertRaisesRegex(mtplan.Error, "for 164160 parameters, "
                                    "and the module has 172352"):
            checked(plan_of(new_model("llama"), {"tp": 4}), other)

    def test_uneven_vocabulary(self):
        from parallelize_ranks import SIZES, plan_of
        import transformers
        module = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            **{**SIZES, "vocab_size": 510}))
        plan = plan_of(module, {"tp": 4, "sequence_parallel": False,
                                "pins": ["wte=vocab", "lm_head=replicated"]})
        with self.assertRaisesRegex(mtplan.Error, "resize_token_embeddings"):
            checked(plan, module)

    def test_the_nearest_plan_can_be_applied(self):
        from parallelize_ranks import CONFIGS, new_model, plan_of
        for model in CONFIGS:
            with self.subTest(model):
                module, keywords = new_model(model), {"tp": 4}
                with self.assertRaises(mtplan.Error) as caught:
                    checked(plan_of(module, keywords), module)
                pins = caught.exception.errors[-1].partition("pins=")[2]
                checked(plan_of(module, {**keywords, "pins": json.loads(
                    pins.removesuffix(")").replace("'", '"'))}), module)

    def test_parameters_are_grouped_by_layer(self):
        from parallelize_ranks import CONFIGS, new_model
        apart = {"llama": 2, "qwen2": 2, "gpt2": 0, "bert": 0}
        for model in CONFIGS:
            with self.subTest(model):
                module, family = new_model(model), FAMILIES[model]
                found = list(groups_of(module, family))
                layers = list(module.get_submodule(family.layers))
                self.assertEqual(len(found), len(layers) + apart[model])
                for layer in layers:
                    self.assertIn([layer], found)
                if apart[model]:
                    self.assertIs(found[0][0], module.get_input_embeddings())
                    self.assertIs(found[-1][1], module.get_output_embeddings())

    def test_faults_of_a_reset_are_raised(self):
        root = mock.MagicMock()
        root.reset_iter_state.side_effect = AttributeError
        with self.assertRaises(AttributeError):
            reset_step(root)

    def test_misuse_of_a_step(self):
        import torch
        from torch import distributed
        from parallelize_ranks import new_model
        module = new_model("llama")
        ids = torch.zeros(2, 32, dtype=torch.int64)
        plan, other = (mtplan.plan(
            module.config, gpus=1, hardware="cpu", precision="fp32", seq=32,
            global_batch=samples, recompute="none") for samples in (2, 4))

        def fails(words, call, *args, **keywords):
            with self.assertRaisesRegex(mtplan.Error, words):
                call(*args, **keywords)

        fails("init_process_group", plan.parallelize, module)
        fails("not been applied", plan.backward, module, input_ids=ids)
        distributed.init_process_group("gloo", store=distributed.HashStore(),
                                       rank=0, world_size=1)
        self.addCleanup(distributed.destroy_process_group)
        plan.parallelize(module)
        fails("build a new one", plan.parallelize, module)
        fails("not been applied", other.backward, module, input_ids=ids)
        fails("no labels", plan.backward, module, input_ids=ids)
        fails("2 samples per step, but labels has 1", plan.backward, module,
              input_ids=ids, labels=ids[:1])
        fails("use_cache must be a tensor", plan.check, module, input_ids=ids,
              labels=ids, use_cache=False)
        self.assertGreater(plan.backward(module, input_ids=ids, labels=ids), 0)

    def test_dropout_with_tp(self):
        from parallelize_ranks import new_model, plan_of
        module = new_model("gpt2")
        module.config.resid_pdrop = 0.1
        plan = plan_of(module, {"tp": 4, "sequence_parallel": False})
        with self.assertRaisesRegex(mtplan.Error, "resid_pdrop 0.1: .*mask"):
            plan.parallelize(module)


class Families(unittest.TestCase):
    """Checks that plans of other families are refused without PyTorch."""

    def test_other_families(self):
        plan = mtplan.plan("examples/tiny-vit.json", gpus=2)
        with self.assertRaisesRegex(mtplan.Error, "for vit; there are bert"):
            plan.parallelize(None)

    def test_the_package_imports_without_torch(self):
        self.assertTrue(imports_without("mtplan._collectives", "torch"))


if __name__ == "__main__":
    unittest.main()
