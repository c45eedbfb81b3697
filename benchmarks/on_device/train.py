"""Pretrains ELECTRA-Small on one accelerator, many updates in one program.

    export KERAS_BACKEND=jax
    python -m benchmarks.on_device.train PACKED --runs RUNS.json --output RESULTS
    python -m benchmarks.on_device.draw RESULTS/*.jsonl --output RESULTS

`benchmarks.on_device.packed` made `PACKED`. The file of runs has a list of `Run`s. All
runs share one compiled program, which takes rate, warm-up and beta_2 as data. A run
writes its settings and a line each `--interval` updates to `RESULTS/NAME.jsonl`, and
its model to `RESULTS/NAME`.

It needs JAX, Keras and no TensorFlow.
"""

import dataclasses
import functools
import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import keras
import numpy as np
import tyro

from benchmarks.on_device.measuring import metrics_of
from benchmarks.on_device.packed import inputs_of, unpack
from keras_corrupt import tokenizers
from keras_corrupt.models import Electra
from keras_corrupt.models.one_state import why_dead
from keras_corrupt.training.collapse import FIRST_JUDGED
from keras_corrupt.training.optimizer import AdamW

#: Chunks by which a run finds how many fit into its time.
TIMED = 3
#: Time of training with its measurements, over the time of training.
MEASURING = 1.04
#: Intervals after which a model is saved, so that a run that is cut short leaves one.
SAVED = 10


@dataclasses.dataclass
class Run:
    """One of the runs."""

    name: str
    steps: int = 0
    """Updates, a multiple of a chunk's; 0: as many as `seconds` allow."""
    seconds: float = 0.0
    """Time from the start of the command to the end of the run."""
    learning_rate: float = 5e-4
    warmup_steps: int = 2500
    beta_2: float = 0.98
    decays: bool = True
    """Whether the rate falls to 0 after the warm-up, linearly."""
    recoveries: int = 0
    """How often a model that died goes back to where it lived, with half the rate."""
    save: bool = False
    """Whether its model is saved."""
    start: str = ""
    """A preset of the same sizes whose weights it starts from."""


@dataclasses.dataclass
class Settings:
    """What to train."""

    packed: tyro.conf.Positional[str]
    """The packed examples."""
    runs: str
    """The file of runs."""
    output: str
    """Directory of the results."""
    preset: str = "small"
    """Architecture of the model."""
    dropout: float = 0.0
    """Dropout rate, of attention's weights, too."""
    batch_size: int = 128
    chunk: int = 100
    """Updates in one program."""
    interval: int = 500
    """Updates between two measurements."""
    dtype: str = "mixed_bfloat16"
    seed: int = 0


class Programs:
    """A model's compiled programs, and its state before training.

    Args:
        settings: `Settings`.
        train: uint16 `[rows, length]`, the training examples.
        held_out: Likewise, the held-out ones.
    """

    def __init__(self, settings, train, held_out):
        keras.utils.set_random_seed(settings.seed)
        size, length = settings.batch_size, train.shape[1]
        chunk = settings.chunk
        dropouts = dict.fromkeys(("dropout", "attention_dropout"), settings.dropout)
        self.model = Electra.from_preset(
            settings.preset,
            tokenizer=tokenizers.load(Path(settings.packed) / "tokenizer"),
            dtype=settings.dtype,
            seed=settings.seed,
            discriminator={"max_length": length, **dropouts},
            generator=dropouts,
        )
        self.optimizer = AdamW(1.0, bias_correction=False, global_clipnorm=1.0)
        self.model.compile(self.optimizer, jit_compile=True)
        self.optimizer.build(self.model.trainable_variables)
        places = {id(v): i for i, v in enumerate(self.optimizer.variables)}
        self.rate_at = places[id(self.optimizer._learning_rate)]
        self.norm_at = places[id(self.optimizer.gradient_norm)]
        parts = self.model._get_jax_state(
            trainable_variables=True,
            non_trainable_variables=True,
            optimizer_variables=True,
            metrics_variables=True,
        )
        *self.first, self.zero_metrics = jax.tree.map(np.array, list(map(list, parts)))
        self.train_rows = train
        held_out = held_out[: len(held_out) // size * size].reshape(-1, size, length)
        self.held_out = jax.device_put(held_out)
        rows = train[: chunk * size].reshape(chunk, size, length)
        updates = jax.jit(self._updates, donate_argnums=0)
        self._train = updates.lower(
            self.first, rows, np.zeros(chunk, "float32"), np.float32(0)
        ).compile()
        self._measure = (
            jax.jit(self._measured).lower(self.first[0], self.held_out).compile()
        )

    def train(self, state, rows, rates, beta_2):
        """Makes a chunk of updates; gives the memory of `state` away.

        Args:
            state: Lists of arrays: trainable, other and the optimizer's variables.
            rows: uint16 `[chunk, batch, length]`, the examples of each update.
            rates: float32 `[chunk]`, the learning rates.
            beta_2: The optimizer's.

        Returns:
            The new state, and the losses and gradient's norms of the updates.
        """
        return self._train(state, rows, rates, np.float32(beta_2))

    def _updates(self, state, rows, rates, beta_2):
        def update(state, now):
            rows, rate = now
            trainable, others, optimizer = state
            optimizer = [*optimizer]
            optimizer[self.rate_at] = rate
            state = trainable, others, optimizer, self.zero_metrics
            logs, (*state, _) = self.model.train_step(state, (self.inputs_of(rows),))
            return [*map(list, state)], {
                "loss": logs["loss"],
                "gradient_norm": state[2][self.norm_at],
            }

        fixed, self.optimizer.beta_2 = self.optimizer.beta_2, beta_2
        try:
            return jax.lax.scan(update, state, (rows, rates))
        finally:
            self.optimizer.beta_2 = fixed

    def measure(self, state):
        """Returns the metrics on the held-out examples, masked as at the start."""
        return jax.tree.map(float, self._measure(state[0], self.held_out))

    def _measured(self, trainable, held_out):
        state = trainable, self.first[1], self.zero_metrics
        return metrics_of(self.model, state, self.inputs_of(held_out))

    def inputs_of(self, rows):
        return inputs_of(rows, self.model.tokenizer.separate_id)

    def of_preset(self, directory):
        """Returns the state before training, with the weights of a preset."""
        trained = Electra.from_preset(directory).trainable_variables
        return [[np.array(variable) for variable in trained], *self.first[1:]]

    def save(self, state, directory):
        """Writes the model with a state's weights, in half precision."""
        for variable, value in zip(
            self.model.trainable_variables, state[0], strict=True
        ):
            variable.assign(jnp.copy(value))
        self.model.save_to_preset(directory, dtype="float16")


class Order:
    """The training examples' order, another in each epoch.

    Args:
        rows: Number of examples.
        seed: Seed of the order.
    """

    def __init__(self, rows, seed):
        self.rows, self.seed = rows, seed
        self._epoch = functools.lru_cache(2)(self._epoch)

    def _epoch(self, number):
        return np.random.default_rng((self.seed, number)).permutation(self.rows)

    def take(self, start, number):
        """Returns the examples from one on, int32 `[number]`."""
        places = np.arange(start, start + number)
        epochs, places = np.divmod(places, self.rows)
        examples = np.empty(number, "int32")
        for epoch in np.unique(epochs):
            chosen = epochs == epoch
            examples[chosen] = self._epoch(int(epoch))[places[chosen]]
        return examples


def rates_of(run, step, number, steps):
    """Returns the rates of some updates after `step`: see `WarmupLinearDecay`."""
    done = np.arange(step, step + number)
    rising = np.minimum(1.0, done / max(run.warmup_steps, 1))
    falling = np.maximum(0.0, 1.0 - done / steps) if run.decays else 1.0
    return (run.learning_rate * rising * falling).astype("float32")


class Training:
    """A run under way.

    Args:
        run: The `Run`.
        settings: `Settings`.
        programs: `Programs`.
        started: `time.monotonic` when the command began.
    """

    def __init__(self, run, settings, programs, started):
        self.run, self.settings, self.programs = run, settings, programs
        self.started = started
        self.order = Order(len(programs.train_rows), settings.seed)
        self.directory = Path(settings.output, run.name)
        self.steps = run.steps or self.steps_in_time()

    def steps_in_time(self):
        """Returns how many updates end in the time that the run has left."""
        state = jax.device_put(self.programs.first)
        begun = time.monotonic()
        for _ in range(TIMED):
            state, _ = self.chunk(state, 0, total=1)
        seconds = (time.monotonic() - begun) / TIMED
        left = self.run.seconds - (time.monotonic() - self.started)
        return int(left / seconds / MEASURING) * self.settings.chunk

    def chunk(self, state, step, total):
        """Makes a chunk of updates; returns the state and what they measured, NumPy."""
        size, chunk = self.settings.batch_size, self.settings.chunk
        train = self.programs.train_rows
        rows = train[self.order.take(step * size, chunk * size)]
        state, logs = self.programs.train(
            state,
            rows.reshape(chunk, size, -1),
            rates_of(self.run, step, chunk, total),
            self.run.beta_2,
        )
        return state, jax.tree.map(np.asarray, logs)

    def go(self):
        """Trains to the end, or until the model has died too often."""
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        with Path(f"{self.directory}.jsonl").open("w") as file:
            device = {"device": jax.devices()[0].device_kind, "steps": self.steps}
            write_line(file, vars(self.settings) | vars(self.run) | device)
            state = self.programs.first
            if self.run.start:
                state = self.programs.of_preset(self.run.start)
            state, step, recovered = jax.device_put(state), 0, 0
            alive, alive_at = copied(state), 0
            while step < self.steps:
                state, row = self.interval(state, step)
                write_line(file, row)
                if not row["dead"]:
                    alive, alive_at = copied(state), row["step"]
                elif recovered < self.run.recoveries:
                    recovered += 1
                    rate = self.run.learning_rate / 2
                    self.run = dataclasses.replace(self.run, learning_rate=rate)
                    state = copied(alive)
                else:
                    break
                step = alive_at
                if self.run.save and step // self.settings.interval % SAVED == 0:
                    self.programs.save(alive, self.directory)
        if self.run.save:
            self.programs.save(alive, self.directory)

    def interval(self, state, step):
        """Trains an interval; returns the state and a row of measurements."""
        begun, all_logs = time.monotonic(), []
        end = min(step + self.settings.interval, self.steps)
        for first in range(step, end, self.settings.chunk):
            state, logs = self.chunk(state, first, self.steps)
            all_logs.append(logs)
        seconds = time.monotonic() - begun
        logs = jax.tree.map(lambda *x: np.concatenate(x), *all_logs)
        step += len(logs["loss"])
        measured = self.programs.measure(state)
        judged = step >= max(self.run.warmup_steps, FIRST_JUDGED)
        why = why_dead(measured["token_spread"], measured["rtd_auc"])
        return state, {
            "step": step,
            "seconds": time.monotonic() - self.started,
            "ms": 1000 * seconds / len(logs["loss"]),
            "peak_rate": self.run.learning_rate,
            "train_loss": float(logs["loss"].mean()),
            "gradient_norm": float(np.median(logs["gradient_norm"])),
            "largest_gradient_norm": float(logs["gradient_norm"].max()),
            **measured,
            "dead": why if judged else "",
        }


def copied(state):
    """Returns a copy that training does not give away."""
    return jax.tree.map(jnp.copy, state)


def write_line(file, values):
    """Writes values as a line of JSON, floats with four digits."""
    for name, value in values.items():
        if isinstance(value, float):
            values[name] = float(f"{value:.4g}")
    file.write(json.dumps(values) + "\n")
    file.flush()
    print(values, flush=True)


def main(settings):
    """Trains what `settings` say."""
    started = time.monotonic()
    runs = [Run(**values) for values in json.loads(Path(settings.runs).read_text())]
    programs = Programs(settings, *unpack(settings.packed))
    print(f"compiled after {time.monotonic() - started:.0f} s", flush=True)
    for run in runs:
        Training(run, settings, programs, started).go()


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
