"""A pretrained encoder, adapted to a domain, and whether it got better.

    python recipes/adapt_to_domain.py --init_from runs/electra_small/preset \\
        --corpus papers/ --mix wiki.txt 0.1 --output runs/papers
    python recipes/adapt_to_domain.py --init_from runs/electra_small/preset \\
        --corpus papers/ --mix wiki.txt 0 --grow_vocabulary 2000 \\
        --task train.csv dev.csv --label intent --output runs/papers_grown

The run ends with a table of the losses before and after on held-out documents of the
corpus, and of the old text where `--mix` names it: a tenth of the examples from there
keeps the old knowledge, and a fraction of 0 shows the loss of it. A task is fine-tuned
from both encoders, as by finetune_text.py.

The model is the preset's. Zheng et al. (2020, section 4.1) go on from RoBERTa-Base with
this learning rate and this batch; the warm-up is ours, for the optimizer
knows nothing at first. An encoder that was pretrained at a higher rate, such as a small
one, takes a higher one here, too: about a fifth of it.
"""

import sys

from keras_corrupt.evaluation.adaptation import AdaptationConfig, adapt, of_preset
from keras_corrupt.training import main


def config():
    return AdaptationConfig(
        model="Electra",
        preset="small",
        output="runs/adapt_to_domain",
        sequence_length=128,
        batch_size=48,
        steps=20_000,
        learning_rate=1e-4,
        warmup_steps=1_000,
        validation_fraction=0.005,  # as most runs that are continued
        interval=1_000,
    )


if __name__ == "__main__":
    try:
        recipe = of_preset(config(), sys.argv[1:])
    except ValueError as error:
        sys.exit(f"Error: {error}")
    main(recipe, __doc__, adapt)
