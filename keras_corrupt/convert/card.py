"""What a converted model says of itself, for people."""

import json
from pathlib import Path

from keras_corrupt.downstream.model import DownstreamModel
from keras_corrupt.models.registry import registered_name
from keras_corrupt.multitask.multi_task_model import MultiTaskModel
from keras_corrupt.training.callbacks import read_metrics

#: How each format's library opens a directory.
_USE = {
    "hugging_face": "transformers.AutoModel.from_pretrained(directory)",
    "keras_hub": "keras_hub.models.Backbone.from_preset(directory)",
    "model_garden": "tf.train.Checkpoint(encoder=encoder).read(directory + '/encoder')",
    "onnx": "onnxruntime.InferenceSession(directory + '/model.onnx')",
    "litert": "ai_edge_litert.interpreter.Interpreter(directory + '/model.tflite')",
}


def model_card(model, source, to):
    """Returns the text of a `README.md`.

    Args:
        model: The model.
        source: Its preset. The numbers of the run that made it are those beside it.
        to: The format.
    """
    encoder, system = model.encoder, registered_name(type(model))
    pretrained = getattr(model, "pretrained_by", None)
    header = ["---"]
    if to == "hugging_face":
        header += ["library_name: transformers"]
    header += ["tags:", "- keras_corrupt", f"- {system.lower()}", "---", ""]
    lines = [
        f"# {Path(source).resolve().name}",
        "",
        f"Made by `keras_corrupt.{_room(model)}.{system}`"
        + (f", on an encoder that {pretrained} pretrained." if pretrained else "."),
        "",
        f"The encoder has {encoder.num_layers} layers of width {encoder.hidden_size}, "
        f"{encoder.num_heads} heads, {encoder.max_length} positions, "
        f"{encoder.vocabulary_size:,} tokens; {encoder.count_params():,} parameters.",
        "",
        "```python",
        _USE[to],
        "```",
    ]
    if to == "hugging_face" and isinstance(model, MultiTaskModel):
        lines += ["", f"Each task has a directory: {', '.join(model.tasks)}."]
    if numbers := run_numbers(model, source):
        lines += ["", "Numbers of the run that made it:", "", "| | |", "|---|---:|"]
        lines += [f"| {name} | {value:.4g} |" for name, value in numbers.items()]
    return "\n".join([*header, *lines]) + "\n"


def run_numbers(model, source):
    """Returns name -> number of the run that made a preset, none if it is not known."""
    run = Path(source).parent
    if isinstance(model, DownstreamModel):
        scores = {}
        for path in sorted(run.glob("seed-*.json")):
            scores[path.stem] = json.loads(path.read_text())["score"]
        return scores
    rows = read_metrics(run / "metrics.csv")
    found = {n: v for n, v in rows[-1].items() if n.startswith("val")} if rows else {}
    return {**({"steps": rows[-1]["step"]} if rows else {}), **found}


def _room(model):
    return type(model).__module__.split(".")[1]
