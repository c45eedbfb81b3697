"""Pretrains systems at equal compute on one accelerator, several seeds of each at once.

    export KERAS_BACKEND=jax
    python -m benchmarks.on_device.systems PACKED --runs RUNS.json --output RESULTS \\
        --seconds 300
    python -m benchmarks.on_device.draw RESULTS/*.jsonl --output RESULTS

`benchmarks.on_device.packed` made `PACKED`. The file of runs has a list of `Run`s. All
compile side by side, in processes of their own. Then some updates of each are timed,
which tells how many FLOPs each run may take so that all together take `--seconds`; and
one after the other has the device for itself. One program makes fifty updates of
all seeds of a run: a small model alone leaves most of a GPU idle.

A run writes its settings and a line for each measurement to `RESULTS/NAME.jsonl`, and
its models to `RESULTS/NAME-SEED`. It needs JAX, Keras and no TensorFlow.
"""

import dataclasses
import json
import sys
import time
from pathlib import Path

import jax
import keras
import numpy as np
import tyro

from benchmarks.on_device.measuring import metrics_of
from benchmarks.on_device.packed import inputs_of, unpack
from benchmarks.on_device.train import Order, rates_of, write_line
from benchmarks.workers import Worker, serve
from keras_corrupt import models, tokenizers
from keras_corrupt.devices import flash_attention
from keras_corrupt.devices.many_updates import layout_of
from keras_corrupt.encoders.cost import training_flops
from keras_corrupt.models.one_state import why_dead
from keras_corrupt.training import AdamW

ON_DEVICE = {"KERAS_BACKEND": "jax", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
#: Time of training with its measurements, over the time of training.
MEASURING = 1.15


@dataclasses.dataclass
class Run:
    """One system: how it is made, and how it learns."""

    name: str
    model: str
    """Class of the model."""
    preset: str
    """Its sizes, before `objective` changes them."""
    objective: dict = dataclasses.field(default_factory=dict)
    """Further arguments of the model."""
    batch_size: int = 64
    learning_rate: float = 1e-3
    beta_2: float = 0.98
    bias_correction: bool = True
    decays: bool = True
    warm_up: float = 0.1
    """The part of the updates in which the rate rises."""
    warmup_steps: int = 0
    """What that comes to; found when the run's length is known."""
    embedding_scale: float = 1.0
    """What new token embeddings are multiplied by."""


@dataclasses.dataclass
class Settings:
    """What to train."""

    packed: tyro.conf.Positional[str]
    """The packed examples."""
    runs: str
    """The file of runs."""
    output: str
    """Directory of the results."""
    only: tuple[str, ...] = ()
    """Names of runs; all if not given."""
    seconds: float = 0.0
    """What all runs take together; 0: compile, so that JAX's cache has the programs."""
    flops: float = 0.0
    """FLOPs of each seed of a run, in the place of `seconds`."""
    seeds: int = 5
    chunk: int = 50
    """Updates in one program."""
    intervals: int = 20
    """Measurements of a run."""
    held_out: int = 1024
    """Held-out examples of each measurement."""
    dtype: str = "mixed_bfloat16"


# === In each run's process ===


class Programs:
    """The programs of a run, for all seeds at once, and their states before training.

    Each array of a state has a first axis of seeds.

    Args:
        run: The `Run`.
        settings: `Settings`.
        length: Tokens of an example.
        held_out: uint16 `[rows, length]`, the held-out examples.
    """

    def __init__(self, run, settings, length, held_out):
        self.run, self.settings = run, settings
        states = []
        for seed in range(settings.seeds):
            self.model, optimizer = make(run, settings, seed)
            parts = self.model._get_jax_state(
                trainable_variables=True,
                non_trainable_variables=True,
                optimizer_variables=True,
                metrics_variables=True,
            )
            states.append(jax.tree.map(np.array, list(map(list, parts))))
        self.layout = layout_of(self.model)
        places = {id(v): i for i, v in enumerate(optimizer.variables)}
        self.rate_at = places[id(optimizer._learning_rate)]
        self.norm_at = places[id(optimizer.gradient_norm)]
        self.first = jax.tree.map(lambda *arrays: np.stack(arrays), *states)
        self.zero_metrics = states[0][-1]
        shape = settings.chunk, settings.seeds, run.batch_size, length
        rows, rates = np.zeros(shape, "uint16"), np.zeros(settings.chunk, "float32")
        updates = jax.vmap(self._updates, in_axes=(0, 1, None))
        updates = jax.jit(updates, donate_argnums=0)
        self.train = updates.lower(self.first, rows, rates).compile()
        size = run.batch_size
        held_out = held_out[: len(held_out) // size * size].reshape(-1, size, length)
        self.held_out = jax.device_put(held_out)
        measure = jax.jit(jax.vmap(self._measured, in_axes=(0, 0, None)))
        self._measure = measure.lower(*self.first[:2], self.held_out).compile()

    def _updates(self, state, rows, rates):
        structure, optimizer = jax.tree.structure(state), self.model.optimizer

        def update(flat, now):
            rows, rate = now
            state = jax.tree.unflatten(structure, self.layout.unpack(flat))
            state[2][self.rate_at], state[3] = rate, self.zero_metrics
            logs, state = self.model.train_step(state, (self.inputs_of(rows),))
            seen = {"loss": logs["loss"], "gradient_norm": state[2][self.norm_at]}
            return self.layout.pack(jax.tree.leaves(state)), seen

        optimizer.flat = bool(optimizer.flat_variables)
        try:
            flat = self.layout.pack(jax.tree.leaves(state))
            flat, seen = jax.lax.scan(update, flat, (rows, rates))
        finally:
            optimizer.flat = False
        return jax.tree.unflatten(structure, self.layout.unpack(flat)), seen

    def measure(self, state):
        """Returns the metrics on the held-out examples, arrays of a number a seed."""
        return jax.tree.map(
            np.array, self._measure(state[0], self.first[1], self.held_out)
        )

    def _measured(self, trainable, others, held_out):
        state = trainable, others, self.zero_metrics
        return metrics_of(self.model, state, self.inputs_of(held_out))

    def inputs_of(self, rows):
        return inputs_of(rows, self.model.tokenizer.separate_id)

    def save(self, state, output):
        """Writes each seed's model to `output-SEED`, in half precision."""
        for seed in range(self.settings.seeds):
            for variable, values in zip(
                self.model.trainable_variables, state[0], strict=True
            ):
                variable.assign(values[seed])
            self.model.save_to_preset(f"{output}-{seed}", dtype="float16")


def make(run, settings, seed):
    """Returns a new model of a run, compiled, and its optimizer."""
    keras.utils.set_random_seed(seed)
    model = getattr(models, run.model).from_preset(
        run.preset,
        tokenizer=tokenizers.load(Path(settings.packed) / "tokenizer"),
        dtype=settings.dtype,
        seed=seed,
        **run.objective,
    )
    table = model.encoder.embeddings.token.embeddings
    table.assign(run.embedding_scale * table)
    optimizer = AdamW(
        1.0,
        beta_2=run.beta_2,
        bias_correction=run.bias_correction,
        global_clipnorm=1.0,
    )
    model.compile(optimizer, jit_compile=True)
    optimizer.build(model.trainable_variables)
    return model, optimizer


class Training:
    """A run under way.

    Args:
        run: The `Run`.
        settings: `Settings`.
    """

    def __init__(self, run, settings):
        self.run, self.settings = run, settings
        self.rows, held_out = unpack(settings.packed)
        held_out, length = held_out[: settings.held_out], self.rows.shape[1]
        self.programs = Programs(run, settings, length, held_out)
        seeds = range(settings.seeds)
        self.orders = [Order(len(self.rows), seed) for seed in seeds]
        model = self.programs.model
        texts = run.batch_size * model.masker.num_masks
        self.flops = training_flops(model.forward_flops(length), texts, 1)

    def chunk(self, state, step, steps):
        """Makes a chunk of updates; returns the state and what they measured, NumPy."""
        size, chunk = self.run.batch_size, self.settings.chunk
        taken = [order.take(step * size, chunk * size) for order in self.orders]
        rows = np.stack([self.rows[t].reshape(chunk, size, -1) for t in taken], axis=1)
        state, seen = self.programs.train(
            state, rows, rates_of(self.run, step, chunk, steps)
        )
        return state, jax.tree.map(np.asarray, seen)

    def speed(self):
        """Returns the seconds and the FLOPs of an update of a seed, as JSON."""
        state = jax.device_put(self.programs.first)
        state, _ = self.chunk(state, 0, steps=1)
        begun = time.monotonic()
        self.chunk(state, 0, steps=1)
        seconds = (time.monotonic() - begun) / self.settings.chunk
        return json.dumps({"seconds": seconds, "flops": self.flops})

    def go(self, steps):
        """Trains all seeds, and writes what was measured, and the models."""
        steps, chunk = int(steps), self.settings.chunk
        warm_up = max(1, round(self.run.warm_up * steps))
        self.run = dataclasses.replace(self.run, warmup_steps=warm_up)
        output = Path(self.settings.output, self.run.name)
        every = max(1, round(steps / chunk / self.settings.intervals)) * chunk
        state, begun = jax.device_put(self.programs.first), time.monotonic()
        training, seen = 0.0, []
        with Path(f"{output}.jsonl").open("w") as file:
            write_line(file, self.about(steps))
            for step in range(chunk, steps + 1, chunk):
                start = time.monotonic()
                state, logs = self.chunk(state, step - chunk, steps)
                training += time.monotonic() - start
                seen.append(logs)
                if not step % every or step == steps:
                    times = {"seconds": start - begun, "ms": 1000 * training / step}
                    write_line(file, {"step": step} | times | self.row(state, seen))
                    seen = []
        self.programs.save(state, output)
        return f"{steps:,} updates in {time.monotonic() - begun:.0f} s"

    def about(self, steps):
        """Returns what describes the run."""
        named = ("seeds", "held_out", "dtype")
        settings = {name: getattr(self.settings, name) for name in named}
        length = {"steps": steps, "flops": steps * self.flops}
        device = {"device": jax.devices()[0].device_kind}
        return vars(self.run) | settings | length | device

    def row(self, state, seen):
        """Returns what was measured, lists of a number a seed."""
        seen = jax.tree.map(lambda *x: np.concatenate(x, axis=1), *seen)
        metrics = self.programs.measure(state)
        aucs = metrics.get("rtd_auc", [None] * self.settings.seeds)
        dead = map(why_dead, metrics["token_spread"], aucs)
        row = {
            "train_loss": seen["loss"].mean(axis=1),
            "largest_gradient_norm": seen["gradient_norm"].max(axis=1),
            **metrics,
        }
        digits = {n: [float(f"{x:.5g}") for x in values] for n, values in row.items()}
        return digits | {"dead": [bool(why) for why in dead]}


def work(name, settings):
    """Compiles a run's programs, then does what it is told."""
    # JAX cannot call cuDNN's with one mask for all heads and an axis of seeds.
    flash_attention.is_available = lambda: False
    training = Training(chosen(settings)[name], settings)
    serve({"time": training.speed, "train": training.go})


def chosen(settings):
    """Returns name -> `Run` of those that settings name."""
    runs = [Run(**values) for values in json.loads(Path(settings.runs).read_text())]
    return {r.name: r for r in runs if not settings.only or r.name in settings.only}


# === Outside ===


def main(settings):
    """Trains what `settings` say."""
    if settings.seconds and settings.flops:
        raise SystemExit("Give `--seconds` or `--flops`, not both.")
    started = time.monotonic()

    def tell(name, answer):
        seconds = time.monotonic() - started
        print(
            f"{seconds:.0f} s: {name} {answer or workers[name].last_line}", flush=True
        )
        return answer

    output, module = Path(settings.output), "benchmarks.on_device.systems"
    output.mkdir(parents=True, exist_ok=True)
    workers = {
        name: Worker(module, [name, *sys.argv[1:]], output / f"{name}.log", ON_DEVICE)
        for name in chosen(settings)
    }
    ready = [name for name, worker in workers.items() if tell(name, worker.answer())]
    if (settings.seconds or settings.flops) and ready:
        train(ready, workers, settings, tell)
    for worker in workers.values():
        worker.end()
    if len(ready) < len(workers):
        raise SystemExit(f"Not all got ready; see {output}/*.log.")


def train(names, workers, settings, tell):
    """Trains runs whose programs are compiled, for as many FLOPs each."""
    timed = {name: tell(name, workers[name].ask("time")) for name in names}
    timed = {name: json.loads(answer) for name, answer in timed.items() if answer}
    all_seconds = sum(t["seconds"] / t["flops"] for t in timed.values())
    flops = settings.flops or settings.seconds / MEASURING / all_seconds
    for name, update in timed.items():
        chunks = max(1, int(flops / update["flops"] / settings.chunk))
        tell(name, workers[name].ask(f"train {chunks * settings.chunk}"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        _, _, name, *flags = sys.argv
        work(name, tyro.cli(Settings, args=flags, use_underscores=True))
    else:
        main(tyro.cli(Settings, description=__doc__, use_underscores=True))
