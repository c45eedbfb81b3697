"""What a run on sentences learns: one task's labels, and text without labels."""

import hashlib
import json
from itertools import islice

import numpy as np

from keras_corrupt.cross_view.parsing.parser import CrossViewParser
from keras_corrupt.cross_view.parsing.trees import spanning_tree_algorithm
from keras_corrupt.cross_view.presets import lstm_sizes
from keras_corrupt.cross_view.run.optimizer import compiled, use_average
from keras_corrupt.cross_view.run.start import (
    start_class,
    start_from_vectors,
    start_of,
    words_with_vectors,
)
from keras_corrupt.cross_view.tagging.tagger import CrossViewTagger
from keras_corrupt.cross_view.tagging.token_tagger import CrossViewTokenTagger
from keras_corrupt.cross_view.tasks.translation import sacrebleu
from keras_corrupt.cross_view.text.sentences import Sentences, unlabelled_sentences
from keras_corrupt.cross_view.text.vocabulary import WordVocabulary
from keras_corrupt.cross_view.translation.translator import CrossViewTranslator
from keras_corrupt.cross_view.views import check_views
from keras_corrupt.data import open_corpus
from keras_corrupt.data.corpus_files import Omissions, describe_omissions
from keras_corrupt.downstream import TokenTagger, kept_results
from keras_corrupt.tasks.task import describe_skipped, describe_unseen

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


class SentenceSetup:
    """A run on sentences: its task, the model that it starts from, its batches.

    Args:
        task: A `TaggingTask`, `DependencyTask` or `TranslationTask`.
        config: A `CrossViewConfig`.

    Attributes:
        config: The same, complete.
        fingerprints: What tells what the run reads from other text, by names.
        uncompared: Names of settings that may differ where fingerprints do not.

    Raises:
        ValueError: The task cannot be learned so.
    """

    use_average = staticmethod(use_average)

    def __init__(self, task, config):
        check_task(task, config)
        from_class = start_class(task, config.preset)
        self.config = config.completed(pretrained=from_class is TokenTagger)
        self.uncompared = (*config.FILES, *["preset"] * bool(from_class))
        # Before the text is read, which takes longer.
        start = start_of(from_class, task, self.config) if from_class else None
        self.read([task], start)

    def read(self, tasks, start=None):
        """Reads the text, and without a start makes a vocabulary of it."""
        given_words = words_with_vectors(self.config)
        self.tasks, self.start = tasks, start
        self.labelled = [Sentences(task.splits["train"].examples) for task in tasks]
        self.unlabelled = unlabelled_of(self.config)
        if start:
            identity = {"preset": kept_results.fingerprint(self.config.preset)}
        else:
            counts = (part.counts() for part in self.labelled)
            self.start = start = WordVocabulary.of(
                sum(counts, self.unlabelled.counts()),
                self.config.vocabulary_size,
                more=given_words,
            )
            identity = {"vocabulary": fingerprint(start.words, start.characters)}
        vectors = self.config.word_vectors
        if vectors:
            identity["file of word vectors"] = kept_results.file_fingerprint(vectors)
        ids = hashlib.sha256(self.unlabelled.ids.tobytes()).hexdigest()
        splits = [
            task.splits[name].fingerprint()
            for task in tasks
            for name in sorted(task.splits)
        ]
        text = fingerprint(self.unlabelled.forms, ids, *splits)
        self.fingerprints = {**identity, "text": text}

    def build(self, checkpoints):
        """Returns the model, compiled, its optimizer built.

        Args:
            checkpoints: Checkpoints of the run.
        """
        return build(self.tasks[0], self.start, self.config)

    def batches(self, model):
        """Returns the batches of labelled and, if any, unlabelled sentences."""
        size, seed = self.config.batch_size, self.config.seed
        labels = model.classes_of(self.tasks[0].splits["train"].labels)
        kinds = [model.batches(self.labelled[0], labels, size, seed)]
        if len(self.unlabelled):
            kinds.append(model.batches(self.unlabelled, None, size, seed))
        return kinds

    def parts(self, model):
        """Returns each task with its model."""
        return [(self.tasks[0], model)]

    def length(self, kinds):
        """Returns the mean length of a sentence, over batches of all kinds."""
        return np.mean([kind.lengths.mean() for kind in kinds])

    def described(self, model, kinds):
        """Returns lines for the run's banner."""
        (task,) = self.tasks
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
        return {
            "labelled": f"{len(kinds[0].sentences):,} sentences{skipped}{unseen}",
            "unlabelled": f"{len(kinds[1].sentences):,} sentences, "
            f"{len(model.views)} views{self.unlabelled.omissions}"
            if len(kinds) > 1
            else "none: the primary module learns alone",
            "vocabulary": model.reads,
        }


def build(task, start, config):
    """Returns a task's model, compiled, its optimizer built.

    Args:
        task: The task.
        start: The `WordVocabulary` of a new model; or a model whose encoder is taken.
        config: The `CrossViewConfig`, complete.
    """
    arguments = config.model_arguments()
    if isinstance(start, TokenTagger):
        model = CrossViewTokenTagger(start, name="tagger", **arguments)
    elif isinstance(start, WordVocabulary):
        model = word_model(task, start, config, **arguments)
        if config.word_vectors:
            start_from_vectors(model, config.word_vectors)
    else:
        model_class, name = MODELS[task.kind]
        model = model_class(
            start.vocabulary.words,
            start.vocabulary.characters,
            encoder=start.encoder,
            hidden_size=start.hidden_size,
            labelled_dropout=config.labelled_dropout,
            name=name,
            **task.model_arguments,
            **arguments,
        )
    if config.freeze_encoder:
        model.networks["encoder"].trainable = False
    return compiled(model, config, task.name)


def word_model(task, vocabulary, config, **arguments):
    """Returns a task's new model on the thesis's BiLSTM; arguments are others of it."""
    model_class, name = MODELS[task.kind]
    return model_class.from_preset(
        config.preset,
        words=vocabulary.words,
        characters=vocabulary.characters,
        labelled_dropout=config.labelled_dropout,
        name=name,
        **task.model_arguments,
        **lstm_sizes(config.lstm_size) | arguments,
    )


def unlabelled_of(config):
    """Returns the `Sentences` of a run's text without labels."""
    if not config.unlabelled:
        return Sentences([])
    corpus = open_corpus(
        config.unlabelled,
        on_bad_bytes=config.on_bad_bytes,
        on_bad_rows=config.on_bad_rows,
        text_column=config.text_column,
    )
    omissions = Omissions()
    stream = unlabelled_sentences(corpus, config.in_words, omissions=omissions)
    sentences = Sentences(islice(stream, config.max_unlabelled))
    omissions.update(corpus.left_out)
    sentences.omissions = describe_omissions(omissions, *corpus.skipped)
    return sentences


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
