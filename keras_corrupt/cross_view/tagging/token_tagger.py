"""Cross-View Training of a pretrained Transformer: views by attention masks."""

import keras
from keras import ops

from keras_corrupt.cross_view.model import CrossViewModel, check_rates
from keras_corrupt.cross_view.noise import with_noise
from keras_corrupt.cross_view.text.batches import PieceBatches
from keras_corrupt.cross_view.views import VIEWS
from keras_corrupt.encoders.cost import dense_flops

#: View -> what a position sees in the pass of the encoder that it is of.
DIRECTIONS = {
    "forward": "left_to_right",
    "future": "left_to_right",
    "backward": "right_to_left",
    "past": "right_to_left",
}


class CrossViewTokenTagger(CrossViewModel):
    """A `TokenTagger`, and auxiliary modules that see a part of a sentence.

    Every layer of a Transformer sees the whole sentence. So a restricted view is a pass
    of the whole encoder, with the same weights, in which no position sees beyond
    itself in one direction. A word is read there by the last of the pieces that may
    be seen: its own last one (forward) or first one (backward), the last one of the
    word before it or `[CLS]` (future), the first one of the word after it or `[SEP]`
    (past). Positions are counted from the sentence's beginning: views of what follows
    know how many pieces precede it, but not which.

    It reads what the tagger reads, `next_starts`, `[batch, length]`, at each word's
    first piece where the next word begins or `[SEP]` is, and what `CrossViewModel`
    says. Only the tagger is saved: load it with `TokenTagger.from_preset`.

    With all views an unlabelled batch costs ten forward passes, not three: it trains on
    three and takes its targets from one.

    Args:
        tagger: The `TokenTagger`. Its head is the primary module.
        views: See `CrossViewModel`.
        unlabelled_dropout: Dropout rate of the states that the auxiliary modules read,
            beside the dropout of the tagger itself.
        label_smoothing: See `CrossViewModel`.
        kwargs: Others of `CrossViewModel`.

    Example:

    >>> from keras_corrupt.downstream import TokenTagger
    >>> from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
    >>> tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "cat", "##s", "sleep"])
    >>> model = CrossViewTokenTagger(TokenTagger.from_preset(
    ...     "tiny", tokenizer=tokenizer, labels=["NOUN", "VERB"]))
    >>> [len(tags) for tags in model.predictions([["Cats", "sleep"], ["Cat"]])]
    [2, 1]
    """

    def __init__(
        self,
        tagger,
        views=VIEWS,
        unlabelled_dropout=0.1,
        label_smoothing=0.1,
        **kwargs,
    ):
        super().__init__(tagger.labels, views, label_smoothing, **kwargs)
        check_rates(unlabelled_dropout=unlabelled_dropout)
        self.tagger = tagger
        self.unlabelled_dropout = unlabelled_dropout
        width = tagger.encoder.hidden_size
        self.auxiliary = [self.module(v, width, width) for v in self.module_views]
        self.directions = {DIRECTIONS[v] for v in self.views if v in DIRECTIONS}
        self.embedding_width = width
        self.built = True

    def encode(self, inputs, training=False, noise=None, attention=None):
        encoder = self.tagger.encoder
        inputs = encoder.text_inputs(inputs)
        x = encoder.embed(inputs, training)
        if noise is not None:
            x = with_noise(x, noise, inputs["padding_mask"])
        return encoder.transform(x, inputs, training, attention)

    def predict_from(self, encoded, training=False):
        return self.tagger.head(encoded, training=training)

    def auxiliary_logits(self, inputs, encoded):
        views = self.states(inputs, encoded, training=True)

        def dropped(states):
            rate = self.unlabelled_dropout
            return keras.random.dropout(states, rate, seed=self.seed_generator)

        modules = zip(self.module_views, self.auxiliary, strict=True)
        return {view: module(dropped(views[view])) for view, module in modules}

    def without_some_words(self, inputs):
        token_ids, starts = inputs["token_ids"], inputs["word_starts"]
        drawn = keras.random.uniform(ops.shape(starts), seed=self.seed_generator)
        # Each piece has the number drawn for its word; [CLS] and [SEP] are of none.
        word = ops.cumsum(starts, axis=1)
        removed = ops.take_along_axis(drawn, word, axis=1) < self.word_dropout
        of_word = ops.cast(inputs["padding_mask"], "bool")
        tokenizer = self.tagger.tokenizer
        for special in (tokenizer.classify_id, tokenizer.separate_id):
            of_word = ops.logical_and(of_word, token_ids != special)
        removed = ops.logical_and(removed, of_word)
        mask_id = ops.cast(tokenizer.mask_id, token_ids.dtype)
        return {**inputs, "token_ids": ops.where(removed, mask_id, token_ids)}

    def states(self, inputs, hidden, training=False):
        """Returns view -> the states that a module reads, `[batch, length, hidden]`.

        `hidden` is what the encoder makes of whole sentences. The states of a word
        stand at its first piece; what stands elsewhere is no view.
        """

        def at(positions, states):
            positions = ops.maximum(positions, 0)[..., None]
            return ops.take_along_axis(states, positions, axis=1)

        passes = {
            attention: self.encode(inputs, training, attention=attention)
            for attention in sorted(self.directions)
        }
        following = inputs["next_starts"]
        states_of = {"full": hidden}
        if "left_to_right" in passes:
            forward = passes["left_to_right"]
            states_of["forward"] = at(following - 1, forward)
            states_of["future"] = ops.roll(forward, 1, axis=1)
        if "right_to_left" in passes:
            backward = passes["right_to_left"]
            states_of["backward"] = backward
            states_of["past"] = at(following, backward)
        return states_of

    def words(self, inputs):
        return inputs["word_starts"]

    def batches(self, sentences, labels=None, batch_size=64, seed=None):
        return PieceBatches(sentences, self.tagger, labels, batch_size, seed)

    def forward_flops(self, length, training=False):
        encoder = self.tagger.encoder
        head = length * dense_flops(encoder.hidden_size, len(self.labels))
        return encoder.flops(length) + head

    def view_flops(self, length):
        return len(self.directions) * self.tagger.encoder.flops(length)

    @property
    def reads(self):
        """What a sentence is made of, for a run's banner."""
        return f"{self.tagger.vocabulary_size:,} word pieces"

    @property
    def networks(self):
        """What presets hold."""
        return self.tagger.networks

    def predictions(self, sentences, batch_size=64):
        """Returns a list of tags for each sentence, a list of words."""
        return self.tagger.predictions(sentences, batch_size)

    def save_to_preset(self, directory):
        """Writes the tagger: see `TokenTagger.save_to_preset`."""
        self.tagger.save_to_preset(directory)
