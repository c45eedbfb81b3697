from keras_corrupt.models import Electra, MaskedLM
from keras_corrupt.training.memory import process_bytes, training_bytes

ENCODER = {
    "vocabulary_size": 1000,
    "num_layers": 1,
    "hidden_size": 8,
    "intermediate_size": 32,
    "num_heads": 2,
    "max_length": 20,
    "dropout": 0,
    "attention_dropout": 0,
}
IDS = {"mask_id": 4, "unmaskable_ids": (0, 1, 2)}


def growth(one, other):
    """What two sequences of 20 tokens need more in another model."""
    pairs = zip(training_bytes(one, 2, 20), training_bytes(other, 2, 20), strict=True)
    return [b - a for a, b in pairs]


def test_counts_what_a_layer_and_a_token_add():
    """By hand, in float32; 3 of a sequence's 20 tokens are masked."""
    one = MaskedLM(ENCODER, **IDS)
    deeper = MaskedLM(ENCODER | {"num_layers": 2}, **IDS)
    parameters = deeper.count_params() - one.count_params()
    assert parameters == 4 * (8 * 8 + 8) + 2 * 8 * 32 + 32 + 8 + 4 * 8
    hidden, inner, attention = 8 * 40 * 8, 40 * 32, 2 * 2 * 20**2
    activations = 4 * (hidden + inner + attention)
    assert growth(one, deeper) == [16 * parameters, activations, 12e6]

    wordier = MaskedLM(ENCODER | {"vocabulary_size": 2000}, **IDS)
    # A token has an embedding and an output bias, and at each masked position a product
    # with its gradient.
    assert growth(one, wordier) == [16 * 1000 * (8 + 1), 8 * 2 * 3 * 1000, 0]


def test_generator_and_discriminator_have_their_peaks_in_turn():
    generator = {"hidden_size": 4, "intermediate_size": 4, "num_heads": 1}
    one = Electra(ENCODER, generator, **IDS)
    # The vocabulary's logits are this one's peak: a larger discriminator adds nothing.
    larger = Electra(ENCODER | {"intermediate_size": 40}, generator, **IDS)
    assert growth(one, larger)[1] == 0
    few = {"vocabulary_size": 8, "num_heads": 1}
    one = Electra(ENCODER | few, generator, **IDS)
    larger = Electra(ENCODER | few | {"intermediate_size": 40}, generator, **IDS)
    # One kept, and three of the half layer that goes back.
    assert growth(one, larger)[1] == 4 * 4 * 40 * 8


def test_without_kernels_both_networks_wait_for_the_backward_pass():
    generator = {"hidden_size": 4, "intermediate_size": 4, "num_heads": 1}
    one = Electra(ENCODER | {"norm": "pre"}, generator, **IDS)
    deeper = Electra(ENCODER | {"norm": "pre"}, generator | {"num_layers": 2}, **IDS)
    layer = deeper.generator.encoder.layers_[1]
    assert growth(one, deeper)[1] == layer.activation_bytes(2, 20, 4)


def test_parts_of_a_batch_add_up_their_gradients():
    model = MaskedLM(ENCODER, **IDS)
    whole, *rest = training_bytes(model, 2, 20)
    model.micro_batches = 2
    assert training_bytes(model, 2, 20) == (whole + 4 * model.count_params(), *rest)


def test_process_is_measured_in_bytes():
    # Keras alone takes some hundred megabytes.
    assert 1e8 < process_bytes() < 1e12
