"""What a masked language model costs."""

from keras_corrupt.evaluation import flops


def forward_flops(config, length):
    return flops.masked_lm_flops(config, length)


def activation_bytes(model, batch_size, length):
    from keras_corrupt.evaluation.memory import training_bytes

    return training_bytes(model, batch_size, length)[1]
