"""Commands of a part, within its time, and what they say."""

import contextlib
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import threading
import time

MIB = 2**20
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


class Failure(Exception):
    """A command that did not do what it was to do."""


def device_facts(torch_python):
    """Name, driver and versions; empty strings where nobody says."""
    facts = {"name": "", "driver": "", "nvcc": "", "torch": ""}
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,power.limit",
                               "--format=csv,noheader", "-i", "0"], capture_output=True, text=True,
                              check=True, timeout=60).stdout.strip().split(", ")
        facts.update(zip(["name", "driver", "power limit"], said))
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True,
                              timeout=60).stdout
        facts["nvcc"] = re.search(r"V([0-9.]+)", said).group(1)
    code = ("import json, torch; c = torch.cuda; print(json.dumps({'torch': torch.__version__, "
            "'cuDNN': torch.backends.cudnn.version(), 'NCCL': '.'.join(map(str, c.nccl.version()))"
            " if c.is_available() else '', 'CUDA of torch': torch.version.cuda or '', "
            "'name': c.get_device_name(0) if c.is_available() else ''}))")
    with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError, IndexError):
        said = subprocess.run([torch_python, "-c", code], capture_output=True, text=True,
                              check=True, timeout=120).stdout
        facts.update({name: value for name, value in json.loads(said.splitlines()[-1]).items()
                      if value})
    return facts


class DeviceMemory:
    """The most memory of GPU 0 that was in use, above what was at the start."""

    def __init__(self):
        self.first = self.most = None
        self.process = None

    def __enter__(self):
        if shutil.which("nvidia-smi"):
            self.process = subprocess.Popen(
                ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i",
                 "0", "-lms", "100"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            self.reader = threading.Thread(target=self.read, daemon=True)
            self.reader.start()
            end = time.monotonic() + 10
            while self.first is None and self.reader.is_alive() and time.monotonic() < end:
                time.sleep(0.02)
        return self

    def read(self):
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):
                used = float(line) * MIB
                self.first = used if self.first is None else self.first
                self.most = max(self.most or used, used)

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.reader.join()

    @property
    def bytes(self):
        return None if self.most is None else self.most - self.first


class Machine:
    """Where parts run: programs, prepared plans, and the time that is left."""

    def __init__(self, flags):
        self.flags = flags
        self.binaries = flags.binaries
        self.prepared = flags.prepared
        self.backend = flags.backend
        self.scale = flags.scale
        self.end = time.monotonic() + flags.seconds
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mtplan-acceptance-"))

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def left(self):
        return max(1.0, self.end - time.monotonic())

    def program(self, name):
        path = self.binaries / name
        if not path.exists():
            raise Failure(f"{path} is not there")
        return path

    def mtrun(self):
        return self.flags.mtrun or self.program("mtrun")

    def run(self, *command, status=0, **more):
        """What it says on both streams. `status` None: any."""
        words = list(map(str, command))
        try:
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, errors="replace", check=False, timeout=self.left(),
                                  **more)
        except subprocess.TimeoutExpired as late:
            raise Failure(f"{' '.join(words)}: no time was left") from late
        except OSError as error:
            raise Failure(f"{words[0]}: {error}") from error
        if status is not None and done.returncode != status:
            raise Failure(f"{done.stdout[-500:].strip()} (status {done.returncode} of "
                          f"{' '.join(words)})")
        return done.stdout

    def train(self, case, steps, *more, backend=None, watch=False):
        """Trains a prepared plan."""
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        memory = DeviceMemory() if watch else contextlib.nullcontext()
        with memory:
            said = self.run(
                self.mtrun(), self.prepared / case, "--steps", steps,
                "--data", self.prepared / "data.txt", "--backend", backend or self.backend,
                "--warmup", 0, "--lr-decay", "constant", "--patience", 120, "--metrics", metrics,
                *more)
        with open(metrics, encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        if len(records) != steps:
            raise Failure(f"{case}: {len(records)} of {steps} steps")
        return Trained(records, said, memory.bytes if watch else None)


class Trained:
    def __init__(self, records, said, device_bytes):
        self.records, self.said, self.device_bytes = records, said, device_bytes
        self.losses = [record["loss"] for record in records]
        if not all(isinstance(loss, (int, float)) for loss in self.losses):
            raise Failure(f"losses are no numbers: {self.losses}")

    def median(self, name, first):
        values = [record[name] for record in self.records[first:] if name in record]
        if not values:
            raise Failure(f"the log has no {name}")
        return statistics.median(values)

    def classes(self):
        """Seconds of a step by class, as the table at the end has them."""
        rows = re.findall(r"^  (\S.*?)  +([0-9.]+) (ns|us|ms|s) +[0-9.]+ %", self.said, re.M)
        found = {name: float(value) * SECONDS[unit] for name, value, unit in rows}
        if "step" not in found:
            raise Failure("the run printed no table of what a step took")
        return found
