"""A run of Cross-View Training: from labelled files and plain text to a preset.

output/preset          the model, with the average of the weights: a class of `MODELS`,
                       or on a pretrained encoder a `TokenTagger`
output/predictions     what it predicts for every split but the training one
output/results.json    its metrics on these
output/metrics.csv, curves.png, checkpoints, tensorboard
"""

import contextlib
import hashlib
import json
from itertools import islice
from pathlib import Path

import keras
import numpy as np

from keras_corrupt.cross_view.model import check_views
from keras_corrupt.cross_view.parsing.parser import CrossViewParser
from keras_corrupt.cross_view.parsing.trees import spanning_tree_algorithm
from keras_corrupt.cross_view.presets import lstm_sizes
from keras_corrupt.cross_view.run.optimizer import optimizer_of
from keras_corrupt.cross_view.run.start import (
    start_class,
    start_from_vectors,
    start_of,
    words_with_vectors,
)
from keras_corrupt.cross_view.tagging.tagger import CrossViewTagger
from keras_corrupt.cross_view.tagging.token_tagger import CrossViewTokenTagger
from keras_corrupt.cross_view.tasks.translation import sacrebleu
from keras_corrupt.cross_view.text.batches import alternating
from keras_corrupt.cross_view.text.sentences import Sentences, unlabelled_sentences
from keras_corrupt.cross_view.text.vocabulary import WordVocabulary
from keras_corrupt.cross_view.translation.translator import CrossViewTranslator
from keras_corrupt.data import open_corpus
from keras_corrupt.data.corpus_files import describe_left_out
from keras_corrupt.downstream import TokenTagger, kept_results
from keras_corrupt.files.whole import write_whole
from keras_corrupt.tasks.task import describe_skipped, describe_unseen
from keras_corrupt.training import loop, report
from keras_corrupt.training.callbacks import read_metrics
from keras_corrupt.training.checkpoint import Checkpoints
from keras_corrupt.training.out_of_memory import explained_shortage
from keras_corrupt.training.run_directory import (
    record_examples,
    run_directory,
)
from keras_corrupt.training.runner import xla_pays

#: A task's kind -> the class and the name of its model on the thesis's BiLSTM.
MODELS = {
    "tagging": (CrossViewTagger, "tagger"),
    "dependency_parsing": (CrossViewParser, "parser"),
    "translation": (CrossViewTranslator, "translator"),
}
#: A task's kind -> function that raises an `ImportError` if a library is missing.
LIBRARIES = {
    "dependency_parsing": spanning_tree_algorithm,
    "translation": sacrebleu,
}


def train(task, config):
    """Trains a task's model, evaluates and saves it; continues what was begun.

    Args:
        task: A `TaggingTask`, `DependencyTask` or `TranslationTask`.
        config: A `CrossViewConfig`.

    Returns:
        The trained model, or `None` if the user stopped the run.

    Raises:
        ValueError: A setting or a file cannot work, or the output directory holds a
            run with other settings; nothing was changed.
        NonFiniteLossError: The loss became infinite or not a number.
        CheckpointError: A checkpoint could not be written or read.
        OutOfMemoryError: An update needs more memory than there is.
        ImportError: The task needs a library that is not installed.
    """
    config.check()
    check_task(task, config)
    from_class = start_class(task, config.preset)
    config = config.completed(pretrained=from_class is TokenTagger)
    keras.utils.set_random_seed(config.seed)
    # Before the text is read, which takes longer.
    start = start_of(from_class, task, config) if from_class else None
    given_words = words_with_vectors(config)
    output = Path(config.output)
    labelled = Sentences(task.splits["train"].examples)
    unlabelled = unlabelled_of(config)
    settings = {**config.as_dict(), "backend": keras.backend.backend()}
    files = (*config.FILES, *["preset"] * bool(from_class))
    with (
        run_directory(output, settings, uncompared=files),
        explained_shortage(config.too_little_memory),
    ):
        if start:
            identity = {"preset": kept_results.fingerprint(config.preset)}
        else:
            counts = labelled.counts() + unlabelled.counts()
            start = WordVocabulary.of(counts, config.vocabulary_size, more=given_words)
            words = fingerprint(start.words, start.characters)
            identity = {"vocabulary": words}
        fingerprints = {
            **identity,
            "text": text_fingerprint(unlabelled, [task]),
        }
        given = fingerprints | vectors_fingerprint(config)
        record_examples(output, given, "This command")
        model = build(task, start, config)
        kinds = batches_of(task, labelled, unlabelled, model, config)
        print(banner(task, kinds, model, config), flush=True)
        dev = next(name for name in task.splits if name.startswith("dev"))
        finished = loop.train(
            model,
            lambda step: alternating(kinds, step, first=config.labelled_first),
            lambda model: validate(model, task, dev, config.batch_size),
            Checkpoints(output / "checkpoints", data=fingerprint(fingerprints)),
            output=output,
            steps=config.steps,
            interval=config.interval,
            tokens_per_step=round(config.batch_size * mean_length(kinds)),
        )
        if not finished:
            return None
        use_average(model)
        finish(output, model, task)
        return model


def unlabelled_of(config):
    """Returns the `Sentences` of a run's text without labels."""
    if not config.unlabelled:
        return Sentences([])
    corpus = open_corpus(
        config.unlabelled,
        on_bad_bytes=config.on_bad_bytes,
        on_bad_rows=config.on_bad_rows,
    )
    found = unlabelled_sentences(corpus, config.in_words)
    sentences = Sentences(islice(found, config.max_unlabelled))
    sentences.left_out = describe_left_out(corpus.left_out, *corpus.skipped)
    return sentences


def vectors_fingerprint(config):
    """Returns what tells a run's word vectors from others, if it has some."""
    if not config.word_vectors:
        return {}
    return {"file of word vectors": kept_results.file_fingerprint(config.word_vectors)}


def text_fingerprint(unlabelled, tasks):
    """Returns a hash of all that a run reads."""
    ids = hashlib.sha256(unlabelled.ids.tobytes()).hexdigest()
    splits = [
        task.splits[name].fingerprint()
        for task in tasks
        for name in sorted(task.splits)
    ]
    return fingerprint(unlabelled.forms, ids, *splits)


def check_task(task, config):
    """Raises an error if the task cannot be learned so, before the text is read."""
    if task.kind not in MODELS:
        raise ValueError(
            f"`task` must be of the kind {' or '.join(MODELS)}; got {task.kind!r}."
        )
    model, _ = MODELS[task.kind]
    if config.unlabelled:
        check_views(config.views, model.known_views, model.baselines)
    if task.kind in LIBRARIES:
        LIBRARIES[task.kind]()


def fingerprint(*parts):
    """Returns the SHA-256 of JSON-ready parts."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def build(task, start, config):
    """Returns the model, compiled, its optimizer built.

    Args:
        task: The task.
        start: The `WordVocabulary` of a new model; or a model whose encoder is taken.
        config: The `CrossViewConfig`, complete.
    """
    model_class, name = MODELS[task.kind]
    arguments = {
        "views": config.views if config.unlabelled else (),
        "unlabelled_dropout": config.unlabelled_dropout,
        "label_smoothing": config.label_smoothing,
        "word_dropout": config.word_dropout,
        "vat_norm": config.vat_norm,
        "hard_targets": config.hard_targets,
        "confidence": config.confidence,
        "dtype": config.dtype,
        "name": name,
        **{field: getattr(config, field) for field in config.OF_MODEL},
    }
    if isinstance(start, TokenTagger):
        model = CrossViewTokenTagger(start, **arguments)
    else:
        arguments |= task.model_arguments
        arguments["labelled_dropout"] = config.labelled_dropout
        if isinstance(start, WordVocabulary):
            model = model_class.from_preset(
                config.preset,
                words=start.words,
                characters=start.characters,
                **lstm_sizes(config.lstm_size),
                **arguments,
            )
        else:
            model = model_class(
                start.vocabulary.words,
                start.vocabulary.characters,
                encoder=start.encoder,
                hidden_size=start.hidden_size,
                **arguments,
            )
        if config.word_vectors:
            start_from_vectors(model, config.word_vectors)
    if config.freeze_encoder:
        model.networks["encoder"].trainable = False
    model.modules_learn_labels = config.labelled_first > 0
    if config.mean_teacher:
        model.learn_from_average(config.mean_teacher)
    optimizer = optimizer_of(config, model, task.name)
    model.compile(optimizer, jit_compile=xla_pays())
    optimizer.build(model.trainable_variables)
    return model


def batches_of(task, labelled, unlabelled, model, config):
    """Returns the batches of labelled and, if there are any, unlabelled sentences."""
    size, seed = config.batch_size, config.seed
    labels = model.classes_of(task.splits["train"].labels)
    kinds = [model.batches(labelled, labels, size, seed)]
    if len(unlabelled):
        kinds.append(model.batches(unlabelled, None, size, seed))
    return kinds


def validate(model, task, name, batch_size):
    """Evaluates the average of the weights on a split.

    Returns:
        Dict of floats; names begin with `val_`. The loss is that of known labels.
    """
    with averaged(model):
        loss, metrics = evaluate(model, task, task.splits[name], batch_size)
    return {
        "val_loss": loss,
        "val_supervised_loss": loss,
        **{f"val_{metric}": value / 100.0 for metric, value in metrics.items()},
    }


def evaluate(model, task, split, batch_size):
    """Returns the mean loss of a split's labels, and the task's metrics."""
    labels = model.classes_of(split.labels)
    batches = model.batches(Sentences(split.examples), labels, batch_size)
    losses = model.evaluate(
        alternating([batches], count=len(batches)), return_dict=True, verbose=0
    )
    metrics = task.metrics(model.predictions(split.examples, batch_size), split)
    return losses["supervised_loss"], metrics


@contextlib.contextmanager
def averaged(model):
    """Gives the model the average of its weights for a while."""
    weights = [np.array(variable) for variable in model.trainable_variables]
    use_average(model)
    try:
        yield
    finally:
        for variable, value in zip(model.trainable_variables, weights, strict=True):
            variable.assign(value)


def use_average(model):
    """Gives the model the average of its weights, if its optimizer keeps one."""
    model.optimizer.finalize_variable_values(model.trainable_variables)
    for variable in model.trainable_variables:
        # Copies: on JAX the averages' memory would be given away with the weights'.
        variable.assign(np.array(variable))


def mean_length(kinds):
    """Returns the mean length of a sentence, over batches of all kinds."""
    return np.mean([kind.lengths.mean() for kind in kinds])


def banner(task, kinds, model, config):
    """Returns the lines that open a run."""
    skipped = "".join(
        f"; left out of {name}: {describe_skipped(split.skipped)}"
        for name, split in task.splits.items()
        if split.skipped
    )
    unseen = "".join(
        f"; {name} has {describe_unseen(labels)}"
        for name, labels in task.unseen.items()
        if labels
    )
    parameters = {name: net.count_params() for name, net in model.networks.items()}
    parameters["auxiliary"] = sum(m.count_params() for m in model.auxiliary)
    flops = config.batch_size * model.update_flops(round(mean_length(kinds)))
    lines = {
        "model": f"{type(model).__name__} {config.preset}, {len(model.labels)} labels",
        "backend": keras.backend.backend(),
        "parameters": ", ".join(f"{name} {n:,}" for name, n in parameters.items()),
        "labelled": f"{len(kinds[0].sentences):,} sentences{skipped}{unseen}",
        "unlabelled": f"{len(kinds[1].sentences):,} sentences, {len(model.views)} views"
        f"{kinds[1].sentences.left_out}"
        if len(kinds) > 1
        else "none: the primary module learns alone",
        "vocabulary": model.reads,
        "run": extent(config, flops),
        "output": config.output,
    }
    return "\n".join(f"{name + ':':12}{text}" for name, text in lines.items())


def extent(config, flops):
    """Returns what a run's banner says of its updates.

    Args:
        config: A `CrossViewConfig`.
        flops: FLOPs of an update, mean of both kinds of batches.
    """
    text = f"{config.steps:,} updates of {config.batch_size} {config.EXAMPLES}, "
    if config.unlabelled and config.labelled_first:
        text += f"the first {config.labelled_first:,} on labelled ones; "
        return text + f"{flops:.2e} FLOPs each from then on"
    return text + f"{flops:.2e} FLOPs each, {config.steps * flops:.2e} in all"


def finish(output, model, task):
    """Saves what a run leaves, and shows what it came to."""
    leave(output, model, task)
    draw(output)
    print(f"Curves: {output / 'curves.png'}   Model: {output / 'preset'}")


def draw(output):
    """Draws the curves of a run."""
    report.draw_curves(read_metrics(output / "metrics.csv"), output / "curves.png", {})


def leave(output, model, task, title=""):
    """Saves a preset, its predictions and metrics, and prints these, after a title."""
    model.save_to_preset(output / "preset")
    (output / "predictions").mkdir(exist_ok=True)
    results = {}
    for name, split in task.splits.items():
        if name == "train":
            continue
        predictions = model.predictions(split.examples)
        task.write_predictions(predictions, name, output / "predictions")
        if split.labels is not None:
            guess = task.metrics(task.guesses(split), split)[task.main_metric]
            results[name] = {**task.metrics(predictions, split), "guess": guess}
            failure = task.failure(predictions, split)
            if failure:
                print(f"This run failed on {name}: {failure}.")
    write_whole(output / "results.json", json.dumps(results, indent=2) + "\n")
    for name, metrics in results.items():
        values = ", ".join(f"{metric} {value:.2f}" for metric, value in metrics.items())
        print(f"{title}{name}: {values}")
