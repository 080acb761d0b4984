"""Runs the notebooks in examples/notebooks, and compares what they show."""

import importlib.util
import unittest

import notebooks
from helpers import ROOT

FOLDER = ROOT / "examples" / "notebooks"


class Notebooks(unittest.TestCase):
    """Checks that a notebook shows what its cells compute."""

    maxDiff = None

    def check(self, name):
        path = FOLDER / f"{name}.ipynb"
        for cell, outputs in zip(notebooks.read(path)[1],
                                 notebooks.run_alone(path), strict=True):
            self.assertEqual(
                cell["outputs"], outputs, "".join(cell["source"]) +
                f"\n\npython3 {notebooks.__file__} --write {path}")

    def test_plan(self):
        self.check("plan")

    def test_research(self):
        self.check("research")

    @unittest.skipUnless(importlib.util.find_spec("transformers"),
                         "no transformers")
    def test_torchrun(self):
        self.check("torchrun")

    def test_all_are_run(self):
        tests = {name.removeprefix("test_") for name in dir(self)}
        self.assertLessEqual({path.stem for path in FOLDER.glob("*.ipynb")},
                             tests)


if __name__ == "__main__":
    unittest.main()
