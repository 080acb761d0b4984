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

import mtplan
from mtplan._parallelize import checked

HERE = pathlib.Path(__file__).parent
TORCH = all(map(importlib.util.find_spec, ("torch", "transformers")))


@unittest.skipUnless(TORCH, "no torch or no transformers")
class Ranks(unittest.TestCase):
    """Four ranks train as one process, and communicate as planned."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "result.json"
            subprocess.run(
                [sys.executable, HERE / "parallelize_ranks.py", path],
                check=True, env=dict(os.environ, OMP_NUM_THREADS="1"),
                capture_output=True)
            cls.found = json.loads(path.read_text(encoding="utf-8"))

    def test_every_case_runs(self):
        from parallelize_ranks import cases
        self.assertEqual(list(self.found), list(cases()))
        for name, one in self.found.items():
            with self.subTest(name):
                self.assertIn("loss", one, one)

    def test_losses_and_gradients_are_those_of_one_process(self):
        for name, one in self.found.items():
            with self.subTest(name):
                self.assertLess(one["loss"], 1e-5)
                self.assertLess(one["gradient"], 1e-5, one["parameter"])
                self.assertNotEqual(one["losses"][0], one["losses"][-1])

    def test_differences_from_the_ledger_are_explained(self):
        for name, one in self.found.items():
            with self.subTest(name):
                self.assertTrue(one["holds"], one["table"])

    def test_tensor_parallel_collectives_are_the_ledgers(self):
        for name, one in self.found.items():
            if " tp4" in name:  # all but the norm of the gradient
                with self.subTest(name):
                    self.assertEqual(one["exact"], one["rows"] - 1,
                                     one["table"])


@unittest.skipUnless(TORCH, "no torch or no transformers")
class Modules(unittest.TestCase):
    """Modules that a plan does not fit are refused before they are changed."""

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
        self.assertRegex(self.refused("llama", pp=2, dp=2, micro_batch=4)[0],
                         "^pp 2: ")
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

    def test_another_precision_without_replicas(self):
        from parallelize_ranks import new_model
        module = new_model("llama")
        plan = mtplan.plan(module.config, gpus=4, dp=1, tp=4, pp=1, cp=1,
                           precision="bf16", sequence_parallel=False)
        with self.assertRaisesRegex(mtplan.Error, "have 4 bytes where .* 2"):
            plan.parallelize(module)

    def test_dropout_with_tp(self):
        from parallelize_ranks import new_model, plan_of
        module = new_model("gpt2")
        module.config.resid_pdrop = 0.1
        plan = plan_of(module, {"tp": 4, "sequence_parallel": False})
        with self.assertRaisesRegex(mtplan.Error, "resid_pdrop 0.1: .*mask"):
            plan.parallelize(module)


class Families(unittest.TestCase):
    """Plans of other families are refused without PyTorch."""

    def test_other_families(self):
        plan = mtplan.plan("examples/tiny-vit.json", gpus=2)
        with self.assertRaisesRegex(mtplan.Error, "for vit; there are bert"):
            plan.parallelize(None)

    def test_the_package_imports_without_torch(self):
        ran = subprocess.run(
            [sys.executable, "-c", "import sys, mtplan, mtplan._collectives; "
             "sys.exit('torch' in sys.modules)"], check=False)
        self.assertEqual(ran.returncode, 0)


if __name__ == "__main__":
    unittest.main()
