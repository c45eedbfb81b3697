"""Prompts: texts with a place for the word that tells their class.

LM-BFF (Gao et al., "Making Pre-trained Language Models Better Few-shot Learners",
2021): templates with a mask, and demonstrations, which are prompts of training examples
with their word filled in.
"""

import re

from keras_corrupt.downstream.text_features import cut

MASK = "[MASK]"
SLOTS = ("{first}", "{second}", MASK)
_SLOT = re.compile("|".join(map(re.escape, SLOTS)))


class Template:
    """A text with slots for one or two texts and for a word.

    Args:
        text: Such as `"{first} ? [MASK] , {second}"`. `[MASK]` is the word's place.
        tokenizer: A `Tokenizer`.

    Raises:
        ValueError: It has not `{first}` and `[MASK]` once each, or `{second}` twice.

    Example:

    >>> from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
    >>> words = ["it", "was", "fun", "great", "."]
    >>> tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *words])
    >>> template = Template("{first} It was [MASK] .", tokenizer)
    >>> (text,) = template.encode([("Fun .",)])
    >>> tokenizer.tokens(template.fill(text, room=16, word=tokenizer.mask_id))
    ['fun', '.', 'it', 'was', '[MASK]', '.']
    """

    def __init__(self, text, tokenizer):
        self.slots = _SLOT.findall(text)
        if sorted(self.slots) not in (sorted(SLOTS), sorted({*SLOTS} - {"{second}"})):
            raise ValueError(
                "`template` must have {first} and [MASK] once each and, for pairs, "
                f"{{second}} once; got {text!r}."
            )
        self.tokenizer = tokenizer
        literals = _SLOT.split(text)
        # White space before a slot belongs to what fills it: some vocabularies have
        # other tokens for a word after a space.
        self.spaces = dict(
            zip(self.slots, (" " * x[-1:].isspace() for x in literals), strict=False)
        )
        self.literals = tokenizer.encode_batch([x.rstrip() for x in literals])

    @property
    def num_texts(self):
        """1, or 2 for pairs."""
        return len(self.slots) - 1

    def word_id(self, word):
        """Returns the token of a word in the word's place.

        Raises:
            ValueError: It is several tokens, or the unknown one.
        """
        ids = self.tokenizer.encode(self.spaces[MASK] + word)
        if len(ids) != 1 or ids[0] == self.tokenizer.unknown_id:
            raise ValueError(
                f"The vocabulary has {self.tokenizer.tokens(ids)} for {word!r}: a word "
                "of `label_words` must be one of its tokens."
            )
        return ids[0]

    def encode(self, examples):
        """Returns the tokens of each example's one or two texts."""
        names = SLOTS[: self.num_texts]
        texts = [
            self.spaces[name] + text
            for example in examples
            for name, text in zip(names, example, strict=True)
        ]
        encoded = iter(self.tokenizer.encode_batch(texts))
        return [[next(encoded) for _ in names] for _ in examples]

    def fill(self, texts, room, word):
        """Returns a prompt's tokens.

        Args:
            texts: The tokens of one or two texts.
            room: How many tokens the prompt may have. Texts are cut at their end, the
                longer one first.
            word: The token in the word's place.
        """
        fixed = sum(map(len, self.literals)) + 1
        texts = cut(texts, max(0, room - fixed))
        fillings = dict(zip(SLOTS, texts, strict=False)) | {MASK: [word]}
        tokens = [*self.literals[0]]
        for slot, literal in zip(self.slots, self.literals[1:], strict=True):
            tokens += [*fillings[slot], *literal]
        return tokens


def demonstration_sets(labels, count, own, rng):
    """Draws training examples to show, one of each class.

    Args:
        labels: The label of each training example.
        count: Number of sets.
        own: The index of the example that they are shown to, which is never drawn;
            `None` if it is none of them.
        rng: A NumPy generator.

    Returns:
        A list of lists of indices, the classes in an order that is drawn, too. A class
        with no other example is left out.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> [sorted(s) for s in demonstration_sets(["a", "b", "a"], 2, 1, rng)]
    [[2], [2]]
    """
    members = {
        label: [i for i, x in enumerate(labels) if x == label and i != own]
        for label in dict.fromkeys(labels)
    }
    members = [indices for indices in members.values() if indices]
    return [
        [int(rng.choice(members[i])) for i in rng.permutation(len(members))]
        for _ in range(count)
    ]
