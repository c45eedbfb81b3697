"""What a GPU makes of a training step: ours by `fit`, and PyTorch's beside it.

    python -m benchmarks.accelerator --output RESULTS
    python -m benchmarks.accelerator --smoke --output RESULTS  # anywhere, in miniature

It needs JAX, PyTorch and transformers, and no TensorFlow. All contestants compile side
by side, in processes of their own; then one after the other has the device for itself,
first those that were ready within `--patience`. Who fails beside the others, for lack
of memory say, has a second try alone. The command ends after `--seconds`, whoever is
left.

Ours is the public `fit` with as many updates in a program as a recipe makes there. Two
further rows have the plain form of attention (`KERAS_CORRUPT_DROPOUT_ATTENTION`), and
kernels for layers (`KERAS_CORRUPT_LAYER_KERNELS`). The peer is Hugging Face's ELECTRA
by `torch.compile`, also with CUDA graphs.

It writes `accelerator.md`, `accelerator.json` and a plot. *On the device* is the time
of a step in the compiled program alone; the host takes the rest of the time of `fit`.
"""

import dataclasses
import json
import os
import statistics
import sys
import time
from pathlib import Path

import tyro

from benchmarks.workers import Worker, serve

PLAIN = {"KERAS_CORRUPT_DROPOUT_ATTENTION": "plain"}
LAYERS = {"KERAS_CORRUPT_LAYER_KERNELS": "on"}


@dataclasses.dataclass(frozen=True)
class Case:
    """A step: class and size of the model, texts and tokens of a batch."""

    system: str
    size: str
    batch_size: int
    length: int
    remat: bool = False


CASES = {
    "ELECTRA-Small, 128 x 128": Case("Electra", "small", 128, 128),
    "ELECTRA base, 16 x 512": Case("Electra", "base", 16, 512),
    "ELECTRA base, 64 x 512, remat": Case("Electra", "base", 64, 512, remat=True),
    "TEAMS-Small, 128 x 128": Case("Teams", "small", 128, 128),
    "COCO-LM base, 16 x 512": Case("CocoLM", "base", 16, 512),
}
MINIATURE = {
    "ELECTRA tiny, 2 x 16": Case("Electra", "tiny", 2, 16),
    "TEAMS tiny, 2 x 16, remat": Case("Teams", "tiny", 2, 16, remat=True),
}
#: Contestant -> its library, environment, and how PyTorch compiles.
CONTESTANTS = {
    "ours": ("keras_corrupt", {}, None),
    "ours, plain attention": ("keras_corrupt", PLAIN, None),
    "ours, kernels for layers": ("keras_corrupt", LAYERS, None),
    "PyTorch": ("torch", {}, "default"),
    "PyTorch, CUDA graphs": ("torch", {}, "reduce-overhead"),
}


@dataclasses.dataclass
class Settings:
    """What to measure."""

    output: str
    """Directory for the table, the numbers and the plot."""
    cases: tuple[str, ...] = ()
    """Cases whose names begin so; all if not given."""
    contestants: tuple[str, ...] = ()
    """Contestants of these names; all if not given."""
    steps: int = 75
    """Steps of each that are timed, three times over."""
    patience: float = 120.0
    """How long those that are ready wait for the others, in seconds."""
    seconds: float = 240.0
    """When to end, in seconds from the start."""
    smoke: bool = False
    """Two small cases and few steps, to see that it runs."""


# === In each contestant's process ===


def ours(case, steps):
    """Returns the function that measures our step, which is compiled."""
    os.environ |= {"KERAS_BACKEND": "jax", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    import jax
    import keras

    import keras_corrupt
    from benchmarks.kernels import kernels_of_a_step
    from benchmarks.peers import random_batch
    from keras_corrupt.devices import compiled_programs, peaks
    from keras_corrupt.devices.many_updates import most_at_once, program
    from keras_corrupt.encoders.cost import training_flops
    from keras_corrupt.training import AdamW

    compiled_programs.keep()
    cls = getattr(keras_corrupt.models, case.system)
    own = {"discriminator": {"remat": "layer"}} if case.remat else {}
    model = cls.from_preset(case.size, dtype="mixed_bfloat16", **own)
    at_once = max(most_at_once(), 2)
    model.compile(
        AdamW(1e-4, global_clipnorm=1.0), jit_compile=True, steps_per_execution=at_once
    )
    ids = random_batch(case.batch_size, case.length) % model.vocabulary_size
    batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}

    def batches():
        while True:
            yield (batch,)

    def fit(count):
        start = time.perf_counter()
        model.fit(batches(), steps_per_epoch=count, verbose=0, shuffle=False)
        return time.perf_counter() - start

    first = fit(at_once)
    parts = ("trainable", "non_trainable", "optimizer", "metrics")
    state = model._get_jax_state(**{f"{part}_variables": True for part in parts})
    state = jax.tree.map(jax.numpy.copy, state)
    several = [({name: jax.device_put(x) for name, x in batch.items()},)] * at_once
    compiled = jax.jit(program(model), donate_argnums=0).lower(state, several).compile()

    def measured():
        nonlocal state
        fit(at_once)
        whole = -(-steps // at_once) * at_once
        by_fit = statistics.median(fit(whole) / whole for _ in range(3))
        times = []
        for _ in range(max(whole // at_once, 2)):
            start = time.perf_counter()
            _, state = jax.block_until_ready(compiled(state, several))
            times.append((time.perf_counter() - start) / at_once)
        device, forward = jax.devices()[0], model.forward_flops(case.length)
        memory = (device.memory_stats() or {}).get("peak_bytes_in_use", 0)
        return {
            "ms": 1e3 * by_fit,
            "device_ms": 1e3 * statistics.median(times),
            "first_step_s": first,
            "kernels": kernels_of_a_step(compiled.as_text()).total(),
            "memory_gb": memory / 1e9,
            "flops": training_flops(forward, case.batch_size, 1),
            "peak_flops": peaks.peak_flops("mixed_bfloat16"),
            "at_once": at_once,
            "versions": f"{device.device_kind}, JAX {jax.__version__}, Keras "
            f"{keras.__version__}",
        }

    return measured


def theirs(case, steps, mode):
    """Returns the function that measures PyTorch's step, which is compiled."""
    import torch

    from benchmarks.peers import huggingface

    device = "cuda" if torch.cuda.is_available() else "cpu"
    step = huggingface.make_step(
        case.system.lower(),
        *(case.batch_size, case.length, "bfloat16"),
        compiled=mode,
        size=case.size,
        device=device,
    )
    start = time.perf_counter()
    step()
    first = time.perf_counter() - start
    step()

    def measured():
        step()
        times = []
        for _ in range(3 * steps):
            start = time.perf_counter()
            step()
            times.append(time.perf_counter() - start)
        on_gpu = device == "cuda"
        name = torch.cuda.get_device_name() if on_gpu else "cpu"
        return {
            "ms": 1e3 * statistics.median(times),
            "first_step_s": first,
            "memory_gb": torch.cuda.max_memory_allocated() / 1e9 if on_gpu else 0.0,
            "versions": f"{name}, PyTorch {torch.__version__}",
        }

    return measured


def work(case, contestant, steps):
    """Compiles one contestant's step, and measures it when told to."""
    case, steps = Case(**json.loads(case)), int(steps)
    library, _, mode = CONTESTANTS[contestant]
    if library == "torch":
        measured = theirs(case, steps, mode)
    else:
        measured = ours(case, steps)
    serve({"measure": lambda: json.dumps(measured())})


# === Outside ===


def has(case, contestant):
    """Returns whether a contestant has a case of its own."""
    library, environment, _ = CONTESTANTS[contestant]
    # ELECTRA alone, which keeps all activations.
    if library == "torch" or environment is LAYERS:
        return case.system == "Electra" and not case.remat
    # Relative positions are biases, which no kernel of attention knows.
    return not (environment and case.system == "CocoLM")


def main(settings):
    """Measures what `settings` say, and writes it after each contestant."""
    cases = {
        name: case
        for name, case in (MINIATURE if settings.smoke else CASES).items()
        if not settings.cases or name.startswith(settings.cases)
    }
    pairs = [
        (name, contestant)
        for name, case in cases.items()
        for contestant in settings.contestants or CONTESTANTS
        if has(case, contestant)
    ]
    started = time.monotonic()
    output = Path(settings.output)
    output.mkdir(parents=True, exist_ok=True)
    steps = 4 if settings.smoke else settings.steps
    rows = {}

    def worker(pair):
        case, (_, environment, _) = cases[pair[0]], CONTESTANTS[pair[1]]
        arguments = json.dumps(dataclasses.asdict(case)), pair[1], steps
        log = output / f"{'_'.join(pair).replace(' ', '_')}.log"
        return Worker("benchmarks.accelerator", arguments, log, environment)

    def left(seconds):
        return started + seconds - time.monotonic()

    def measure(pair, worker, ready=False):
        answer = None
        if ready or worker.answer(left(settings.seconds)):
            answer = worker.ask("measure", left(settings.seconds))
        worker.end()
        row = json.loads(answer) if answer else {"error": worker.last_line}
        rows[pair] = {"case": pair[0], "contestant": pair[1]} | row
        print(f"{', '.join(pair)}: {row}", flush=True)
        write([rows[p] for p in pairs if p in rows], cases, output)

    workers = {pair: worker(pair) for pair in pairs}
    ready = [p for p in pairs if workers[p].answer(left(settings.patience))]
    for pair in sorted(pairs, key=lambda pair: pair not in ready):
        measure(pair, workers[pair], pair in ready)
    for pair in pairs:
        if "error" in rows[pair] and left(settings.seconds) > 0:
            measure(pair, worker(pair))
    print((output / "accelerator.md").read_text())


def write(rows, cases, output):
    """Writes the table, the numbers and the plot."""
    (output / "accelerator.json").write_text(json.dumps(rows, indent=1) + "\n")
    (output / "accelerator.md").write_text(table(rows, cases) + "\n")
    draw(rows, output / "accelerator.png")


def table(rows, cases):
    """Returns the measurements in Markdown."""
    lines = [
        "| | ms a step | on the device | to the fastest peer | tokens/s | TFLOP/s "
        "| of the peak | kernels | memory | first step |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, case in cases.items():
        own = [row for row in rows if row["case"] == name and "ms" in row]
        peers = [r["ms"] for r in own if r["contestant"].startswith("PyTorch")]
        flops = next((r["flops"] for r in own if "flops" in r), 0)
        peak = next((r["peak_flops"] for r in own if r.get("peak_flops")), None)
        lines.append(f"| **{name}** | | | | | | | | | |")
        for row in own:
            per_second = 1e3 * flops / row["ms"]
            cells = [
                row["contestant"],
                f"{row['ms']:.2f}",
                f"{row['device_ms']:.2f}" if "device_ms" in row else "",
                f"{row['ms'] / min(peers):.2f}" if peers else "",
                f"{1e3 * case.batch_size * case.length / row['ms']:,.0f}",
                f"{per_second / 1e12:.1f}" if flops else "",
                f"{per_second / peak:.0%}" if peak and flops else "",
                str(row.get("kernels", "")),
                f"{row['memory_gb']:.1f} GB" if row["memory_gb"] else "",
                f"{row['first_step_s']:.0f} s",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    versions = sorted({row["versions"] for row in rows if "versions" in row})
    errors = [
        f"{row['case']}, {row['contestant']}: {row['error']}"
        for row in rows
        if "error" in row
    ]
    return "\n".join([*lines, "", "; ".join(versions), *errors])


def draw(rows, path):
    """Draws the time of a step of each contestant, case by case."""
    from matplotlib.figure import Figure

    rows = [row for row in rows if "ms" in row]
    figure = Figure(figsize=(8, 1 + 0.35 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(reversed(rows)):
        color = "C0" if row["contestant"].startswith("ours") else "C7"
        axes.barh(place, row["ms"], color=color, alpha=0.6)
    names = [f"{row['case']}: {row['contestant']}" for row in reversed(rows)]
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set(xlabel="ms a step, by fit")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(*sys.argv[2:])
    else:
        main(tyro.cli(Settings, description=__doc__, use_underscores=True))
