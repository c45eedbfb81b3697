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
import textwrap
import time
from pathlib import Path

import keras
import numpy as np
import tyro
from keras import ops

from keras_corrupt.data import load_dataset_info
from keras_corrupt.devices.distribution import ONE_DEVICE
from keras_corrupt.encoders import TextModel
from keras_corrupt.encoders.token_spread import token_spread
from keras_corrupt.evaluation.gradients import GradientOf
from keras_corrupt.objectives.one_state import why_dead
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


# === Drawing ===


@dataclasses.dataclass
class Drawing:
    """What to draw."""

    files: tyro.conf.Positional[tuple[str, ...]]
    """What `train` wrote."""
    output: str
    """Directory of the table and the plots."""


def read(path):
    """Returns the settings and the rows of a file."""
    settings, *rows = map(json.loads, Path(path).read_text().splitlines())
    return settings, rows


def labels(runs):
    """Returns what each run's settings have of their own, the seed left out."""
    flat = [named_once(flattened(settings)) for settings, _ in runs]
    names = sorted({name for settings in flat for name in settings} - {"seed"})
    differ = [
        name
        for name in names
        # A network without an option has its default; other fields came later.
        if len({str(s.get(name)) for s in flat if name in s or "." in name}) > 1
    ]
    return [", ".join(f"{n} {s[n]}" for n in differ if n in s) for s in flat]


def flattened(settings, prefix=""):
    flat = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= flattened(value, "" if name == "objective" else f"{name}.")
        elif name != "last_step":
            flat[prefix + name] = value
    return flat


def named_once(settings):
    """Returns settings with one `networks.NAME` for what both networks have alike."""
    flat = dict(settings)
    for name, value in settings.items():
        network, _, own = name.partition(".")
        if network == "discriminator" and settings.get(f"generator.{own}") == value:
            flat[f"networks.{own}"] = flat.pop(name)
            del flat[f"generator.{own}"]
    return flat


def table(runs, names):
    """Returns the last row of each run in Markdown, and when it was dead."""
    lines = [
        "| settings | seed | step | MLM loss | RTD loss | AUC | spread "
        "| largest update | dead at |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, (settings, rows) in sorted(
        zip(names, runs, strict=True), key=lambda pair: (pair[0], pair[1][0]["seed"])
    ):
        last = rows[-1]
        lines.append(
            f"| {name} | {settings['seed']} | {last['step']:,} "
            f"| {last['mlm_loss']:.2f} | {last['rtd_loss']:.4f} "
            f"| {last['rtd_auc']:.3f} | {last['spread'][-1]:.4f} "
            f"| {largest_until_warm(settings, rows):.3f} | {dead_at(settings, rows)} |"
        )
    return "\n".join(lines)


def largest_until_warm(settings, rows):
    """Returns the largest relative update that was measured during the warm-up."""
    warm = [row for row in rows if row["step"] <= settings["warmup_steps"]]
    return max(row.get("largest_update", 0.0) for row in warm)


def dead_at(settings, rows):
    """Returns the first step after the warm-up at which a run was dead, as text."""
    for row in rows:
        judged = row["step"] >= settings["warmup_steps"]
        if judged and why_dead(row["spread"][-1], row["rtd_auc"]):
            return f"{row['step']:,}"
    return ""


#: Title of a panel -> what it shows of a row, and whether on a logarithmic scale.
PANELS = {
    "replaced token detection AUC": (lambda row: row["rtd_auc"], False),
    "spread of the last layer": (lambda row: max(row["spread"][-1], 1e-6), True),
    "gradient norm: RTD, discriminator": (
        lambda row: row["gradient_norms"]["rtd"]["discriminator"],
        True,
    ),
    "gradient norm: RTD, shared": (
        lambda row: row["gradient_norms"]["rtd"]["shared"],
        True,
    ),
    "gradient norm: MLM, shared": (
        lambda row: row["gradient_norms"]["mlm"]["shared"],
        True,
    ),
    "largest relative update": (lambda row: row.get("largest_update", np.nan), True),
}


def draw_curves(runs, names, path):
    """Draws a curve for each run; runs that differ in the seed have one colour."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 8), layout="constrained")
    colors = {name: f"C{i}" for i, name in enumerate(dict.fromkeys(names))}
    for axis, (title, (of_row, logarithmic)) in zip(
        figure.subplots(2, 3).flat, PANELS.items(), strict=True
    ):
        drawn = set()
        for name, (_, rows) in zip(names, runs, strict=True):
            label = None if name in drawn else name
            steps = [row["step"] for row in rows]
            values = [of_row(row) for row in rows]
            axis.plot(steps, values, color=colors[name], alpha=0.7, label=label)
            drawn.add(name)
        axis.set(title=title, xlabel="step", yscale="log" if logarithmic else "linear")
        axis.grid(alpha=0.3)
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=2,
        fontsize="x-small",
    )
    figure.savefig(path, dpi=100)


def draw_layers(runs, names, path):
    """Draws the spread of each layer over the steps, a map for each run."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    columns = min(4, len(runs))
    rows = -(-len(runs) // columns)
    size = 3.5 * columns + 1, 2.5 * rows + 0.4
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat[len(runs) :]:
        axis.set_axis_off()
    for axis, name, (settings, measured) in zip(axes.flat, names, runs, strict=False):
        steps = [row["step"] for row in measured]
        spreads = np.array([row["spread"] for row in measured]).T
        layers = np.arange(1, len(spreads) + 1)
        image = axis.pcolormesh(
            steps, layers, np.maximum(spreads, 1e-4), norm=LogNorm(1e-4, 1)
        )
        title = textwrap.fill(f"{name}, seed {settings['seed']}", 50)
        axis.set_title(title, fontsize="x-small")
        axis.set(xlabel="step", ylabel="layer")
    figure.colorbar(image, ax=axes, label="spread")
    figure.savefig(path, dpi=90)


def draw(drawing):
    """Draws the runs and writes the table."""
    runs = [read(path) for path in drawing.files]
    names = labels(runs)
    output = Path(drawing.output)
    output.mkdir(parents=True, exist_ok=True)
    draw_curves(runs, names, output / "curves.png")
    draw_layers(runs, names, output / "layers.png")
    (output / "table.md").write_text(table(runs, names) + "\n")
    print(table(runs, names))


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
