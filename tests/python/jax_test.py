"""Tests that plans run in JAX: losses, gradients and collectives.

jax_devices.py runs every case on eight devices of a CPU. Without JAX only the
counting of a compiled program's collectives is tested.
"""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import mtplan
from helpers import imports_without
from mtplan._jax_hlo import collectives_of

HERE = pathlib.Path(__file__).parent
JAX = importlib.util.find_spec("jax") is not None


@unittest.skipUnless(JAX, "no jax")
class Devices(unittest.TestCase):
    """Checks that several devices compute the losses and gradients of one
    device, and communicate as planned."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "result.json"
            subprocess.run([sys.executable, HERE / "jax_devices.py", path],
                           check=True, capture_output=True)
            result = json.loads(path.read_text(encoding="utf-8"))
            cls.found, cls.checks = result["cases"], result["checks"]

    def test_every_case_runs(self):
        from jax_devices import cases
        self.assertEqual(list(self.found), list(cases()))
        for name, one in self.found.items():
            with self.subTest(name):
                self.assertIn("loss", one, one)

    def test_every_check_passes(self):
        from jax_devices import CHECKS
        self.assertEqual(list(self.checks), [one.__name__ for one in CHECKS])
        for name, one in self.checks.items():
            with self.subTest(name):
                self.assertEqual(one, "passed")

    def test_losses_and_gradients_are_those_of_one_device(self):
        for name, one in self.found.items():
            with self.subTest(name):
                self.assertLess(one["loss"], 1e-5)
                self.assertLess(one["gradient"], 2e-4)
                self.assertNotEqual(one["losses"][0], one["losses"][-1])

    def test_differences_from_the_ledger_are_explained(self):
        for name, one in self.found.items():
            with self.subTest(name):
                self.assertTrue(one["holds"], one["table"])

    def test_tensor_parallel_collectives_are_the_ledgers(self):
        for name in ("llama tp4", "gpt2 tp4"):
            with self.subTest(name):  # all but the norm of the gradient
                one = self.found[name]
                self.assertEqual(one["exact"], one["rows"] - 1, one["table"])


def small(model="tiny-llama", **keywords):
    """Returns a plan for four CPU ranks."""
    return mtplan.plan(f"examples/{model}.json", **{
        "gpus": 4, "hardware": "cpu", "global_batch": 8, "pp": 1, "cp": 1,
        "zero": 0, "recompute": "none", "offload": "none", **keywords})


def tree_of(plan):
    """Returns shapes by the plan's own labels, layer by layer."""
    import jax
    from mtplan._jax_names import parameters_of
    return {label: jax.ShapeDtypeStruct(one.shape, "float32")
            for label, one in parameters_of(plan).items()}


@unittest.skipUnless(JAX, "no jax")
class Refusals(unittest.TestCase):
    """Checks that plans that JAX cannot express are refused before anything is
    built."""

    def refused(self, plan, params=None, **keywords):
        with self.assertRaises(mtplan.Error) as caught:
            plan.shardings(tree_of(plan) if params is None else params,
                           **keywords)
        return caught.exception.errors

    def test_axes_that_are_not_expressed(self):
        self.assertRegex(self.refused(small(pp=2, dp=2))[0], "^pp 2: ")
        errors = self.refused(small(cp=2, dp=2))
        self.assertRegex(errors[0], "^cp 2: ")
        self.assertEqual(errors[-1], "nearest: mtplan.plan(..., cp=1)")

    def test_the_nearest_plan_is_expressed(self):
        from mtplan._jax_checked import split_for
        for divided, pin, why in (
                (True, "wte=sequence", "wte: .*mtplan's hooks for JAX"),
                (False, "h.*.attn.core=replicated", "attn.core: is replicat")):
            keywords = {"tp": 4, "sequence_parallel": divided, "pins": [pin]}
            errors = self.refused(small(**keywords))
            self.assertRegex(errors[0], why)
            pins = json.loads(errors[-1].partition("pins=")[2].removesuffix(
                ")").replace("'", '"'))
            self.assertEqual("h.*.ln_1=sequence" in pins, divided)
            split_for(small(**{**keywords, "pins": pins}))

    def test_gradients_that_dp_does_not_divide(self):
        plan = small(dp=4, zero=1)
        self.assertRegex(self.refused(plan)[0], "4 devices, and JAX has")
        from mtplan._jax_checked import uneven
        from mtplan._jax_names import Stored
        self.assertEqual(uneven(plan, [
            Stored("ln_f.weight", (62,), ((),))]), [
            "ln_f.weight: ZeRO 1 shards the gradient, and dp 4 divides no "
            "dimension of the [62] that a rank of tp has"])

    def test_other_families_over_tp(self):
        plan = small("tiny-t5", tp=2, dp=2)
        self.assertRegex(self.refused(plan)[0], "hooks over tp .* not for t5")

    def test_other_names(self):
        plan = small(dp=4)
        params = tree_of(plan)
        params["h.0.attn.w_q"] = params.pop("h.0.attn.q.weight")
        self.assertRegex(self.refused(plan, params)[0], (
            "^h.0.attn.w_q: no parameter .* nearest is h.*attn"))
        errors = self.refused(plan, params, names={
            "h/*/attn/w_q": "h.*.attn.query.weight"})
        self.assertRegex(errors[0], "^names: h.*query.weight is no parameter "
                         ".* nearest is h.*attn.q.weight")
        # The mapping is right, and only devices are missing.
        self.assertRegex(self.refused(plan, params, names={
            "h/*/attn/w_q": "h.*.attn.q.weight"})[0],
            "for 4 devices, and JAX has")

    def test_missing_and_transposed_parameters(self):
        import jax
        plan = small(dp=4)
        params = tree_of(plan)
        del params["ln_f.weight"]
        self.assertEqual(self.refused(plan, params), [
            "ln_f.weight: no leaf of the tree is this parameter of the plan"])
        params["h.1.mlp.up.weight"] = jax.ShapeDtypeStruct((192, 64),
                                                           "float32")
        self.assertRegex(self.refused(plan, params)[0], r"\[192, 64\], and "
                         r"h.1.mlp.up.weight \[64, 192\]; transpose it")

    def test_a_vocabulary_that_is_padded(self):
        import jax
        config = json.loads((HERE.parents[1] / "examples/tiny-llama.json"
                             ).read_text(encoding="utf-8"))
        plan = mtplan.plan({**config, "vocab_size": 510}, gpus=4, tp=4,
                           hardware="cpu", sequence_parallel=False,
                           pins=["wte=vocab"])
        params = tree_of(plan)
        params["wte.weight"] = jax.ShapeDtypeStruct((510, 64), "float32")
        self.assertRegex(self.refused(plan, params)[0],
                         r"wte.weight \[512, 64\], because the plan pads")

    def test_layers_that_differ_in_one_array(self):
        import jax
        plan = small(dp=4, recompute="full", recompute_layers=1)
        params = {}
        for label, one in tree_of(plan).items():
            words = label.split(".")
            if words[0] == "h":
                label, one = ".".join(["h", *words[2:]]), jax.ShapeDtypeStruct(
                    (2, *one.shape), "float32")
            params[label] = one
        self.assertEqual(self.refused(plan, params), [
            "recompute_layers 1: a loop over all layers recomputes all or "
            "none"])


GATHER = '''HloModule step
%body (p: (s32[], f32[4,8])) -> (s32[], f32[4,8]) {
  %ag = f32[4,8]{1,0} all-gather(%x), replica_groups=[2,2]<=[2,2]T(1,0), \
dimensions={0}, metadata={op_name="jit(f)/jvp(while)/body/dot"}
}
ENTRY %main (a: f32[8]) -> f32[8] {
  %w = (s32[], f32[4,8]) while(%t), condition=%c, body=%body, \
backend_config={"known_trip_count":{"n":"3"}}
  %r = (f32[2]{0}, bf16[4]{0}) all-reduce(%y, %z), \
replica_groups=mesh['a'=2,'b'=2] {'b'}, \
metadata={op_name="jit(f)/(transpose(jvp())/dot:jvp()/gather)"}
  %e0 = f32[2]{0} get-tuple-element(%r), index=0, \
metadata={op_name="jit(f)/transpose(jvp())/dot"}
  %e1 = bf16[4]{0} get-tuple-element(%r), index=1, \
metadata={op_name="jit(f)/jvp()/gather"}
  %s = (f32[2]{0}, f32[8]{0}) all-gather-start(%q), \
replica_groups={{0,1,2,3}}, metadata={op_name="jit(f)/add"}
  %d = f32[4]{0} reduce-scatter(%q), replica_groups=mesh['a'=2,'b'=2], \
device_ids=([2,2]T(1,0)) {'b'}
  %p = f32[4]{0} collective-permute(%q), source_target_pairs={{0,1},{1,0}}
}
'''


class Programs(unittest.TestCase):
    """Checks that collectives are read from the text of a compiled program."""

    def test_loops_groups_and_phases(self):
        self.assertEqual(dict(collectives_of(GATHER, {"dp": 2, "tp": 2})), {
            ("forward", "all_gather", "dp", 64): 3,
            ("backward", "all_reduce", "tp", 8): 1,
            ("forward", "all_reduce", "tp", 8): 1,
            ("update", "all_gather", "all", 8): 1,
            ("update", "reduce_scatter", "dp", 32): 1,
            ("update", "collective_permute", "tp", 16): 1})

    def test_unknown_operations_on_groups_are_listed(self):
        self.assertEqual(collectives_of(
            "ENTRY %m (a: f32[8]) -> f32[8] {\n"
            "  %r = (f32[2]{0}, u32[]) all-reduce-quantized-start(%y), "
            "replica_groups={{0,1},{2,3}}, "
            "metadata={op_name=\"jit(f)/transpose(jvp())/psum\"}\n"
            "  %d = f32[2]{0} all-reduce-quantized-done(%r)\n"
            "  %a = f32[2]{0} add(%d, %d)\n}", {"dp": 2, "tp": 2}),
            {("backward", "all-reduce-quantized", "other", 0): 1})

    def test_loops_without_a_count(self):
        uncounted = GATHER.replace("known_trip_count", "unknown")
        with self.assertRaisesRegex(mtplan.Error, (
                "cannot count %ag = .* number of iterations of %w = ")):
            collectives_of(uncounted, {"dp": 2, "tp": 2})
        idle = uncounted.replace("all-gather(%x), replica_groups", "add(%x), x")
        self.assertNotIn(("forward", "all_gather", "dp", 64),
                         collectives_of(idle, {"dp": 2, "tp": 2}))

    def test_the_condition_of_a_loop_runs_once_more(self):
        text = ("%c (p: s32[]) -> pred[] {\n  %r = f32[9]{0} all-reduce(%y), "
                "replica_groups={{0,1},{2,3}}\n}\n" + GATHER)
        found = collectives_of(text, {"dp": 2, "tp": 2})
        self.assertEqual(found["update", "all_reduce", "tp", 36], 4)

    def test_unknown_groups_are_no_axis(self):
        with self.assertRaisesRegex(mtplan.Error, "unknown groups"):
            collectives_of("ENTRY %m (a: f32[8]) -> f32[8] {\n  %r = f32[2]{0} "
                           "all-reduce(%y), replica_groups=new\n}",
                           {"dp": 2, "tp": 2})
        self.assertEqual(list(collectives_of(
            "ENTRY %m (a: f32[8]) -> f32[8] {\n  %r = f32[2]{0} "
            "all-reduce(%y), replica_groups={{0,3},{1,2}}\n}",
            {"dp": 2, "tp": 2})), [("forward", "all_reduce", "other", 8)])

    def test_the_package_imports_without_jax(self):
        self.assertTrue(imports_without("mtplan._jax", "jax"))


if __name__ == "__main__":
    unittest.main()
