"""Training in phases: of which networks, by which losses, with which schedule."""

import dataclasses

from keras_corrupt.commands.bounds import Bounds, check_bounds

#: Field of a `Phase` -> its bounds.
BOUNDS = {
    "steps": Bounds(1),
    "learning_rate": Bounds(0, above=True),
    "warmup_steps": Bounds(0),
}


@dataclasses.dataclass(frozen=True)
class Phase:
    """A part of a run, with an optimizer and a schedule of its own.

    Most runs have one phase. ELECTRA's two-stage training (Clark's thesis, 5.3.3), for
    instance, has two: first the generator learns alone, then the discriminator starts
    from the generator's weights, and the generator stays as it is.

    Attributes:
        name: What checkpoints call it.
        steps: Number of updates.
        networks: Names of the networks that are trained; all if none is named. What
            a network that is trained shares with others is trained, too. At the end
            of the phase these are judged.
        frozen: Names of networks that stay as they are, what they share included.
        loss_weights: Name of a loss term -> its weight in this phase, where that is
            not the model's own.
        start: Name of a method of the model that is called once, before the phase's
            first update: to copy weights, for instance.
        learning_rate: Peak learning rate; the run's if not given.
        warmup_steps: Updates of warm-up; the run's if not given.
    """

    name: str
    steps: int
    networks: tuple[str, ...] = ()
    loss_weights: dict[str, float] = dataclasses.field(default_factory=dict)
    start: str | None = None
    learning_rate: float | None = None
    warmup_steps: int | None = None
    frozen: tuple[str, ...] = ()


#: The name of the one phase of a run that has no others.
WHOLE_RUN = "pretraining"


def phases_of(config):
    """Returns the phases of a run.

    Args:
        config: A `PretrainConfig`.
    """
    if not config.generator_steps:
        return config.phases or (Phase(WHOLE_RUN, config.steps),)
    first = Phase(
        "generator",
        config.generator_steps,
        networks=("generator",),
        warmup_steps=min(config.warmup_steps, config.generator_steps // 10),
        frozen=("discriminator",),
    )
    return first, Phase(WHOLE_RUN, config.steps - first.steps)


def scaled(phases, steps):
    """Returns phases that have other steps together, in the same proportions.

    Args:
        phases: `Phase`s, one or more.
        steps: How many steps they have together.

    >>> phases = Phase("first", 100), Phase("second", 200)
    >>> [phase.steps for phase in scaled(phases, 31)]
    [10, 21]
    """
    total = sum(phase.steps for phase in phases)
    shares = [steps * phase.steps // total for phase in phases[:-1]]
    shares.append(steps - sum(shares))
    return tuple(
        dataclasses.replace(phase, steps=share)
        for phase, share in zip(phases, shares, strict=True)
    )


def warmup_of(phase, config):
    """Returns a phase's updates of warm-up, in a run of a `PretrainConfig`."""
    steps = phase.warmup_steps
    return config.warmup_steps if steps is None else steps


def check_phases(config, model):
    """Raises a `ValueError` for phases that a model does not have.

    Args:
        config: A `PretrainConfig`.
        model: A `Pretrainer` to try them on.
    """
    phases = phases_of(config)
    names = [phase.name for phase in phases]
    if len(set(names)) < len(names):
        raise ValueError(f"`phases` must have different names; got {names}.")
    total = sum(phase.steps for phase in config.phases)
    if config.phases and total != config.steps:
        raise ValueError(
            f"`phases` have {total} steps together, but --steps is {config.steps}."
        )
    if len(phases) > 1 and config.ema:
        raise ValueError("--ema cannot be used in a run of several phases.")
    for phase in phases:
        for field, named, choices in (
            ("networks", phase.networks, model.networks),
            ("frozen", phase.frozen, model.networks),
            ("loss_weights", phase.loss_weights, model.loss_weights),
        ):
            unknown = sorted(set(named) - set(choices))
            if unknown:
                raise ValueError(
                    f"The phase {phase.name!r} names {', '.join(unknown)} among its "
                    f"`{field}`; {type(model).__name__} has {', '.join(choices)}."
                )
        networks = [model.networks[name] for name in phase.networks]
        if networks and not any(n.trainable_variables for n in networks):
            raise ValueError(
                f"The phase {phase.name!r} trains {', '.join(phase.networks)}, which "
                f"has no variables in {type(model).__name__}. Leave the phase, or "
                "--generator_steps, out."
            )
        if phase.start and not callable(getattr(model, phase.start, None)):
            raise ValueError(
                f"The phase {phase.name!r} has {phase.start!r} as its `start`, which "
                f"is no method of {type(model).__name__}."
            )
        if phase.start:
            getattr(model, phase.start)()  # what it refuses shows now
        check_bounds(vars(phase), BOUNDS, f"The phase {phase.name!r}: ")
        warmup = warmup_of(phase, config)
        if warmup >= phase.steps:
            raise ValueError(
                f"The phase {phase.name!r} has {warmup} `warmup_steps`, which must be "
                f"fewer than its {phase.steps} steps."
            )


def enter(phase, model, trainable, loss_weights):
    """Makes a model train what a phase trains, by the phase's losses.

    It must be compiled afterwards.

    Args:
        phase: A `Phase`.
        model: A `Pretrainer`.
        trainable: All variables of the model that any phase can train.
        loss_weights: The model's own.
    """

    def of(networks):
        return {id(v) for name in networks for v in model.networks[name].variables}

    trained, frozen = of(phase.networks), of(phase.frozen)
    for variable in trainable:
        chosen = not phase.networks or id(variable) in trained
        variable.trainable = chosen and id(variable) not in frozen
    model.loss_weights = {**loss_weights, **phase.loss_weights}
