"""Tests what functions of the package mtplan return, and what they refuse.

The current folder is the repository's, as for the examples in docstrings.
"""

import ast
import doctest
import importlib
import importlib.util
import inspect
import json
import os
import pathlib
import pickle
import pkgutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
import warnings

import mtplan
from helpers import LLAMA, ROOT, TINY, command

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules():
    """Returns the package and its modules, except for the extension module."""
    return [mtplan] + [
        importlib.import_module(f"mtplan.{found.name}")
        for found in pkgutil.iter_modules(mtplan.__path__)
        if found.name != "_core"]


def members(name, value):
    """Returns a function, or a class and its public functions, by name."""
    found = {name: value}
    if isinstance(value, type):
        found |= {f"{name}.{key}": one for key, one in vars(value).items()
                  if not key.startswith("_")
                  and (callable(one) or isinstance(one, property))}
    return found


def public():
    """Returns the names and functions that users call."""
    return [pair for name in mtplan.__all__ if callable(getattr(mtplan, name))
            for pair in members(name, getattr(mtplan, name)).items()]


class Examples(unittest.TestCase):
    """Checks every example in docstrings and in the documentation."""

    def test_docstrings(self):
        for module in modules():
            with self.subTest(module.__name__), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = doctest.testmod(module, optionflags=OPTIONS)
                self.assertEqual(result.failed, 0)
                # Examples that need a framework are skipped here.
                self.assertTrue(any(
                    one.examples for one in doctest.DocTestFinder().find(module)))

    def test_documentation(self):
        page = ROOT / "docs" / "python.md"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = doctest.testfile(str(page), module_relative=False,
                                      optionflags=OPTIONS)
        self.assertEqual(result.failed, 0)
        self.assertGreater(result.attempted, 10)

    def test_every_public_function_has_an_example(self):
        for module in modules():
            for name, value in vars(module).items():
                if (name.startswith("_") or not callable(value)
                        or getattr(value, "__module__", "")
                        != module.__name__):
                    continue
                for key, one in members(name, value).items():
                    if key.startswith("Config"):
                        continue  # a protocol, which callers implement
                    with self.subTest(f"{module.__name__}.{key}"):
                        self.assertIn(">>>", one.__doc__ or "")

    @unittest.skipUnless(importlib.util.find_spec("transformers"),
                         "no transformers")
    def test_examples_that_need_torch(self):
        for name, value in public():
            for example in doctest.DocTestFinder(recurse=False).find(
                    value, name, module=inspect.getmodule(value)):
                if not any(one.options.pop(doctest.SKIP, False)
                           for one in example.examples):
                    continue
                for one in example.examples:
                    one.options.pop(doctest.SKIP, None)
                with self.subTest(name):
                    runner = doctest.DocTestRunner(verbose=False,
                                                   optionflags=OPTIONS)
                    self.assertEqual(runner.run(example).failed, 0)


class Docstrings(unittest.TestCase):
    """Checks that docstrings of public functions name errors."""

    def test_errors(self):
        for name, value in public():
            function = getattr(value, "fget", value)
            if isinstance(function, type):
                continue
            source = textwrap.dedent(inspect.getsource(function))
            if any(isinstance(node, ast.Raise)
                   for node in ast.walk(ast.parse(source))):
                with self.subTest(name):
                    self.assertIn("Raises", function.__doc__)


class Types(unittest.TestCase):
    """Checks the annotations with mypy, if it is installed."""

    def test_strict(self):
        if not importlib.util.find_spec("mypy"):
            self.skipTest("no mypy")
        with tempfile.TemporaryDirectory() as cache:
            ran = subprocess.run(
                [sys.executable, "-m", "mypy", "--strict", "--cache-dir",
                 cache, "python/mtplan"], capture_output=True, text=True,
                check=False, cwd=ROOT)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)


    def test_the_stub_is_that_of_the_extension(self):
        if not importlib.util.find_spec("nanobind"):
            self.skipTest("no nanobind")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "_core.pyi"
            subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q",
                            "-m", "mtplan._core", "-o", path], check=True)
            generated = path.read_text(encoding="utf-8")
        stub = ROOT / "python" / "mtplan" / "_core.pyi"
        self.assertEqual(
            ast.unparse(ast.parse(stub.read_text(encoding="utf-8"))),
            ast.unparse(ast.parse(generated)),
            f"python3 -m nanobind.stubgen -m mtplan._core -o {stub}")


class Models(unittest.TestCase):
    """Checks that a model may be a path, a dict or a configuration object."""

    def setUp(self):
        self.fields = json.loads(pathlib.Path(LLAMA).read_text())

    def test_all_forms_give_the_same_plan(self):
        class LlamaConfig:
            def to_dict(self):
                return fields

        fields = self.fields
        by_path = mtplan.plan(LLAMA, gpus=8)
        for model in (pathlib.Path(LLAMA), fields, LlamaConfig()):
            with self.subTest(type(model).__name__):
                other = mtplan.plan(model, gpus=8)
                self.assertEqual(other.step_time, by_path.step_time)
                self.assertEqual(other.collectives, by_path.collectives)

    def test_messages_name_a_dict(self):
        with self.assertRaises(mtplan.Error) as caught:
            mtplan.plan(dict(self.fields, hidden_size="wide"))
        self.assertRegex(str(caught.exception), "^llama.*: /hidden_size: ")

    def test_other_objects_are_refused(self):
        class Module:
            def state_dict(self):
                return {}

        for model, words in ((3, "a dict, a configuration"),
                             (None, "but is a NoneType"),
                             (Module(), "or a torch.nn.Module, but is a Module"),
                             (Module, "or a torch.nn.Module, but is a type")):
            with self.assertRaisesRegex(TypeError, words):
                mtplan.plan(model)

    def test_an_imported_module_is_a_model(self):
        text = command("examples/native/mlp.json", "--emit", "mlir", "--stage",
                       "model").stdout
        model = mtplan.TorchModel("MLP", text, 2, 32, [], [], None)
        self.assertEqual(mtplan.plan(model, gpus=2, seq=32).step_time,
                         mtplan.plan(model, gpus=2).step_time)
        with self.assertRaisesRegex(mtplan.Error,
                                    "^MLP: --seq: .* 32 positions, and not 64"):
            mtplan.plan(model, seq=64)
        with self.assertRaisesRegex(TypeError, "but the model is a str"):
            mtplan.plan(LLAMA, (1,))

    @unittest.skipUnless(importlib.util.find_spec("torch"), "no torch")
    def test_a_module_is_a_model(self):
        torch = importlib.import_module("torch")
        module = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(),
                                     torch.nn.Linear(256, 16))
        plan = mtplan.plan(module, (torch.zeros(2, 64),), gpus=2, tp=2)
        self.assertIn("Sequential", repr(plan))

    def test_a_value_without_json_is_refused(self):
        with self.assertRaisesRegex(mtplan.Error, "not JSON serializable"):
            mtplan.plan(dict(self.fields, hidden_size={1}))


class Requests(unittest.TestCase):
    """Checks that keywords and errors are the command's flags and messages."""

    def refused(self, **space):
        with self.assertRaises(mtplan.Error) as caught:
            mtplan.plan(LLAMA, **space)
        self.assertIsInstance(caught.exception, ValueError)
        return caught.exception.errors

    def test_unknown_keyword(self):
        self.assertEqual(self.refused(micro_batches=2), [
            'plan: /micro_batches: unknown key; the nearest valid key is '
            '"micro_batch"'])

    def test_wrong_types(self):
        self.assertEqual(self.refused(tp="two", pp=[1, 2.5]), [
            "plan: /tp: must be a whole number",
            'plan: /pp: must be a whole number, an array of them, or "any"'])
        self.assertEqual(self.refused(tp=True),
                         ["plan: /tp: must be a whole number"])

    def test_wrong_values_have_the_words_of_the_command(self):
        for flag, value in (("--tp", 0), ("--schedule", "gpip"),
                            ("--precision", "bf61")):
            ran = command(LLAMA, flag, str(value))
            self.assertEqual(ran.returncode, 2)
            self.assertEqual(
                ["error: " + one for one in self.refused(**{flag[2:]: value})],
                ran.stderr.splitlines())

    def test_every_fault_is_reported(self):
        self.assertEqual(len(self.refused(tp=0, dp=0, zero=7)), 3)

    def test_missing_files(self):
        with self.assertRaisesRegex(
                mtplan.Error,
                "^none.json: cannot be read: No such file or directory$"):
            mtplan.plan("none.json")
        self.assertRegex(self.refused(hardware="dgx-h10")[0], "dgx-h100")
        with self.assertRaisesRegex(mtplan.Error, "none.json"):
            mtplan.load("none.json")

    def test_same_bytes_as_the_command(self):
        ran = command(LLAMA, "--gpus", "4", "--pp", "1,2", "--zero", "any",
                      "--json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        plan = mtplan.plan(LLAMA, gpus=4, pp=(1, 2), zero="any")
        self.assertEqual(plan.to_json(), ran.stdout)
        self.assertEqual(str(plan) + "\n", command(
            LLAMA, "--gpus", "4", "--pp", "1,2", "--zero", "any").stdout)

    def test_pins_and_switches(self):
        plan = mtplan.plan("examples/gpt2-1.2b.json", gpus=4, tp=4,
                           pins=["h.*.mlp.fc1=column"],
                           sequence_parallel=False)
        fc1 = next(op for run in plan.layers for op in run.ops
                   if op.label.endswith("mlp.fc1"))
        self.assertIn("column", fc1.strategy)
        with self.assertRaisesRegex(mtplan.Error, "pin"):
            mtplan.plan(LLAMA, tp=4, pins=["h.*.mlp.nothing=column"])

    def test_keywords_are_the_flags(self):
        self.assertIn("micro_batch", mtplan.keywords())
        self.assertIn("pins", mtplan.keywords())
        self.assertNotIn("json", mtplan.keywords())

    def test_nothing_fits(self):
        with self.assertRaises(mtplan.NothingFits) as caught:
            mtplan.plan(LLAMA, gpus=1, memory_gib=20)
        self.assertIn("Nothing fits, of", str(caught.exception))
        self.assertIsNone(caught.exception.report["plan"])
        self.assertIn("--gpus 4 fits", caught.exception.remedies[0])
        ran = command(LLAMA, "--gpus", "1", "--memory-gib", "20")
        self.assertEqual(ran.stdout, str(caught.exception) + "\n")

    def test_price_needs_one_configuration(self):
        with self.assertRaisesRegex(TypeError, "but got none"):
            mtplan.price(LLAMA)
        with self.assertRaisesRegex(TypeError, "deepspeed and torchtitan"):
            mtplan.price(LLAMA, deepspeed={}, torchtitan="a.toml")
        with self.assertRaisesRegex(TypeError, "deepspeed must be a path"):
            mtplan.price(LLAMA, deepspeed=3)
        with self.assertRaisesRegex(mtplan.Error, "megatron_flags: "):
            mtplan.price(LLAMA, megatron_flags="--tensor-model-parallel-sizes")

    def test_price_reads_deepspeed_and_torchtitan(self):
        deepspeed = mtplan.price(
            LLAMA, gpus=8, deepspeed={
                "train_batch_size": 64, "train_micro_batch_size_per_gpu": 1,
                "gradient_accumulation_steps": 8,
                "zero_optimization": {"stage": 3}, "bf16": {"enabled": True}})
        self.assertEqual(deepspeed.parallelism.zero, 3)
        self.assertEqual(deepspeed.parallelism.dp, 8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = mtplan.plan(LLAMA, gpus=8, tp=1, pp=1, cp=1, zero=3,
                               recompute="full").export("torchtitan")
        priced = mtplan.price(LLAMA, gpus=8, torchtitan=text)
        self.assertEqual(priced.parallelism.zero, 3)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "job.toml"
            path.write_text(text, encoding="utf-8")
            by_path = mtplan.price(LLAMA, gpus=8, torchtitan=path)
        self.assertEqual(by_path.step_time, priced.step_time)

    def test_sweeps_over_words(self):
        rows = mtplan.sweep(LLAMA, over="recompute,micro-batch", gpus=8, tp=8,
                            pp=1, micro_batch=1)
        self.assertEqual({row.micro_batch for row in rows}, {1})
        self.assertIn("none", {row.recompute for row in rows})
        with self.assertRaisesRegex(mtplan.Error, "^--sweep: .*flag to sweep"):
            mtplan.sweep(LLAMA, over=["tpp"])


class Plans(unittest.TestCase):
    """Checks that a plan holds the data of the report."""

    @classmethod
    def setUpClass(cls):
        cls.plan = mtplan.plan(LLAMA, gpus=8, tp=2, pp=2)

    def test_the_ledger_holds_the_sends_of_the_pipeline(self):
        kinds = {one.kind for one in self.plan.collectives}
        self.assertIn("send", kinds)
        self.assertTrue(all(one["bytes"] >= 0 and one.count_per_step > 0
                            for one in self.plan.collectives))

    def test_memory_classes_add_up(self):
        memory = self.plan.memory
        self.assertAlmostEqual(sum(memory.by_class.values()), memory.total)
        self.assertEqual(len(memory.stages), 2)
        self.assertEqual(
            max(stage.memory_bytes.total for stage in memory.stages),
            memory.total)
        self.assertTrue(memory.fits)

    def test_layers_cover_the_model(self):
        self.assertEqual(sum(run.copies for run in self.plan.layers
                             if run.segment == "h"), 32)
        self.assertTrue(all(run.ops for run in self.plan.layers))

    def test_records_name_their_keys(self):
        with self.assertRaisesRegex(AttributeError, "there are dp, tp"):
            self.plan.parallelism.ddp  # pylint: disable=pointless-statement
        record = pickle.loads(pickle.dumps(self.plan.parallelism))
        self.assertEqual(record.tp, 2)

    def test_a_proof_names_what_it_compared(self):
        proof = self.plan.verify()
        self.assertEqual((proof.holds, proof.ranks, proof.failures),
                         (True, 8, []))
        self.assertGreater(proof.tensors, 20)
        self.assertIn("rank", proof.worst)
        many = mtplan.plan(TINY, gpus=512, dp=512, global_batch=512)
        with self.assertRaisesRegex(mtplan.Error, "here 512; at most 256"):
            many.verify()

    def test_why_refuses_unknown_choices(self):
        with self.assertRaisesRegex(mtplan.Error, "^--why: .*tp"):
            self.plan.why(tpp=4)
        with self.assertRaisesRegex(mtplan.Error, "is empty"):
            self.plan.why()
        self.assertIn("sequence-parallel=on",
                      self.plan.why(sequence_parallel=True))

    def test_a_loaded_plan_is_the_saved_one(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.json")
            self.plan.save(path)
            loaded = mtplan.load(path)
            self.assertEqual(loaded.to_json(), self.plan.to_json())
            with self.assertRaisesRegex(mtplan.Error, "--load"):
                loaded.why(tp=4)
            with self.assertRaisesRegex(mtplan.Error, "unknown key"):
                mtplan.load(path, hardwar="dgx-2h")

    def test_pages(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "page.html"
            page = self.plan.report(path)
            self.assertEqual(path.read_text(encoding="utf-8"), page)
            trace = self.plan.trace(pathlib.Path(folder) / "trace.json")
            self.assertTrue(json.loads(trace)["traceEvents"])
        frame = self.plan._repr_html_()
        self.assertTrue(frame.startswith('<iframe srcdoc="&lt;'))
        self.assertEqual(frame.count('"'), 6)

    def test_exports(self):
        with self.assertRaisesRegex(mtplan.Error, "^--export: .*megatron"):
            self.plan.export("megatro")
        with self.assertRaisesRegex(mtplan.Error, "^--export deepspeed: "):
            self.plan.export("deepspeed")
        plan = mtplan.plan(TINY, gpus=2, pp=2, schedule="1f1b", zero=0)
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            text = plan.export("deepspeed")
        self.assertIn("zero_optimization", json.loads(text))
        self.assertIn("PipelineModule", str(notes[0].message))

    def test_a_folder_that_cannot_be_written_is_an_error(self):
        with self.assertRaisesRegex(mtplan.Error, "/dev/null"):
            self.plan.compile("/dev/null/run")


class Machines(unittest.TestCase):
    """Checks that machines are read, edited and saved."""

    def test_every_preset_is_a_machine(self):
        for name in mtplan.machines():
            self.assertTrue(mtplan.Machine(name).name)
        levels = mtplan.Machine("dgx-h100")["/levels"]
        self.assertEqual(mtplan.Machine("dgx-h100")["/levels/0"], levels[0])

    def test_faster_links_make_steps_shorter(self):
        machine = mtplan.Machine("dgx-h100")
        slow = machine.edited("/device/gemm_efficiency", 0.3, "a test")
        asked = {"gpus": 8, "tp": 8, "top": 1}
        self.assertGreater(
            mtplan.plan(LLAMA, hardware=slow, **asked).step_time,
            mtplan.plan(LLAMA, hardware=machine, **asked).step_time)
        self.assertEqual(
            mtplan.plan(LLAMA, hardware=slow.data, **asked).step_time,
            mtplan.plan(LLAMA, hardware=slow, **asked).step_time)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "own.json"
            own = mtplan.Machine("dgx-h100").edited("/name", "own", "")
            own.save(path)
            self.assertEqual(mtplan.Machine(path).data, own.data)
            self.assertIn("own  8 x", str(mtplan.plan(LLAMA, hardware=path)))
            self.assertEqual(repr(own), "<mtplan.Machine own>")

    def test_faults(self):
        machine = mtplan.Machine("dgx-h100")
        with self.assertRaisesRegex(mtplan.Error, "bandwidth_GBps"):
            machine.edited("/device/bandwidth_GBps", -1, "a test")
        with self.assertRaisesRegex(mtplan.Error, "devic does not exist"):
            machine.edited("/devic/memory_GiB", 1, "a test")
        with self.assertRaisesRegex(mtplan.Error, "no member of an object"):
            machine.edited("/levels/0", 1, "a test")
        with self.assertRaisesRegex(mtplan.Error, "JSON pointer"):
            machine.edited("memory", 1, "a test")
        with self.assertRaises(KeyError):
            machine["/device/none"]  # pylint: disable=pointless-statement
        with self.assertRaisesRegex(mtplan.Error, "the presets are"):
            mtplan.Machine("dgx-h10")
        with self.assertRaisesRegex(TypeError, "but is a int"):
            mtplan.Machine(3)
