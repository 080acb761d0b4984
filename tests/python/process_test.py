"""Tests the package mtplan as part of a process: the libraries it loads, the
threads and signals beside a search, and the program that trains.

The current folder is the repository's.
"""

import contextlib
import io
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import mtplan
from helpers import LLAMA, TINY
from mtplan import _core
from mtplan._commands import MTRUN


class Libraries(unittest.TestCase):
    """Checks that the package runs on a machine without MLIR."""

    FROM_MACHINE = re.compile(
        r"(ld-linux.*|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s))\.so\.\d+$")

    def needed(self, path):
        text = subprocess.run(["readelf", "-d", path], capture_output=True,
                              text=True, check=True).stdout
        return re.findall(r"\(NEEDED\).*\[(.*)\]", text)

    def setUp(self):
        if not shutil.which("readelf"):
            self.skipTest("no readelf")

    def test_the_planner_needs_the_language_s_libraries_alone(self):
        for name in self.needed(_core.__file__):
            self.assertRegex(name, self.FROM_MACHINE)

    def test_libraries_of_mtrun_are_beside_it(self):
        folder = MTRUN.parent.parent / "lib"
        if not folder.is_dir():
            self.skipTest("the package is not installed")
        here = {path.name for path in folder.iterdir()}
        for path in [MTRUN, *folder.iterdir()]:
            for name in self.needed(path):
                if name not in here:
                    self.assertRegex(name, self.FROM_MACHINE)

    def test_only_the_entry_of_the_module_is_exported(self):
        text = subprocess.run(
            ["readelf", "--dyn-syms", "-W", _core.__file__],
            capture_output=True, text=True, check=True).stdout
        exported = [line.split()[7] for line in text.splitlines()
                    if re.search(r" (GLOBAL|WEAK|UNIQUE) +DEFAULT +\d+ ",
                                 line)]
        self.assertEqual(exported, ["PyInit__core"])


class Interpreter(unittest.TestCase):
    """Checks that Python stays responsive during a search."""

    LONG = "mtplan.plan('examples/mixtral-8x7b.json', gpus=512, cp='any')"

    def test_other_threads_run(self):
        done = threading.Event()

        def search():
            mtplan.plan(LLAMA, gpus=8)
            done.set()

        thread = threading.Thread(target=search)
        thread.start()
        turns = 0
        while not done.wait(0.001):
            turns += 1
        thread.join()
        self.assertGreater(turns, 20)

    def test_plans_of_several_threads_are_equal(self):
        texts = []
        threads = [threading.Thread(target=lambda: texts.append(
            mtplan.plan(TINY, gpus=4).to_json())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(texts), 4)
        self.assertEqual(len(set(texts)), 1)

    def interrupted(self, source):
        with subprocess.Popen(
                [sys.executable, "-c", source], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True) as process:
            self.assertEqual(process.stdout.readline(), "ready\n")
            time.sleep(0.5)
            self.assertIsNone(process.poll(), "the search is too short")
            start = time.monotonic()
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        self.assertLess(time.monotonic() - start, 15)
        return process.returncode, errors

    def test_control_c_ends_a_search(self):
        status, errors = self.interrupted(
            f"import mtplan; print('ready', flush=True); {self.LONG}")
        self.assertIn("KeyboardInterrupt", errors)
        self.assertEqual(status, -signal.SIGINT)

    def test_control_c_ends_the_command(self):
        status, _ = self.interrupted(
            "import sys; from mtplan._commands import mtplan; "
            "sys.argv = ['mtplan', 'examples/mixtral-8x7b.json', '--gpus', "
            "'512', '--cp', 'any']; print('ready', flush=True); mtplan()")
        self.assertEqual(status, -signal.SIGINT)


class Progress(unittest.TestCase):
    """Checks that a search reports its progress."""

    MODEL = "examples/mixtral-8x7b.json"

    def test_a_function_gets_the_states(self):
        states = []
        mtplan.plan(self.MODEL, gpus=64, progress=states.append)
        self.assertGreater(len(states), 3)
        for earlier, later in zip(states, states[1:]):
            self.assertGreater(later.seconds, earlier.seconds + 0.04)
            self.assertLessEqual(later.step_time or math.inf,
                                 earlier.step_time or math.inf)
        self.assertLess(states[-1].open, max(one.open for one in states))
        self.assertGreater(states[-1].step_time, 0)

    def test_an_exception_ends_the_search(self):
        def refuse(state):
            raise InterruptedError(f"{state.seconds > 0}")

        with self.assertRaisesRegex(InterruptedError, "True"):
            mtplan.plan(self.MODEL, gpus=64, progress=refuse)

    def test_a_line_is_shown_and_erased(self):
        with contextlib.redirect_stderr(io.StringIO()) as stream:
            mtplan.sweep(self.MODEL, over=["tp"], gpus=64, progress=True)
        first, *_, last = stream.getvalue().split("\r")[1:]
        self.assertRegex(first,
                         r"^searching \d+ s: [\d,]+ configurations left")
        self.assertEqual(last, "")
        with contextlib.redirect_stderr(io.StringIO()) as stream:
            mtplan.plan(TINY, gpus=1)
        self.assertEqual(stream.getvalue(), "")

    def test_other_values_are_refused(self):
        with self.assertRaisesRegex(TypeError, "True or a function.* is a int"):
            mtplan.price(TINY, megatron_flags="", progress=3)


class Training(unittest.TestCase):
    """Checks that a compiled plan trains on CPU ranks."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.run_folder = os.path.join(cls.folder.name, "run")
        cls.plan = mtplan.plan(TINY, gpus=2, dp=2, hardware="cpu",
                               global_batch=8, micro_batch=4,
                               output=cls.run_folder)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_loss_falls(self):
        records = list(mtplan.train(self.run_folder, steps=30,
                                    data="examples/data/opticks.txt"))
        self.assertEqual([one.step for one in records], list(range(1, 31)))
        self.assertLess(records[-1].loss, records[0].loss)

    def test_flags_of_mtrun(self):
        path = os.path.join(self.folder.name, "metrics.jsonl")
        records = list(mtplan.train(self.run_folder, steps=2, seed=7,
                                    metrics=path, tensorboard=None))
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
        self.assertEqual([json.loads(line) for line in lines], records)

    def test_a_resumed_run_keeps_the_records_of_earlier_steps(self):
        path = pathlib.Path(self.folder.name, "resumed.jsonl")
        flags = {"metrics": path, "save_every": 2,
                 "checkpoint": os.path.join(self.folder.name, "saved")}
        steps = [one.step for one in
                 mtplan.train(self.run_folder, steps=3, **flags)]
        first = path.read_text(encoding="utf-8").splitlines()
        steps += [one.step for one in
                  mtplan.train(self.run_folder, steps=5, **flags)]
        self.assertEqual(steps, [1, 2, 3, 4, 5])
        lines = path.read_text(encoding="utf-8").splitlines()
        self.assertEqual(lines[:3], first)
        self.assertEqual(len(lines), 5)
        self.assertEqual(list(mtplan.train(self.run_folder, steps=5, **flags)),
                         [])
        self.assertEqual(path.read_text(encoding="utf-8").splitlines(), lines)

    def test_errors_have_the_words_of_mtrun(self):
        with self.assertRaisesRegex(mtplan.Error,
                                    "^--stepz: no such option; nearest is "):
            list(mtplan.train(self.run_folder, stepz=3))
        with self.assertRaisesRegex(mtplan.Error, "none"):
            list(mtplan.train("none"))

    def test_closing_the_iterator_ends_the_run(self):
        run = mtplan.train(self.run_folder, steps=1000000)
        self.assertEqual(next(run).step, 1)
        start = time.monotonic()
        run.close()
        self.assertLess(time.monotonic() - start, 10)

    def test_the_command_runs(self):
        self.assertTrue(MTRUN.is_file())
        ran = subprocess.run([MTRUN, "--help"], capture_output=True, text=True,
                             check=False)
        self.assertIn("Usage: mtrun", ran.stdout)
