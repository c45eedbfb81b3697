"""Flair's `SequenceTagger`, as large as ours by FLOPs: two LSTMs without projections.

Words have vectors that are trained, and what an LSTM makes of their characters. The
loss is a softmax's, without a CRF; dropout drops dimensions (`locked_dropout`).
"""

import flair
import torch
from flair.data import Dictionary, Sentence
from flair.embeddings import CharacterEmbeddings, OneHotEmbeddings, StackedEmbeddings
from flair.models import SequenceTagger

from benchmarks.peers import LETTERS, TAGS, random_sentences

#: Units of each LSTM, with which a sentence takes as many FLOPs as with our tagger.
HIDDEN_SIZE = 680


def make_step(system, batch_size, length, dtype):
    if system != "tagging" or dtype != "float32":
        raise ValueError("Flair trains taggers, in float32.")
    torch.manual_seed(0)
    flair.device = torch.device("cpu")
    sentences, tags = random_sentences(batch_size, length)
    words = {word for words in sentences for word in words}
    model = SequenceTagger(
        StackedEmbeddings(
            [
                OneHotEmbeddings(dictionary(words)),
                CharacterEmbeddings(dictionary(LETTERS)),
            ]
        ),
        dictionary(TAGS),
        "tag",
        hidden_size=HIDDEN_SIZE,
        rnn_layers=2,
        use_crf=False,
        reproject_embeddings=False,
    )
    examples = []
    for words, words_tags in zip(sentences, tags, strict=True):
        sentence = Sentence(words)
        for token, tag in zip(sentence, words_tags, strict=True):
            token.add_label("tag", tag)
        examples.append(sentence)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()

    def step():
        optimizer.zero_grad()
        loss, count = model.forward_loss(examples)
        (loss / count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        for sentence in examples:
            sentence.clear_embeddings()
        return loss.item()

    return step


def dictionary(items):
    """Returns Flair's dictionary of items, and one for unknown ones."""
    dictionary = Dictionary(add_unk=True)
    for item in sorted(items):
        dictionary.add_item(item)
    return dictionary
