"""Fine-tuned models as TensorFlow SavedModels: raw strings in, predictions out."""

import os
from pathlib import Path

import keras
import tensorflow as tf

from keras_corrupt.convert.saved_model_spans import extractor_signatures
from keras_corrupt.downstream.multi_label_classifier import MultiLabelClassifier
from keras_corrupt.downstream.span_extractor import SpanExtractor
from keras_corrupt.downstream.text_classifier import TextClassifier
from keras_corrupt.downstream.token_tagger import TokenTagger
from keras_corrupt.files.whole_directory import whole_directory
from keras_corrupt.multitask.multi_task_model import MultiTaskModel
from keras_corrupt.tokenizers.in_graph import GraphTokenizer, pack


def export_saved_model(model, directory):
    """Writes a SavedModel that tokenizes, runs the model and names what it predicts.

    It needs neither this package nor Keras, but TensorFlow Text's operations, which
    TensorFlow Serving has and `import tensorflow_text` registers. Its signatures take
    and return a dict of tensors:

    - `TextClassifier`: `serving_default` takes `text`, strings `[batch]`; `pair`
      takes `text` and `second_text`. Both return `label`, strings `[batch]`, and
      `probabilities`, float32 `[batch, labels]` in the order of the model's
      `labels`; or, for a model with `score_range`, `score`, float32 `[batch]`.
    - `MultiLabelClassifier`: the same signatures return `probabilities`, and `given`,
      booleans `[batch, labels]`: whether the text has each label.
    - `TokenTagger`: `serving_default` takes `sentence`, strings `[batch]`, each with
      a space between words, as `str.split(" ")` splits it. It returns `tags`, strings
      `[batch, most words]` filled up with `""`, and `lengths`, int32 `[batch]`.
    - `SpanExtractor`: `serving_default` takes `question` and `context`, strings
      `[batch]`, and reads all windows of a batch at once. It returns `answer`,
      strings `[batch]`, a part of each context, or `""` where no answer is likelier
      than one; `score`, float32 `[batch]`, the score of the best span; and
      `null_probability`, float32 `[batch]`, 0 without answerability. A context
      without any text, which the model itself refuses, has the answer `""` and a
      score below -1e8.
    - `MultiTaskModel`: each task's signatures, by the task's name in the place of
      `serving_default`, and `pair of NAME`.

    Args:
        model: A fine-tuned model, on the TensorFlow backend.
        directory: A new or empty directory; written whole or not at all.

    Raises:
        RuntimeError: The backend is not TensorFlow.
        ValueError: The model's class or tokenizer cannot be exported, or the
            directory is in use.
        ImportError: TensorFlow Text is not installed.
    """
    if keras.backend.backend() != "tensorflow":
        raise RuntimeError(
            f"A SavedModel is written on the TensorFlow backend, not on "
            f"{keras.backend.backend()}. Save the model with save_to_preset, and load "
            "and export the preset where KERAS_BACKEND=tensorflow."
        )
    for part in (model, *getattr(model, "parts", ())):
        if type(part) not in SIGNATURES:
            raise ValueError(
                f"`model` must be one of {[cls.__name__ for cls in SIGNATURES]}; got a "
                f"{type(part).__name__}."
            )
    directory = Path(os.path.realpath(directory))  # not a link that is replaced
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ValueError(
            f"`directory` must be new or empty; {directory} is not. Remove it first."
        )
    module = tf.Module()
    module.weights = [variable.value for variable in model.variables]
    signatures = SIGNATURES[type(model)](model, GraphTokenizer(model.tokenizer))
    with whole_directory(directory) as temporary:
        tf.saved_model.save(module, temporary, signatures=signatures)


def classifier_signatures(model, tokenize):
    """Returns signature name -> function of a classifier.

    Args:
        model: A `TextClassifier` or a `MultiLabelClassifier`.
        tokenize: Its `GraphTokenizer`.
    """

    def classify(*texts):
        parts = cut([tokenize(text) for text in texts], model.max_length - 1)
        logits = model(pack(parts, model.tokenizer), training=False)["logits"]
        if isinstance(model, MultiLabelClassifier):
            probabilities = tf.sigmoid(logits)
            given = probabilities >= model.threshold
            return {"probabilities": probabilities, "given": given}
        if model.labels is None:
            low, high = model.score_range
            score = low + (high - low) * logits[:, 0]
            return {"score": tf.clip_by_value(score, low, high)}
        return {
            "label": tf.gather(tf.constant(model.labels), tf.argmax(logits, axis=1)),
            "probabilities": tf.nn.softmax(logits),
        }

    @tf.function(input_signature=[_strings("text")])
    def single(text):
        return classify(text)

    @tf.function(input_signature=[_strings("text"), _strings("second_text")])
    def pair(text, second_text):
        return classify(text, second_text)

    return {"serving_default": single, "pair": pair}


def tagger_signatures(model, tokenize):
    """Returns signature name -> function of a `TokenTagger`."""
    room = model.max_length - 2  # [CLS] and [SEP]

    @tf.function(input_signature=[_strings("sentence")])
    def tag(sentence):
        words = tf.strings.split(sentence, sep=" ")  # ragged [batch, words]
        pieces = tokenize(words.values)[:, :room]  # ragged [all words, pieces]
        lost = tf.cast(pieces.row_lengths() == 0, tf.int64)
        unknown = tf.fill([tf.reduce_sum(lost)], model.tokenizer.unknown_id)
        unknown = tf.RaggedTensor.from_row_lengths(unknown, lost)
        pieces = tf.concat([pieces, unknown], axis=1)

        lengths = pieces.row_lengths()
        window = windows(words.with_values(lengths).to_tensor(), room)
        windows_before = tf.cumsum(tf.reduce_max(window, axis=1) + 1, exclusive=True)
        window += windows_before[:, None]  # now counted through the batch
        of_word = tf.boolean_mask(window, tf.sequence_mask(words.row_lengths()))
        of_piece = tf.repeat(of_word, lengths)
        first = tf.cast(tf.ragged.range(lengths).values == 0, tf.int32)

        tokens = tf.RaggedTensor.from_value_rowids(pieces.values, of_piece)
        starts = tf.RaggedTensor.from_value_rowids(first, of_piece).to_tensor()
        inputs = pack([tokens], model.tokenizer)
        inputs["word_starts"] = tf.pad(starts, [[0, 0], [1, 1]])
        logits = model(inputs, training=False)["logits"]
        logits = tf.boolean_mask(logits, inputs["word_starts"] > 0)
        tags = tf.gather(tf.constant(model.labels), tf.argmax(logits, axis=1))
        return {
            "tags": words.with_values(tags).to_tensor(""),
            "lengths": tf.cast(words.row_lengths(), tf.int32),
        }

    return {"serving_default": tag}


def multi_task_signatures(model, tokenize):
    """Returns signature name -> function of a `MultiTaskModel`."""
    signatures = {}
    for name, part in zip(model.tasks, model.parts, strict=True):
        for signature, function in SIGNATURES[type(part)](part, tokenize).items():
            default = signature == "serving_default"
            signatures[name if default else f"{signature} of {name}"] = function
    return signatures


#: Class -> function of a model and its `GraphTokenizer` that returns the signatures.
SIGNATURES = {
    TextClassifier: classifier_signatures,
    MultiLabelClassifier: classifier_signatures,
    TokenTagger: tagger_signatures,
    SpanExtractor: extractor_signatures,
    MultiTaskModel: multi_task_signatures,
}


def cut(parts, length):
    """Cuts one or two ragged batches of tokens as `text_classifier.cut` does.

    Args:
        parts: Ragged int32 `[batch, tokens]`, one or two.
        length: Tokens allowed, with one `[SEP]` for each part.
    """
    room = tf.constant(length - len(parts), tf.int64)
    first, second = (part.row_lengths() for part in (parts[0], parts[-1]))
    if len(parts) == 1:
        return [_keep(parts[0], tf.minimum(first, room))]
    kept = tf.minimum(first, tf.maximum(room - second, room - room // 2))
    return [_keep(parts[0], kept), _keep(parts[1], tf.minimum(second, room - kept))]


def windows(lengths, room):
    """Numbers the window of each word as `token_tagger.windows` cuts them.

    Args:
        lengths: Pieces of each word, int64 `[batch, words]`, padded with 0.
        room: Pieces that a window holds.

    Returns:
        int64 `[batch, words]`, from 0 in each sentence; at padding it means nothing.
    """
    ends = tf.cumsum(lengths, axis=1)
    window = tf.zeros_like(lengths)
    begin = tf.zeros_like(lengths[:, :1])
    beyond = ends > begin + room
    while tf.reduce_any(beyond):
        # Where the words end that the present window still holds.
        begin = tf.reduce_max(tf.where(beyond, begin, ends), axis=1, keepdims=True)
        window += tf.cast(beyond, tf.int64)
        beyond = ends > begin + room
    return window


def _keep(ragged, lengths):
    return tf.RaggedTensor.from_tensor(ragged.to_tensor(), lengths=lengths)


def _strings(name):
    return tf.TensorSpec([None], tf.string, name=name)
