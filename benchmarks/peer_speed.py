"""A step of each library, on this machine, in turn: of training, or of scoring.

    pip install -e '.[benchmark]' && pip install torch
    python -m benchmarks.peer_speed --output RESULTS

With `--system scoring` a step is a discriminator's forward pass over four batches of
texts of mixed lengths; `tagging` is Cross-View Training's, beside Flair (`pip install
flair`), and `cross_view` its update on text without labels. Each library runs in a
process of its own and waits while another one has its turn. A step counts if the rest
of the machine took no more than a tenth of one core meanwhile. Prints and writes the
medians, their ratio to the fastest peer's, tokens and GFLOP a second, the fraction of
what matrix products alone reach here, the peak memory and the first step's time.
"""

import dataclasses
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import tyro

from benchmarks.machine import description, matmul_gflops

ROOT = Path(__file__).parents[1]
# glibc then keeps the memory that is freed, which PyTorch leaves to it.
KEPT = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**34)}
PLAIN = {"KERAS_CORRUPT_KERNELS": "plain"}
# Module, precision and, where it is measured so, environment.
CONTESTANTS = {
    "electra": {
        "ours, bfloat16": ("ours", "bfloat16"),
        "ours, float32": ("ours", "float32"),
        "Hugging Face, bfloat16": ("huggingface", "bfloat16"),
        "Hugging Face, bfloat16, freed memory kept": ("huggingface", "bfloat16", KEPT),
        "Hugging Face, compiled, bfloat16": ("huggingface_compiled", "bfloat16"),
        "Hugging Face, float32": ("huggingface", "float32"),
        "KerasHub, bfloat16": ("keras_hub", "bfloat16"),
        "Model Garden, float32": ("model_garden", "float32"),
    },
    "scoring": {
        "ours, bfloat16": ("ours", "bfloat16"),
        "ours, float32": ("ours", "float32"),
        "ours without fused kernels, bfloat16": ("ours", "bfloat16", PLAIN),
        "ours without fused kernels, float32": ("ours", "float32", PLAIN),
        "Hugging Face, bfloat16": ("huggingface", "bfloat16"),
        "Hugging Face, float32": ("huggingface", "float32"),
        "Hugging Face, compiled, bfloat16": ("huggingface_compiled", "bfloat16"),
        "Hugging Face, compiled, float32": ("huggingface_compiled", "float32"),
    },
    "teams": {
        "ours, bfloat16": ("ours", "bfloat16"),
        "ours, float32": ("ours", "float32"),
        "Model Garden, float32": ("model_garden", "float32"),
    },
    "tagging": {
        "ours, bfloat16": ("ours", "bfloat16"),
        "ours, float32": ("ours", "float32"),
        "Flair, float32": ("flair", "float32"),
    },
    "cross_view": {
        "ours, bfloat16": ("ours", "bfloat16"),
        "ours, float32": ("ours", "float32"),
    },
}
#: The sizes of systems that are not `small`.
SIZES = {"tagging": "base", "cross_view": "base"}


@dataclasses.dataclass
class Settings:
    """What to measure."""

    output: str
    """Directory for the table."""
    system: str = "electra"
    """`electra`, `teams`, `scoring`, `tagging` or `cross_view`."""
    batch_size: int = 32
    """Sequences in a step."""
    length: int = 128
    """Tokens in a sequence."""
    rounds: int = 7
    """Steps of each that count, if undisturbed."""
    only: tuple[str, ...] = ()
    """Contestants whose names begin so; all if not given."""
    python: dict[str, str] = dataclasses.field(default_factory=dict)
    """Interpreters of peers: `--python huggingface venv/bin/python`."""

    @property
    def size(self):
        return self.batch_size, self.length


# === In each contestant's process ===


def work(peer, system, batch_size, length, dtype):
    """Runs a step for each line of input; answers with its seconds and disturbance."""
    # Libraries print what they like; the answers have a channel of their own.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    process = psutil.Process()
    module = importlib.import_module(f"benchmarks.peers.{peer}")
    step = module.make_step(system, int(batch_size), int(length), dtype)
    for _ in sys.stdin:
        others = -_others(process)
        start = time.perf_counter()
        step()
        seconds = time.perf_counter() - start
        others += _others(process)
        print(json.dumps([seconds, others / seconds, _peak_bytes()]), file=answers)


def _others(process):
    """Returns the seconds that cores have been busy for anything but this process."""
    machine = psutil.cpu_times()
    busy = machine.user + machine.system + machine.nice
    own = process.cpu_times()
    return busy - own.user - own.system


def _peak_bytes():
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024)


# === Outside ===


class Contestant:
    """A library's process."""

    def __init__(self, name, settings):
        peer, dtype, *environment = CONTESTANTS[settings.system][name]
        size = map(str, settings.size)
        # A file, since a full pipe would stop the process.
        self.messages = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [
                settings.python.get(peer, sys.executable),
                *("-m", "benchmarks.peer_speed", "work"),
                *(peer, settings.system, *size, dtype),
            ],
            cwd=ROOT,
            env=os.environ
            | {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
            | dict(*environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.messages,
            text=True,
        )
        self.name = name
        self.seconds, self.disturbed, self.peak = [], 0, 0
        self.first = self.step()
        self.step()  # some libraries compile twice

    def step(self):
        try:
            self.process.stdin.write("step\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.messages.seek(0)
            raise RuntimeError(self.messages.read().strip().splitlines()[-1])
        seconds, others, self.peak = json.loads(line)
        if others > 0.1:
            self.disturbed += 1
            return None
        return seconds

    def close(self):
        self.process.kill()
        self.process.wait()


def step_tokens(settings):
    """Returns the tokens of a step, padding included."""
    from benchmarks.peers import random_texts

    if settings.system == "scoring":
        return sum(mask.size for _, mask in random_texts(*settings.size))
    return settings.batch_size * settings.length


def step_gflop(settings):
    """Returns the GFLOP of a step of ours."""
    import keras_corrupt
    from benchmarks.peers import random_sentences, random_texts
    from benchmarks.peers.ours import SYSTEMS, tagger
    from keras_corrupt.encoders.cost import training_flops

    if settings.system in SIZES:
        model = tagger(random_sentences(*settings.size)[0])
        both = model.update_flops(settings.length)  # the mean of both kinds of batches
        model.views = ()
        labelled = model.update_flops(settings.length)
        flops = labelled if settings.system == "tagging" else 2 * both - labelled
        return settings.batch_size * flops / 1e9
    model = getattr(keras_corrupt.models, SYSTEMS[settings.system]).from_preset("small")
    if settings.system == "scoring":
        texts = [mask.shape for _, mask in random_texts(*settings.size)]
        return sum(n * model.encoder.flops(length) for n, length in texts) / 1e9
    forward = model.forward_flops(settings.length)
    return training_flops(forward, settings.batch_size, 1) / 1e9


def main(settings):
    names = [
        name
        for name in CONTESTANTS[settings.system]
        if not settings.only or name.startswith(settings.only)
    ]
    contestants, failures = [], {}
    for name in names:
        print(f"Starting {name} ...", flush=True)
        try:
            contestants.append(Contestant(name, settings))
        except RuntimeError as error:
            failures[name] = str(error)
    for _ in range(4 * settings.rounds):
        waiting = [c for c in contestants if len(c.seconds) < settings.rounds]
        for contestant in waiting:
            seconds = contestant.step()
            if seconds is not None:
                contestant.seconds.append(seconds)
    for contestant in contestants:
        contestant.close()
    write(settings, [c for c in contestants if c.seconds], failures)


def write(settings, contestants, failures):
    gflop, tokens = step_gflop(settings), step_tokens(settings)
    ceiling = {dtype: matmul_gflops(dtype) for dtype in ("bfloat16", "float32")}
    alone = ", ".join(f"{v:,.0f} GFLOP/s in {k}" for k, v in ceiling.items())
    medians = {c.name: statistics.median(c.seconds) for c in contestants}
    peers = [s for name, s in medians.items() if not name.startswith("ours")]
    lines = [
        f"# {settings.system}, {SIZES.get(settings.system, 'small')}, batch "
        f"{settings.batch_size}, length {settings.length}\n",
        f"{description()}\n",
        f"{gflop:,.0f} GFLOP a step; matrix products alone: {alone}\n",
        "| | ms | to the fastest peer | tokens/s | GFLOP/s | of the ceiling | peak "
        "memory | first step | steps |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for c in sorted(contestants, key=lambda c: medians[c.name]):
        seconds, dtype = medians[c.name], CONTESTANTS[settings.system][c.name][1]
        ratio = f"{seconds / min(peers):.2f}" if peers else ""
        first = f"{c.first:.0f} s" if c.first else "disturbed"
        speed = gflop / seconds
        lines.append(
            f"| {c.name} | {1000 * seconds:,.0f} | {ratio} | "
            f"{tokens / seconds:,.0f} | {speed:,.0f} | "
            f"{speed / ceiling[dtype]:.0%} | {c.peak / 1e9:.2f} GB | {first} | "
            f"{len(c.seconds)} ({c.disturbed} disturbed) |"
        )
    lines += [f"\n{name}: {error}" for name, error in failures.items()]
    text = "\n".join(lines) + "\n"
    output = Path(settings.output)
    output.mkdir(parents=True, exist_ok=True)
    name = f"{settings.system}_batch_{settings.batch_size}"
    (output / f"{name}.md").write_text(text)
    print(text)
    draw(contestants, medians, lines[0].strip("# \n"), output / f"{name}.png")


def draw(contestants, medians, title, path):
    """Draws each one's steps as points, their medians as bars."""
    from matplotlib.figure import Figure

    contestants = sorted(contestants, key=lambda c: -medians[c.name])
    figure = Figure(figsize=(8, 1 + 0.5 * len(contestants)), layout="constrained")
    axes = figure.subplots()
    for row, c in enumerate(contestants):
        color = "C0" if c.name.startswith("ours") else "C7"
        axes.barh(row, 1000 * medians[c.name], color=color, alpha=0.5)
        axes.plot([1000 * s for s in c.seconds], [row] * len(c.seconds), "|", color="k")
    axes.set_yticks(range(len(contestants)), [c.name for c in contestants])
    axes.set(xlabel="ms a step", title=title)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(*sys.argv[2:])
    else:
        main(tyro.cli(Settings, description=__doc__, use_underscores=True))
