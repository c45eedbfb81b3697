"""The optimizer of a fine-tuning run, with lower rates for lower layers."""

from keras_corrupt.training.compiling import compiles_with_xla
from keras_corrupt.training.optimizer import AdamW
from keras_corrupt.training.schedules import WarmupLinearDecay


def optimizer_of(settings, steps_per_epoch, num_layers, **kwargs):
    """Returns the optimizer of a run.

    Args:
        settings: `FineTuningSettings`.
        steps_per_epoch: Updates in a pass over the training examples.
        num_layers: Layers of the encoder.
        kwargs: Others of `AdamW`.
    """
    steps = steps_per_epoch * settings.epochs
    warmup_steps = int(settings.warmup_fraction * steps)
    return AdamW(
        WarmupLinearDecay(settings.learning_rate, steps, warmup_steps),
        weight_decay=settings.weight_decay,
        beta_2=settings.beta_2,
        bias_correction=settings.bias_correction,
        rate_multipliers=rate_multipliers(
            num_layers, settings.layer_decay, settings.layer_decay_rule
        ),
        global_clipnorm=settings.clip_norm or None,
        **kwargs,
    )


def compiled(model, settings, steps_per_epoch):
    """Returns a model compiled for a run: see `optimizer_of`."""
    optimizer = optimizer_of(settings, steps_per_epoch, model.encoder.num_layers)
    model.compile(optimizer, jit_compile=compiles_with_xla())
    # The model's may be another one around it, which scales the loss.
    model.optimizer.build(model.trainable_variables)
    return model


def set_back(model, fresh):
    """Gives a model and its optimizer the state of another one of the same kind.

    Compiling takes longer than training on a small task, so that one is compiled for
    all seeds.
    """
    for variable, start in zip(
        model.variables + model.optimizer.variables,
        fresh.variables + fresh.optimizer.variables,
        strict=True,
    ):
        variable.assign(start)


def rate_multipliers(num_layers, decay, rule="paper"):
    """Returns the factor of each part's learning rate: `AdamW`'s `rate_multipliers`.

    Clark's thesis, 5.2.4: with depth counted from the output, a part learns at
    `decay ** depth` times the rate. The head's depth is 0, the top layer's 1, with it
    the final norm's, and the depth of the embeddings and of a position bias is
    `num_layers + 1`. Released code counts one more below the head.

    Args:
        num_layers: Layers of the encoder.
        decay: Factor from a layer to the one below it.
        rule: `"paper"` or `"released"`.

    >>> rate_multipliers(1, 0.5)
    {'encoder/(layer_0|final_norm)/': 0.5, 'encoder/(embedding|position_bias)': 0.25}
    """
    extra = {"paper": 0, "released": 1}[rule]
    parts = [f"layer_{i}" for i in range(num_layers - 1)]
    parts.append(f"(layer_{num_layers - 1}|final_norm)")
    depths = {f"encoder/{part}/": num_layers - i for i, part in enumerate(parts)}
    depths["encoder/(embedding|position_bias)"] = num_layers + 1
    return {pattern: decay ** (depth + extra) for pattern, depth in depths.items()}
