"""Fine-tuned models as Hugging Face's ELECTRA with a task's head, in and out.

BERT's and ELECTRA's encoders are one architecture there, so that ELECTRA's classes hold
any encoder of ours.
"""

import functools
import json
from pathlib import Path

import numpy as np

from keras_corrupt.convert.weights import Weights, assign_weights, pytorch_format
from keras_corrupt.downstream import (
    MultiLabelClassifier,
    SentenceEncoder,
    SpanExtractor,
    TextClassifier,
    TokenTagger,
)

#: What their classes are named after -> task.
TASKS = {
    "SequenceClassification": "classifier",
    "TokenClassification": "tagger",
    "QuestionAnswering": "extractor",
}
#: Task -> the classes here that do it, first the one of other people's files.
_CLASSES = {
    "classifier": (TextClassifier, MultiLabelClassifier),
    "tagger": (TokenTagger,),
    "extractor": (SpanExtractor,),
}
#: Entry of `config.json` with a model's class and arguments here.
_OWN = "keras_corrupt"
#: The arguments that other entries and files have.
_THEIRS = {"encoder", "max_length", "name", "dtype"}
_TAGGER_HEAD = {"dense": "classifier"}
_EXTRACTOR_HEAD = {"start_and_end": "qa_outputs"}
#: A weight of a head that only one task has -> task.
_TASKS = {
    "classifier.dense.weight": "classifier",
    "classifier.weight": "tagger",
    "qa_outputs.weight": "extractor",
}


def task_of(config, names):
    """Returns the task of weights, `None` if they are a pretrained model's.

    Raises:
        ValueError: Their head is none that is here.
    """
    task = next((task for name, task in _TASKS.items() if name in names), None)
    architecture = (config.get("architectures") or [""])[0]
    if task == "tagger" and architecture == "BertForSequenceClassification":
        raise ValueError(
            "BertForSequenceClassification reads BERT's pooler, which TextClassifier "
            "has not. Convert the encoder that it was fine-tuned from."
        )
    return task


# === In ===


def read(task, config, encoder, tokenizer, weights, form):
    """Makes a fine-tuned model of ours.

    Args:
        task: What `task_of` returned.
        config: The `config.json`, a dict.
        encoder: Constructor arguments of `TransformerEncoder`.
        tokenizer: The tokenizer.
        weights: The `Weights`.
        form: The encoder's `Format`.

    Raises:
        ValueError: They do not fit, or there is no tokenizer.
    """
    model = new_model(task, config, encoder, tokenizer, weights)
    head = _EXTRACTOR_HEAD if task == "extractor" else _TAGGER_HEAD
    if task == "classifier":
        weights = one_layer(weights, model.head.dense.units)
    targets = (model.encoder, form), (model.head, pytorch_format(head))
    assign_weights(
        weights, *targets, unused=r".*position_ids|((bert|roberta)\.)?pooler\..*"
    )
    take_range(model)
    return model


def new_model(task, config, encoder, tokenizer, weights):
    """Makes a fine-tuned model of ours whose weights are new; see `read`."""
    if tokenizer is None:
        raise ValueError(f"{weights.path}: a fine-tuned model needs its tokenizer.")
    classes = {cls.__name__: cls for cls in _CLASSES[task]}
    arguments = {"class": next(iter(classes)), "dropout": encoder.get("dropout", 0.1)}
    own, problem = config.get(_OWN, {}), config.get("problem_type")
    if own.get("class") in classes:
        arguments |= own
    elif task == "extractor":
        arguments["head_type"] = "bert"
    elif task == "classifier" and problem == "multi_label_classification":
        arguments["class"] = "MultiLabelClassifier"
    elif task == "classifier" and problem == "regression":
        raise ValueError(
            f"{weights.path}: a number's range, which TextClassifier needs, is not in "
            "the files. Convert the encoder that it was fine-tuned from."
        )
    if arguments.get("score_range") is None and task != "extractor":
        arguments["labels"] = labels_of(config, arguments.get("labels"))
    arguments |= {
        "max_length": longest_text(weights.path, encoder["max_length"]),
        "name": task,
        "dtype": "float32",
    }
    cls = classes[arguments.pop("class")]
    try:
        return cls(encoder, tokenizer, **arguments)
    except TypeError as error:
        raise ValueError(
            f"config.json: `{_OWN}` is {own}: {error}. Take the entry out."
        ) from error


def take_range(model):
    """Lets the head tell a number's place in its range, as heads do here.

    Args:
        model: A fine-tuned model with the head of their files, which tells the number.
    """
    if getattr(model, "score_range", None):
        low, high = model.score_range
        kernel, bias = model.head.get_weights()
        model.head.set_weights([kernel / (high - low), (bias - low) / (high - low)])


def longest_text(path, longest):
    """Returns how many tokens a model reads, as its tokenizer's file says.

    Args:
        path: The file of the model's weights, which stands beside the tokenizer's.
        longest: The most that its encoder reads.
    """
    path = Path(path).with_name("tokenizer_config.json")
    limits = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return min(limits.get("model_max_length") or longest, longest)


def labels_of(config, own=None):
    """Returns the labels in the order of their numbers.

    Args:
        config: The `config.json`, a dict, which has their names.
        own: Labels that are kept if they have these names, such as numbers.
    """
    names = config.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    try:
        labels = [str(names[str(i)]) for i in range(len(names))]
    except (KeyError, TypeError) as error:
        raise ValueError(f"config.json: id2label is {names!r}.") from error
    return own if list(map(str, own or ())) == labels else labels


# === Out ===


def head_of(model):
    """Returns a fine-tuned model's head, as ELECTRA's classes have it.

    Args:
        model: A `DownstreamModel`.

    Returns:
        The name of their class, entries of `config.json`, and name -> array.

    Raises:
        ValueError: They have no such head.
    """
    if isinstance(model, SentenceEncoder):
        return "ElectraModel", {}, {}
    task, entries, kernel, bias = linear_head_of(model)
    arrays = {
        "SequenceClassification": two_layers,
        "TokenClassification": functools.partial(linear, "classifier"),
        "QuestionAnswering": functools.partial(linear, "qa_outputs"),
    }[task](kernel, bias)
    return f"ElectraFor{task}", entries, arrays


def linear_head_of(model):
    """Returns a fine-tuned model's head, one linear layer.

    Args:
        model: A `DownstreamModel`.

    Returns:
        A key of `TASKS`, entries of `config.json`, kernel and bias.

    Raises:
        ValueError: They have no such head.
    """
    entries, low, high = {}, 0, 1
    match model:
        case TextClassifier(labels=None, score_activation=None):
            task, low, high = "SequenceClassification", *model.score_range
            entries = {"problem_type": "regression", **label_entries(["score"])}
        case TextClassifier(score_activation=None) | MultiLabelClassifier():
            task = "SequenceClassification"
            number = "multi" if isinstance(model, MultiLabelClassifier) else "single"
            entries = {"problem_type": f"{number}_label_classification"}
            entries |= label_entries(model.labels)
        case TokenTagger():
            task, entries = "TokenClassification", label_entries(model.labels)
        case SpanExtractor(head_type="bert"):
            task = "QuestionAnswering"
        case _:
            raise ValueError(
                f"Hugging Face's classes have no counterpart of {_described(model)}."
            )
    own = {n: v for n, v in model.get_config().items() if n not in _THEIRS}
    cls = next(cls for cls in _CLASSES[TASKS[task]] if isinstance(model, cls))
    entries[_OWN] = {"class": cls.__name__, **own}
    kernel, bias = map(np.asarray, model.head.get_weights())
    return task, entries, (high - low) * kernel, (high - low) * bias + low


def _described(model):
    """Describes a head that their classes have not, with a remedy if there is one."""
    if isinstance(model, TextClassifier):
        return f"a number's {model.score_activation}; fine-tune without it"
    if isinstance(model, SpanExtractor):
        return 'XLNet\'s head; fine-tune with head_type="bert"'
    return f"the head of a {type(model).__name__}"


def check_heads(model, head_of):
    """Checks that they have the heads of all tasks.

    Args:
        model: A `MultiTaskModel`.
        head_of: A function of a task's model that makes its head theirs.

    Raises:
        ValueError: One has no counterpart; the task is named.
    """
    for task, part in zip(model.tasks, model.parts, strict=True):
        try:
            head_of(part)
        except ValueError as error:
            raise ValueError(f"The task {task}: {error}") from error


def label_entries(labels):
    """Returns what `config.json` says of labels."""
    names = {str(i): label for i, label in enumerate(labels)}
    return {"id2label": names, "label2id": {v: int(k) for k, v in names.items()}}


def two_layers(kernel, bias):
    """Writes one linear layer as the two, with gelu between them, that are theirs.

    The first has each output and its negative, and gelu(x) - gelu(-x) is x.

    Args:
        kernel: `[hidden, labels]`.
        bias: `[labels]`.

    Returns:
        Name -> array.

    Raises:
        ValueError: There are more labels than half of the hidden size.
    """
    hidden, labels = kernel.shape
    if 2 * labels > hidden:
        raise ValueError(
            f"{labels} labels are more than half of hidden_size={hidden}: the two "
            "layers of Hugging Face's head cannot hold the one that is here."
        )
    inner = np.zeros((hidden, hidden), "float32")
    inner_bias = np.zeros(hidden, "float32")
    outer = np.zeros((labels, hidden), "float32")
    inner[: 2 * labels] = np.concatenate([kernel.T, -kernel.T])
    inner_bias[: 2 * labels] = np.concatenate([bias, -bias])
    outer[:, :labels] = np.eye(labels)
    outer[:, labels : 2 * labels] = -np.eye(labels)
    return {
        "classifier.dense.weight": inner,
        "classifier.dense.bias": inner_bias,
        "classifier.out_proj.weight": outer,
        "classifier.out_proj.bias": np.zeros(labels, "float32"),
    }


def one_layer(weights, labels):
    """Returns weights whose head is one layer again, if `two_layers` wrote it.

    Raises:
        ValueError: It is another head.
    """
    names = [n for n in weights.shapes if n.startswith("classifier.")]
    size = sum(int(np.prod(weights.shapes[name], dtype=object)) for name in names)
    if size > 1 << 28:
        raise ValueError(f"{weights.path}: its classifier has {size:,} numbers.")
    head = {name: np.asarray(weights.read(name), "float32") for name in names}
    try:
        kernel = head["classifier.dense.weight"][:labels].T
        bias = head["classifier.dense.bias"][:labels]
        expected = two_layers(kernel, bias)
        same = head.keys() == expected.keys()
        same = same and all(np.array_equal(head[n], expected[n]) for n in head)
    except (KeyError, ValueError, IndexError):
        same = False
    if not same:
        raise ValueError(
            f"{weights.path}: its classifier has a hidden layer, which TextClassifier "
            "has not. Convert the encoder that it was fine-tuned from."
        )
    arrays = {"classifier.weight": kernel.T, "classifier.bias": bias}
    shapes = {n: s for n, s in weights.shapes.items() if n not in head}
    shapes |= {name: array.shape for name, array in arrays.items()}

    def read(name):
        return arrays[name] if name in arrays else weights.read(name)

    return Weights(weights.path, shapes, read)


def linear(name, kernel, bias):
    """Returns a linear layer under a name of theirs: name -> array."""
    return {f"{name}.weight": np.ascontiguousarray(kernel.T), f"{name}.bias": bias}
