"""Plans, compiles and trains transformers on many GPUs.

>>> import mtplan
>>> plan = mtplan.plan("examples/llama-3-8b.json", gpus=8, hardware="dgx-h100",
...                    global_batch=512, seq=4096)
>>> plan.memory.fits
True

docs/python.md describes the package.
"""

from mtplan._core import version as __version__
from mtplan._errors import Error, NothingFits
from mtplan._machine import Machine, machines
from mtplan._plan import Plan
from mtplan._record import Memory, Record
from mtplan._search import keywords, load, plan, price, sweep
from mtplan._torch import TorchModel, from_torch
from mtplan._train import train

__all__ = ["Error", "Machine", "Memory", "NothingFits", "Plan", "Record",
           "TorchModel", "__version__", "from_torch", "keywords", "load",
           "machines", "plan", "price", "sweep", "train"]
