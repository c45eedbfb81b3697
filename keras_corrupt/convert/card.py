"""What a converted model says of itself, for people."""

import json
import re

from keras_corrupt.convert.files import read_json
from keras_corrupt.downstream import SentenceEncoder
from keras_corrupt.downstream.model import DownstreamModel
from keras_corrupt.encoders.text_model import TextModel
from keras_corrupt.encoders.transformer import TransformerEncoder
from keras_corrupt.multitask.multi_task_model import MultiTaskModel
from keras_corrupt.presets.registry import registered_name
from keras_corrupt.tokenizers.reading import read_text
from keras_corrupt.training.callbacks import read_metrics

_MAX_BYTES = 1 << 20

#: How each format's library opens a directory.
_USE = {
    "keras_corrupt": "keras_corrupt.models.load_preset(directory)",
    "keras_hub": "keras_hub.models.Backbone.from_preset(directory)",
    "model_garden": "tf.train.Checkpoint(encoder=encoder).read(directory + '/encoder')",
    "onnx": "onnxruntime.InferenceSession(directory + '/model.onnx')",
    "litert": "ai_edge_litert.interpreter.Interpreter(directory + '/model.tflite')",
}


#: The end of a class of Hugging Face's -> its pipeline.
_PIPELINES = {
    "ForMaskedLM": "fill-mask",
    "ForSequenceClassification": "text-classification",
    "ForTokenClassification": "token-classification",
    "ForQuestionAnswering": "question-answering",
}


def model_card(model, source, to, name, written=None):
    """Returns the text of a `README.md`.

    Args:
        model: The model.
        source: Where it was read, a `Path`. The numbers of the run that made it are
            those beside it; a `README.md` in it is taken over.
        to: The format.
        name: What it is called now.
        written: The directory of what was written, a `Path`; for Hugging Face's format.
    """
    system = registered_name(type(model))
    pretrained = getattr(model, "pretrained_by", None)
    header, use = ["---"], _USE.get(to)
    if to == "hugging_face" and isinstance(model, SentenceEncoder):
        header += ["library_name: sentence-transformers"]
        use = "sentence_transformers.SentenceTransformer(directory)"
    elif to == "hugging_face":
        header += ["library_name: transformers"]
        folder = next(iter(model.tasks)) if isinstance(model, MultiTaskModel) else ""
        kind = read_json(written / folder / "config.json")["architectures"][0]
        place = f'directory + "/{folder}"' if folder else "directory"
        use = f"transformers.{kind}.from_pretrained({place})"
        tags = [t for end, t in _PIPELINES.items() if kind.endswith(end) and not folder]
        header += [f"pipeline_tag: {tag}" for tag in tags]
    elif to == "keras_corrupt" and not isinstance(model, TextModel):
        use = f"{_room(model)}.{system}.from_preset(directory)"
    header += ["tags:", "- keras_corrupt", f"- {system.lower()}", "---", ""]
    lines = [
        f"# {name}",
        "",
        f"Made by `{_room(model)}.{system}`"
        + (f", on an encoder that {pretrained} pretrained." if pretrained else "."),
        "",
        _sizes(model),
        "",
        "```python",
        use,
        "```",
    ]
    if to == "hugging_face" and isinstance(model, MultiTaskModel):
        lines += ["", f"Each task has a directory: {', '.join(model.tasks)}."]
    if numbers := run_numbers(model, source):
        lines += ["", "Numbers of the run that made it:", "", "| | |", "|---|---:|"]
        lines += [f"| {name} | {value:.4g} |" for name, value in numbers.items()]
    if (source / "README.md").is_file():
        before = read_text(source / "README.md", _MAX_BYTES)
        before = re.sub(r"\A---\n.*?\n---\n", "", before, flags=re.DOTALL)
        lines += ["", "Its card before it was converted:", "", before.strip()]
    return "\n".join([*header, *lines]) + "\n"


def run_numbers(model, source):
    """Returns name -> number of the run that made a preset, none if it is not known."""
    run = source.parent
    if isinstance(model, DownstreamModel):
        scores = {}
        for path in sorted(run.glob("seed-*.json")):
            scores[path.stem] = json.loads(path.read_text())["score"]
        return scores
    rows = read_metrics(run / "metrics.csv")
    metrics = {n: v for n, v in rows[-1].items() if n.startswith("val")} if rows else {}
    return {**({"steps": rows[-1]["step"]} if rows else {}), **metrics}


def _room(model):
    module = type(model).__module__
    package, *rooms = module.split(".")
    return f"{package}.{rooms[0]}" if package == "keras_corrupt" else module


def _sizes(model):
    encoder = getattr(model, "encoder", None)
    if not isinstance(encoder, TransformerEncoder):
        return f"The model has {model.count_params():,} parameters."
    return (
        f"The encoder has {encoder.num_layers} layers of width {encoder.hidden_size}, "
        f"{encoder.num_heads} heads, {encoder.max_length} positions, "
        f"{encoder.vocabulary_size:,} tokens; {encoder.count_params():,} parameters."
    )
