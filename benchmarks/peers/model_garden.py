"""TF Model Garden's ElectraPretrainer and TeamsPretrainer, in float32, as they ship."""

import numpy as np
import tensorflow as tf
import tf_keras
from official.nlp.configs import electra, encoders
from official.nlp.data import pretrain_dataloader
from official.nlp.tasks import electra_task
from official.projects.teams import teams, teams_task

from benchmarks.peers import MASK_ID, VOCABULARY, random_batch, random_positions


def encoder(hidden, heads, layers):
    return encoders.BertEncoderConfig(
        vocab_size=VOCABULARY,
        embedding_size=128,
        hidden_size=hidden,
        num_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        max_position_embeddings=512,
    )


def electra_model(masked):
    config = electra_task.ElectraPretrainConfig(
        model=electra.ElectraPretrainerConfig(
            num_masked_tokens=masked,
            sequence_length=128,
            generator_encoder=encoders.EncoderConfig(
                type="bert", bert=encoder(64, 1, 12)
            ),
            discriminator_encoder=encoders.EncoderConfig(
                type="bert", bert=encoder(256, 4, 12)
            ),
            num_classes=2,
            tie_embeddings=True,
        ),
        train_data=pretrain_dataloader.BertPretrainDataConfig(
            use_next_sentence_label=False
        ),
    )
    return electra_task.ElectraPretrainTask(config)


def teams_model(masked):
    config = teams_task.TeamsPretrainTaskConfig(
        model=teams.TeamsPretrainerConfig(
            candidate_size=6,
            num_shared_generator_hidden_layers=3,
            num_discriminator_task_agnostic_layers=11,
            generator=encoder(256, 4, 6),
            discriminator=encoder(256, 4, 12),
        )
    )
    return teams_task.TeamsPretrainTask(config)


def make_step(system, batch_size, length, dtype):
    if dtype != "float32":
        raise ValueError("Model Garden's pretrainers fail in bfloat16 as they ship.")
    tf.random.set_seed(0)
    ids = random_batch(batch_size, length)
    positions = random_positions(batch_size, length)
    task = {"electra": electra_model, "teams": teams_model}[system](positions.shape[1])
    model = task.build_model()
    masked = ids.copy()
    np.put_along_axis(masked, positions, MASK_ID, axis=1)
    inputs = {
        "input_word_ids": masked,
        "input_mask": np.ones_like(ids),
        "input_type_ids": np.zeros_like(ids),
        "masked_lm_positions": positions,
        "masked_lm_ids": np.take_along_axis(ids, positions, axis=1),
        "masked_lm_weights": np.ones(positions.shape, "float32"),
    }
    inputs = {name: tf.constant(value) for name, value in inputs.items()}
    optimizer = tf_keras.optimizers.experimental.AdamW(
        5e-4, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0
    )
    metrics = task.build_metrics()

    @tf.function
    def train():
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            loss = task.build_losses(inputs, outputs, metrics)
        variables = model.trainable_variables
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    return lambda: float(train())
