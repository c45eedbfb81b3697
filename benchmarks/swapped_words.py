"""Swaps a word of unseen sentences by hand and shows what the discriminator thinks.

python benchmarks/swapped_words.py PRESET
"""

import tyro

from keras_corrupt.models import load_preset

#: Each sentence with [right|wrong] in one place.
SENTENCES = [
    "the captain of the ship looked at the [sea|because] .",
    "she was born in [1923|table] and died in london .",
    "he opened the door and went into the [room|slowly] .",
    "the city has a population of 4 , 300 [people|however] .",
    "the film was released in the united [states|them] in 2004 .",
    '" i do not know , " said the old [man|of] .',
    "the king and his son were killed in the [battle|which] .",
    "they have been playing football for many [years|he] .",
    "it is one of the most important [towns|is] in the country .",
    "the war began in [september|house] 1939 .",
]


def variants(sentence):
    before, rest = sentence.split("[")
    words, after = rest.split("]")
    return [before + word + after for word in words.split("|")]


def main(preset: tyro.conf.Positional[str]):
    model = load_preset(preset)
    right, wrong = (
        model.score(texts) for texts in zip(*map(variants, SENTENCES), strict=True)
    )
    detected = highest = 0
    print("| sentence | right word | wrong word | its rank |\n|---|---|---|---|")
    for sentence, a, b in zip(SENTENCES, right, wrong, strict=True):
        same = [s == t for s, t in zip(a.tokens, b.tokens, strict=False)]
        place = same.index(False)
        p, q = a.probabilities[place], b.probabilities[place]
        rank = 1 + sum(b.probabilities[1:-1] > q)
        detected += q > p
        highest += rank == 1
        print(f"| {sentence.replace('|', ' > ')} | {p:.2f} | {q:.2f} | {rank} |")
    print(
        f"\nOf {len(SENTENCES)} wrong words {detected} look more replaced than the "
        f"right ones, and {highest} more than any other word of their sentence."
    )


if __name__ == "__main__":
    tyro.cli(main, description=__doc__, use_underscores=True)
