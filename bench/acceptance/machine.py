"""Runs the commands of a part within its time, and reads their output."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time

MIB = 2**20
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
TAIL = 2000  # characters of a command's output that a failure quotes
GRACE = 2  # seconds for a process to flush its output after SIGTERM


class Failure(Exception):
    """Says that a command failed or had a wrong result."""


class NoTime(Failure):
    """Says that a command's time was over before the command started or ended."""


def device_facts(torch_python):
    """Returns name, driver and versions as strings, empty if unknown."""
    facts = {"name": "", "driver": "", "nvcc": "", "torch": ""}
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,power.limit",
                               "--format=csv,noheader", "-i", "0"], capture_output=True, text=True,
                              check=True, timeout=60).stdout.strip().split(", ")
        facts.update(zip(["name", "driver", "power limit"], said))
    with contextlib.suppress(OSError, subprocess.SubprocessError, IndexError):
        said = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True,
                              timeout=60).stdout
        facts["nvcc"] = re.findall(r"V([0-9.]+)", said)[0]
    code = ("import json, torch; c = torch.cuda; print(json.dumps({'torch': torch.__version__, "
            "'cuDNN': torch.backends.cudnn.version(), 'NCCL': '.'.join(map(str, c.nccl.version()))"
            " if c.is_available() else '', 'CUDA of torch': torch.version.cuda or '', "
            "'name': c.get_device_name(0) if c.is_available() else ''}))")
    with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError, IndexError):
        said = subprocess.run([torch_python, "-c", code], capture_output=True, text=True,
                              check=True, timeout=120).stdout
        facts.update({name: value for name, value in last_object(said).items() if value})
    return facts


def last_object(said):
    """Reads the last line that is a JSON object; warnings may come after it."""
    return json.loads([line for line in said.splitlines() if line.startswith("{")][-1])


def end_group(process):
    """Ends a process and its children.

    The processes form a process group in the POSIX session of this program.
    Therefore they also end if that session is ended.
    """
    for number in signal.SIGTERM, signal.SIGKILL:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)


class DeviceMemory:
    """Measures the peak memory use of GPU 0, above the use at the start."""

    def __init__(self):
        self.first = self.most = None
        self.process = None

    def __enter__(self):
        if shutil.which("nvidia-smi"):
            # By default, the C library buffers 4 KiB of output to a pipe.
            by_line = ["stdbuf", "-oL"] if shutil.which("stdbuf") else []
            self.process = subprocess.Popen(
                [*by_line, "nvidia-smi", "--query-gpu=memory.used",
                 "--format=csv,noheader,nounits", "-i", "0", "-lms", "100"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                text=True, process_group=0)
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
            end_group(self.process)
            self.reader.join()

    @property
    def bytes(self):
        return None if self.most is None else self.most - self.first


class Command:
    """Holds a running program and its deadline."""

    def __init__(self, words, to, end, **more):
        self.words, self.to, self.until = words, to, end
        with open(to, "ab") as file:
            self.start = file.tell()
            try:
                self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=file,
                                                stderr=subprocess.STDOUT, process_group=0, **more)
            except OSError as error:
                raise Failure(f"{words[0]}: {error}") from error

    def said(self):
        with open(self.to, "rb") as file:
            file.seek(self.start)
            return file.read().decode(errors="replace")

    def stop(self):
        if self.process.poll() is None:
            end_group(self.process)

    def end(self, status=0):
        """Waits for the program to end, and returns its output on both streams."""
        words = " ".join(self.words)
        try:
            got = self.process.wait(max(0.0, self.until - time.monotonic()))
        except subprocess.TimeoutExpired as late:
            self.stop()
            raise NoTime(f"{words}: timed out; its last output: "
                         f"{self.said()[-TAIL:].strip()}") from late
        finally:
            self.stop()
        said = self.said()
        if status is not None and got != status:
            raise Failure(f"{said[-TAIL:].strip()} (status {got} of {words})")
        return said


class Machine:
    """Holds a part's programs, its compiled plans and its remaining time."""

    def __init__(self, flags, start):
        self.flags = flags
        self.binaries = flags.binaries
        self.prepared = flags.prepared
        self.backend = flags.backend
        self.scale = flags.scale
        self.until = start + flags.seconds
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mtplan-acceptance-"))
        self.started = []

    def stop(self):
        """Ends the commands that still run."""
        for command in self.started:
            command.stop()

    def close(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def left(self):
        return self.until - time.monotonic()

    def program(self, name):
        path = self.binaries / name
        if not path.exists():
            raise Failure(f"{path} is not there")
        return path

    def mtrun(self):
        return self.flags.mtrun or self.program("mtrun")

    def start(self, *command, to=None, share=1.0, **more):
        """Starts a program that may take `share` of the part's remaining time.

        Its output is appended to the file `to`, even if no caller reads it.
        """
        words = list(map(str, command))
        if self.left() <= 0:
            raise NoTime(f"{words[0]} was not started: none of the part's {self.flags.seconds:g} "
                         "seconds are left")
        to = to or self.folder / f"said-{len(self.started)}.txt"
        self.started.append(Command(words, to, time.monotonic() + share * self.left(), **more))
        return self.started[-1]

    def run(self, *command, status=0, **more):
        """Runs a program and returns its output on both streams.

        If `status` is None, any exit status is accepted.
        """
        return self.start(*command, **more).end(status)

    def training(self, case, steps, *more, warmup=0, backend=None, env=None):
        """Starts to train a plan. Returns a function that waits for the end."""
        backend = backend or self.backend
        metrics = self.folder / f"metrics-{len(self.started)}.jsonl"
        if backend != self.backend:  # the run on the GPU beside this one needs cores, too
            more = *more, "--threads", max(1, (os.cpu_count() or 1) // 2)
        command = self.start(
            self.mtrun(), self.prepared / case, "--steps", steps,
            "--data", self.prepared / "data.txt", "--backend", backend,
            "--warmup", warmup, "--lr-decay", "constant", "--patience", 120, "--metrics", metrics,
            *more, env=env)

        def trained():
            said = command.end()
            with open(metrics, encoding="utf-8") as file:
                records = [json.loads(line) for line in file]
            if len(records) != steps:
                raise Failure(f"{case}: {len(records)} of {steps} steps")
            return Trained(records, said)
        return trained

    def train(self, case, steps, *more, backend=None, env=None, watch=False):
        """Trains a prepared plan."""
        memory = DeviceMemory() if watch else contextlib.nullcontext()
        with memory:
            trained = self.training(case, steps, *more, backend=backend, env=env)()
        trained.device_bytes = memory.bytes if watch else None
        return trained

    def together(self, *trainings):
        """Waits for several trainings; if one fails the others are ended."""
        try:
            return [trained() for trained in trainings]
        finally:
            self.stop()


class Trained:
    def __init__(self, records, said):
        self.records, self.said, self.device_bytes = records, said, None
        self.losses = [record["loss"] for record in records]
        if not all(isinstance(loss, (int, float)) for loss in self.losses):
            raise Failure(f"some losses are not numbers: {self.losses}")

    def median(self, name, first):
        values = [record[name] for record in self.records[first:] if name in record]
        if not values:
            raise Failure(f"the log has no {name}")
        return statistics.median(values)

    def classes(self):
        """Returns a step's seconds by class, from the table in the output."""
        rows = re.findall(r"^  (\S.*?)  +([0-9.]+) (ns|us|ms|s) +[0-9.]+ %", self.said, re.M)
        found = {name: float(value) * SECONDS[unit] for name, value, unit in rows}
        if "step" not in found:
            raise Failure("the run printed no table of what a step took")
        return found
