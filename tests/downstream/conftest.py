import keras

#: An encoder for the vocabulary of the fixture `tokenizer`.
ENCODER = {
    "vocabulary_size": 60,
    "num_layers": 1,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_heads": 2,
    "max_length": 24,
    "initializer_range": 0.2,
}


def scrambled(model):
    """The model with every weight changed, so that none is like a new one's."""
    for v in model.trainable_variables:
        v.assign(v + keras.random.normal(v.shape, stddev=0.3))
    return model
