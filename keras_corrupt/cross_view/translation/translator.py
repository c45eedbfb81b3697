"""Translation with Cross-View Training (Clark's thesis, 4.2.4)."""

import keras
import numpy as np
from keras import ops

from keras_corrupt.cross_view import objective
from keras_corrupt.cross_view.bilstm.encoder import BiLSTMEncoder
from keras_corrupt.cross_view.bilstm.word_model import WordModel, check_sizes
from keras_corrupt.cross_view.model import check_rates
from keras_corrupt.cross_view.presets import TRANSLATION_PRESETS
from keras_corrupt.cross_view.tasks.words import join_words, split_joined, split_words
from keras_corrupt.cross_view.text.sentences import Sentences
from keras_corrupt.cross_view.translation.batches import TranslationBatches
from keras_corrupt.cross_view.translation.beam_search import beam_search
from keras_corrupt.cross_view.translation.decoder import AttentionModule, Decoder
from keras_corrupt.cross_view.views import TRANSLATION_VIEWS
from keras_corrupt.objectives.loss import weighted_mean
from keras_corrupt.tokenizers.texts import check_text, check_words, listed

#: Classes that are no words: the end of a translation, an unknown word, and any word
#: of a found translation that is not learned from.
END, UNKNOWN, UNSURE = 0, 1, -1
#: The text of an unknown word.
UNKNOWN_WORD = "UNK"


@keras.saving.register_keras_serializable(package="keras_corrupt")
class CrossViewTranslator(WordModel):
    """Translates sentences, and learns from such without translations.

    Its auxiliary decoders share embeddings and LSTMs with the primary one and have
    their own attention and softmax. On a sentence without a translation they learn
    the translation that the primary decoder finds by beam search, without dropout.
    `"future"` predicts a word from the attention vector before the word's own, a
    translation's first word from the attention vector of the LSTMs' first states.

    Its inputs are `WordModel`'s inputs and, for training, `target_ids`, `[batch,
    target length]`: the classes of the translations' words, then `END`; -1 is padding,
    and stands alone where there is no translation. Without them it searches.

    Args:
        words: See `WordModel`, as for all arguments that are not listed.
        characters: See there.
        labels: The words of translations that have a class.
        in_words: Whether spaces alone separate words, in sentences that are strings
            and in translations. Otherwise see `tasks/words.py`.
        decoder: Sizes of `Decoder`.
        beam_size: Translations that beam search keeps.
        length_penalty: See `beam_search`; the thesis names none.
        attention_dropout: The rate at which the decoder of the view of this name drops
            attention weights. The thesis names none.
        target_smoothing: Label smoothing of the translations that were found.
        hard_targets: `True`: a translator has no other targets.
        confidence: The least probability of a found translation's words, their
            geometric mean, with which it is learned from.
        kwargs: Other arguments of `WordModel`.

    Example:

    >>> translator = CrossViewTranslator.from_preset(
    ...     "tiny", words=["cats", "sleep"], characters="acelpst",
    ...     labels=["Katzen", "schlafen"])
    >>> [type(text) for text in translator.predictions(["Cats sleep.", "Cats."])]
    [<class 'str'>, <class 'str'>]
    """

    known_views = TRANSLATION_VIEWS
    baselines = ("word_dropout",)
    presets = TRANSLATION_PRESETS
    row_format = {"columns": ("text",)}

    def __init__(
        self,
        words,
        characters,
        labels,
        in_words=False,
        decoder=None,
        beam_size=10,
        length_penalty=0.0,
        attention_dropout=0.5,
        target_smoothing=0.1,
        hard_targets=True,
        **kwargs,
    ):
        super().__init__(words, characters, labels, hard_targets=hard_targets, **kwargs)
        check_rates(
            attention_dropout=attention_dropout, target_smoothing=target_smoothing
        )
        if type(beam_size) is not int or beam_size < 1:
            raise ValueError(
                f"`beam_size` must be a positive whole number; got {beam_size!r}."
            )
        if not length_penalty >= 0:
            raise ValueError(
                f"`length_penalty` must be 0 or more; got {length_penalty!r}."
            )
        if not hard_targets:
            raise ValueError(
                "A translator learns the translations that it finds: `hard_targets` "
                f"must be True; got {hard_targets!r}."
            )
        self.in_words = in_words
        self.beam_size = beam_size
        self.length_penalty = length_penalty
        self.attention_dropout = attention_dropout
        self.target_smoothing = target_smoothing
        self.decoder = Decoder(
            self.begin + 1, **(decoder or {}), dtype=self.dtype_policy, name="decoder"
        )
        size = 2 * self.encoder.projection_size
        self.decoder.build(size)
        self.primary, *self.auxiliary = (
            self.module(name, size, self.hidden_size)
            for name in ("primary", *self.module_views)
        )

    # === Methods that `CrossViewModel` and `WordModel` call ===

    @property
    def begin(self):
        """The id that the decoder reads first, behind all classes."""
        return len(self.labels) + 2

    def num_classes(self, inputs):
        return self.begin

    def module(self, name, width, hidden_size):
        rate = self.attention_dropout if name == "attention_dropout" else 0.0
        module = AttentionModule(
            hidden_size, self.begin, rate, dtype=self.dtype_policy, name=name
        )
        module.build(width, self.decoder.projection_size)
        return module

    def classes_of(self, labels):
        """Returns for each translation, a string, its words' classes and `END`."""
        class_of = {word: i for i, word in enumerate(self.labels, 2)}
        all_classes = []
        for text in labels:
            classes = [class_of.get(word, UNKNOWN) for word in self.divided(text)]
            all_classes.append(np.array([*classes, END], "int32"))
        return all_classes

    def divided(self, text):
        """Returns the words of a translation."""
        return text.split() if self.in_words else split_joined(text)

    def batches(self, sentences, labels=None, batch_size=64, seed=None):
        return TranslationBatches(sentences, self.vocabulary, labels, batch_size, seed)

    def forward_flops(self, length, training=False):
        """Counts one sentence, whose translation is as long as it is."""
        return super().forward_flops(length) + self.decoder.flops(length)

    def teaching_flops(self, length):
        """Counts a pass of the encoder, and of the decoder for each sequence kept.

        The primary module, which learns from no translation that it finds, is
        subtracted.
        """
        encoder = self.encoder.flops(length, self.vocabulary.WIDTH)
        primary = self.primary.flops(length)
        searching = self.beam_size * (self.decoder.flops(length) + primary)
        return encoder + searching - 3 * primary

    @property
    def networks(self):
        return {name: getattr(self, name) for name in ("encoder", "decoder", "primary")}

    # === Sentences, and translations that are known ===

    def encode(self, inputs, training=False, noise=None):
        """Returns a dict of the inputs of predictions.

        They are `source`, the states of the encoder's last layer, `[batch, length,
        2 * projection]`, `words`, the padding mask, `first`, the decoder's first
        states, and with `target_ids` the states that `read` returns.
        """
        forward, backward = self.states(inputs, training, noise)[-1]
        words = inputs["padding_mask"]
        last = ops.maximum(ops.sum(words, axis=1) - 1, 0)
        last = ops.take_along_axis(forward, last[:, None, None], axis=1)[:, 0]
        summary = ops.concatenate([last, backward[:, 0]], axis=-1)
        encoded = {
            "source": ops.concatenate([forward, backward], axis=-1),
            "words": words,
            "first": self.decoder.first_states(summary),
        }
        if "target_ids" in inputs:
            encoded |= self.read(inputs, encoded, inputs["target_ids"], training)
        return encoded

    def read(self, inputs, encoded, target_ids, training=False):
        """Returns a dict of the decoders' states on translations.

        They are `states`, `[batch, target length, projection]`, each made of the words
        before, and `before`, the same a word earlier.
        """
        begin = ops.full_like(target_ids[:, :1], self.begin)
        read = ops.concatenate([begin, ops.maximum(target_ids[:, :-1], 0)], axis=1)
        rates = self.dropout_rates(inputs, training)
        states = self.decoder(read, encoded["first"], rates)
        first = encoded["first"][-1][0]
        before = ops.concatenate([first[:, None], states[:, :-1]], axis=1)
        return {"states": states, "before": before}

    def predict_from(self, encoded, training=False):
        return self.primary(encoded["source"], encoded["words"], encoded["states"])

    def auxiliary_logits(self, inputs, encoded):
        logits = {}
        for view, module in zip(self.module_views, self.auxiliary, strict=True):
            states = encoded["before" if view == "future" else "states"]
            seed = self.seed_generator if view == "attention_dropout" else None
            logits[view] = module(
                encoded["source"], encoded["words"], states, seed=seed
            )
        return logits

    # === Translations that are found ===

    @staticmethod
    def limit(words):
        """Returns how long the translation of so many words gets, its end included."""
        return 2 * words + 8

    def search(self, inputs):
        """Returns the primary decoder's translations, without dropout or gradients.

        Translations, int32 `[batch, length]`, each ended by one `END` or more; float32
        `[batch]` each, their scores and their words' mean probabilities (geometric).
        """
        words = ops.cast(inputs["padding_mask"], "int32")
        longest = self.limit(ops.shape(words)[1])
        sentences = {n: x for n, x in inputs.items() if n != "target_ids"}
        fixed = [(v, ops.stop_gradient(v)) for v in self.variables]
        with keras.StatelessScope(fixed):
            encoded = self.encode(sentences)
            source = encoded["source"]
            keys = self.primary.keys(source)
            first = encoded["first"]

            def step(last, states):
                states = keras.tree.pack_sequence_as(first, states)
                output, states = self.decoder.step(last, states)
                logits = self.primary(source, encoded["words"], output, keys=keys)
                return logits, keras.tree.flatten(states)

            batch, beams = ops.shape(words)[0], self.beam_size
            kept = [
                ops.broadcast_to(x[:, None], (batch, beams, x.shape[-1]))
                for x in keras.tree.flatten(first)
            ]
            lengths = ops.sum(words, axis=1)
            # A batch is filled up with sentences of no word, which end at once.
            limits = ops.where(lengths > 0, self.limit(lengths), 1)
            sizes = limits, longest, beams, self.length_penalty
            ids, scores, means = beam_search(step, kept, self.begin, END, *sizes)
            return ids, scores, ops.exp(means)

    # === Training ===

    def call(self, inputs, training=False):
        """Returns a dict of the decoders' outputs on sentences.

        Returns:
            `logits`, `[batch, target length, classes]`, of the primary decoder's next
            words; in training also `targets`, the translations that it finds, and
            `auxiliary`, a list with each view's divergence from these, `[batch, found
            length]`; see `CrossViewModel.call`. Without `target_ids` the translations
            that `search` returns, as `target_ids` and `scores`.
        """
        if "target_ids" not in inputs:
            target_ids, scores, _ = self.search(inputs)
            return {"target_ids": target_ids, "scores": scores}
        return super().call(inputs, training)

    def learned(self, inputs, encoded):
        """Returns the translations that are found, and each view's divergence."""
        with self.teaching():
            target_ids, _, probabilities = self.search(inputs)
        sure = probabilities >= self.confidence
        target_ids = ops.where(sure[:, None], target_ids, UNSURE)
        encoded = {**encoded, **self.read(inputs, encoded, target_ids, True)}
        logits = self.auxiliary_logits(inputs, encoded)
        if "word_dropout" in self.views:
            removed = {**self.without_some_words(inputs), "target_ids": target_ids}
            logits["word_dropout"] = self.student(removed)
        classes = ops.maximum(target_ids, 0)
        divergences = [
            objective.hard_divergence(classes, logits[view], self.target_smoothing)
            for view in self.views
        ]
        return [target_ids, *divergences]

    def nothing_learned(self, inputs):
        batch, length = ops.shape(inputs["padding_mask"])
        shape = (batch, self.limit(length))
        dtypes = "int32", *["float32"] * len(self.views)
        return [ops.zeros(shape, dtype) for dtype in dtypes]

    def supervised_loss(self, inputs, classes, outputs):
        """Returns the mean over words of translations, ends included."""
        has_translation = ops.cast(inputs["labelled"] == 1, "float32")[:, None]
        words = has_translation * ops.cast(classes >= 0, "float32")
        logits, smoothing = outputs["logits"], self.label_smoothing
        loss = objective.supervised_loss(logits, classes, words, smoothing)
        return loss, ops.sum(words)

    def cross_view_loss(self, inputs, outputs):
        """Returns the mean over words of the translations, ends included."""
        is_end = ops.cast(outputs["targets"] == END, "int32")
        until_end = ops.cumsum(is_end, axis=1) - is_end == 0
        sentences = ops.logical_and(
            inputs["labelled"] == 0, ops.any(inputs["padding_mask"] > 0, axis=1)
        )
        sure = ops.logical_and(sentences[:, None], outputs["targets"] != UNSURE)
        words = ops.cast(ops.logical_and(until_end, sure), "float32")
        return weighted_mean(sum(outputs["auxiliary"]), words), ops.sum(words)

    # === Use ===

    def predictions(self, sentences, batch_size=64):
        """Translates sentences.

        A translation has at most twice as many words as its sentence, and 7. Words that
        training met too rarely are `UNK`.

        Args:
            sentences: Strings, or lists of words.
            batch_size: Sentences that are translated at once.

        Returns:
            A list of strings, empty ones for sentences without words.

        Raises:
            ValueError: A sentence is neither.
        """
        divided = []
        for i, sentence in enumerate(listed(sentences, "sentences")):
            if isinstance(sentence, (list, tuple)):
                check_words(sentence, f"sentences[{i}]")
            else:
                check_text(sentence, f"sentences[{i}]")
                sentence = (str.split if self.in_words else split_words)(sentence)
            divided.append(sentence)
        translations = [""] * len(divided)
        batches = self.batches(Sentences(divided), batch_size=batch_size)
        for i, classes in self.predicted(batches, "target_ids", {"target_ids"}):
            translations[i] = self.decoded(classes) if divided[i] else ""
        return translations

    def _answers(self, sentences, batch_size=64):
        translations = self.predictions(sentences, batch_size)
        return [{"translation": text} for text in translations]

    def decoded(self, classes):
        """Returns the text of a translation.

        Args:
            classes: Classes of its words; the first `END` ends it.
        """
        words = []
        for index in classes:
            if index == END:
                break
            words.append(UNKNOWN_WORD if index == UNKNOWN else self.labels[index - 2])
        return " ".join(words) if self.in_words else join_words(words)

    @classmethod
    def parameters_of(cls, config):
        sizes = {
            "vocabulary_size": len(config["words"]) + 3,
            "num_characters": len(config["characters"]) + 4,
            **config["encoder"],
        }
        hidden, decoder = config["hidden_size"], config["decoder"]
        check_sizes(hidden, *sizes.values(), *decoder.values())
        source, classes = 2 * sizes["projection_size"], len(config["labels"]) + 2
        attention = source, decoder["projection_size"], hidden, classes
        return (
            BiLSTMEncoder.parameters(sizes)
            + Decoder.parameters(decoder, classes + 1, source)
            + AttentionModule.parameters(*attention)
        )

    def get_config(self):
        return {
            **super().get_config(),
            "in_words": self.in_words,
            "decoder": self.decoder.sizes,
            "beam_size": self.beam_size,
            "length_penalty": self.length_penalty,
            "attention_dropout": self.attention_dropout,
            "target_smoothing": self.target_smoothing,
        }
