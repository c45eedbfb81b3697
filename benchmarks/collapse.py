"""When and why a discriminator's token states become one vector.

    python -m keras_corrupt.data prepare --corpus CORPUS --output DATA --max_length 64
    python -m benchmarks.collapse train --data DATA --output RESULTS/a.jsonl
    python -m benchmarks.collapse train --data DATA --output RESULTS/b.jsonl \\
        --beta_2 0.98 --discriminator.num_layers 6 --seed 1
    python -m benchmarks.collapse draw RESULTS/*.jsonl --output RESULTS

`train` has the flags of a recipe, and measures a model every `--interval` updates. It
writes its settings to the first line of `--output`, then a line for each measurement:

- the metrics on the same held-out examples, corrupted in the same way;
- `spread`, the mean `token_spread` of the texts after each layer;
- `gradient_norms` of each weighted loss on one batch, by the part of the model: the
  weights that its networks share, and each network's own;
- `largest_update`, the largest change of a matrix in one update, over its norm.

The rate stays as it is after the warm-up: its decay is so slow that it does not count.
"""

import dataclasses
import json
import sys
import time
from pathlib import Path

import keras
import numpy as np
import tyro
from keras import ops

from benchmarks.collapse_drawing import Drawing, draw
from keras_corrupt.data import load_dataset_info
from keras_corrupt.devices.distribution import ONE_DEVICE
from keras_corrupt.encoders import TextModel
from keras_corrupt.encoders.token_spread import token_spread
from keras_corrupt.evaluation.gradients import GradientOf
from keras_corrupt.training import PretrainConfig, command_line
from keras_corrupt.training.batches import training_batches, validation_batches
from keras_corrupt.training.callbacks import validate, without_prefix
from keras_corrupt.training.compiling import compile_model
from keras_corrupt.training.report import first_examples
from keras_corrupt.training.starting import build

#: Steps of the schedule: many, so that the rate hardly falls.
SCHEDULE = 10_000_000


@dataclasses.dataclass(frozen=True)
class Study(PretrainConfig):
    """A run of a recipe that is measured."""

    last_step: int = 600
    """Updates after which it ends; `steps` is the length of the rate's schedule."""


def narrow():
    """ELECTRA-Small's recipe for a narrow encoder, at a high rate."""
    return Study(
        model="Electra",
        preset="small",
        output="collapse.jsonl",
        objective={
            "discriminator": {
                "hidden_size": 128,
                "intermediate_size": 512,
                "num_heads": 2,
            }
        },
        sequence_length=64,
        batch_size=64,
        steps=SCHEDULE,
        learning_rate=1e-3,
        warmup_steps=500,
        interval=50,
        validation_batches=8,
    )


# === Measuring ===


class LayerSpreads(TextModel):
    """Returns each text's spread after each layer of an encoder, `[batch, layers]`."""

    def __init__(self, encoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder = encoder

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs)
        x = self.encoder.embed(inputs)
        mask = self.encoder.attention_mask(inputs)
        bias = self.encoder.attention_bias(inputs)
        spreads = []
        for layer in self.encoder.layers_:
            x = layer(x, mask, bias)
            spreads.append(token_spread(x, inputs["padding_mask"]))
        return ops.stack(spreads, axis=1)


class LossGradients:
    """The gradient of each loss of a model, by the part of the model.

    Args:
        model: Another model of the same class and sizes, which computes them.
    """

    def __init__(self, model):
        self.terms = dict(model.loss_weights)
        # Variables: the step is compiled once for all losses.
        model.loss_weights = {
            name: keras.Variable(weight, trainable=False, name=name)
            for name, weight in self.terms.items()
        }
        self.model = model
        self.parts = [part_of(v, model) for v in model.trainable_variables]
        self.gradient = GradientOf(model)
        self.start = [(v, np.array(v)) for v in model.non_trainable_variables]

    def norms(self, weights, batch):
        """Returns loss -> part -> norm of the weighted loss's gradient.

        Args:
            weights: The trainable weights, arrays.
            batch: The model's inputs, corrupted in the same way each time.
        """
        return {term: self.norms_of(term, weights, batch) for term in self.terms}

    def norms_of(self, term, weights, batch):
        variables = self.model.trainable_variables
        for variable, value in (*zip(variables, weights, strict=True), *self.start):
            variable.assign(value)
        for name, weight in self.terms.items():
            self.model.loss_weights[name].assign(weight if name == term else 0.0)
        flat = self.gradient(batch)
        ends = np.cumsum([np.prod(v.shape) for v in variables])
        squares = dict.fromkeys(sorted(set(self.parts)), 0.0)
        for part, piece in zip(self.parts, np.split(flat, ends[:-1]), strict=True):
            squares[part] += float(np.sum(piece.astype("float64") ** 2))
        return {part: square**0.5 for part, square in squares.items()}


def part_of(variable, model):
    """Returns the name of the network that has a variable, or `"shared"`."""
    owners = [
        name
        for name, network in model.networks.items()
        if any(variable is v for v in network.variables)
    ]
    return owners[0] if len(owners) == 1 else "shared"


def largest_update(before, after):
    """Returns the largest norm of a matrix's change, over the norm of the matrix."""
    return max(
        float(np.linalg.norm(new - old) / np.linalg.norm(old))
        for old, new in zip(before, after, strict=True)
        if old.ndim > 1 and np.any(old)
    )


def arrays(model):
    return [np.array(variable) for variable in model.trainable_variables]


def train(config):
    """Trains as `config` says, and writes the measurements."""
    info = load_dataset_info(config.data)
    keras.utils.set_random_seed(config.seed)
    model = build(config, info)
    compile_model(model, config)
    held_out = validation_batches(info, config)
    batch = first_examples(held_out, config.batch_size)
    spreads = LayerSpreads(model.encoder)
    gradients = LossGradients(build(config, info))

    def row(step, started, before=None):
        measured = {
            "step": step,
            "seconds": round(time.monotonic() - started, 1),
            **without_prefix(validate(model, held_out)),
            "spread": spreads.predict_on_batch(batch).mean(axis=0).tolist(),
            "gradient_norms": gradients.norms(arrays(model), batch),
        }
        if before is not None:
            measured["largest_update"] = largest_update(before, arrays(model))
        return measured

    path, started = Path(config.output), time.monotonic()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        settings = {**config.as_dict(), "backend": keras.backend.backend()}
        write_line(file, {k: v for k, v in settings.items() if k != "data"})
        write_line(file, row(0, started))
        batches = iter(training_batches(info, config, 0, ONE_DEVICE, []))
        for step in range(1, config.last_step + 1):
            measured = step % config.interval == 0
            before = arrays(model) if measured else None
            inputs = {name: np.array(x) for name, x in next(batches).items()}
            model.train_on_batch(inputs)
            if measured:
                write_line(file, row(step, started, before))


def write_line(file, values):
    file.write(json.dumps(rounded(values)) + "\n")
    file.flush()


def rounded(value):
    """Returns a value with four digits of each float in it."""
    if isinstance(value, dict):
        return {name: rounded(x) for name, x in value.items()}
    if isinstance(value, list):
        return [rounded(x) for x in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def main():
    command, *flags = sys.argv[1:] or ["--help"]
    if command == "train":
        sys.argv = [sys.argv[0], *flags]
        command_line.main(narrow(), __doc__, run=lambda config: train(config) or 0)
    elif command == "draw":
        draw(tyro.cli(Drawing, args=flags, description=__doc__, use_underscores=True))
    else:
        print(__doc__)


if __name__ == "__main__":
    main()
