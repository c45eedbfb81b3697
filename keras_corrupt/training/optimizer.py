"""AdamW as the papers use it (Loshchilov and Hutter, 2019; Clark's thesis, 5.2.3)."""

import re

import keras
from keras import ops

from keras_corrupt.devices.adam import adam, adam_update
from keras_corrupt.devices.flat_arrays import FlatArrays
from keras_corrupt.devices.replicas import sum_over_replicas


@keras.saving.register_keras_serializable(package="keras_corrupt")
class AdamW(keras.optimizers.Optimizer):
    """Adam with decoupled weight decay and learning rates that differ by variable.

    Unlike `keras.optimizers.AdamW`:

    - weight decay leaves out biases and layer norms, on every backend;
    - bias correction can be left out, as in BERT's and ELECTRA's released code;
    - each variable's learning rate can have a factor (layer-wise decay);
    - a token that occurs twice in a batch counts as one gradient, on every backend;
    - it computes with at least 32 bits: with fewer, a small gradient's square is 0, and
      a slow average never moves;
    - with gradient accumulation, schedules and moving averages advance once an
      update, not once a batch;
    - `gradient_norm`, a variable, is the norm of the last update's gradient over all
      variables, before clipping;
    - while `flat` is set, on JAX, it updates variables with the same rate and decay as
      one flat array: a few kernels do the work of hundreds.

    Args:
        learning_rate: A float or a schedule of the number of updates done.
        weight_decay: Rate of the decay; each update subtracts
            `learning_rate * weight_decay * variable`.
        beta_1: Decay of the first moment's average.
        beta_2: Decay of the second moment's average.
        epsilon: Added to the root of the second moment's average, before that is
            corrected, as Keras and fairseq do. PyTorch, and Adam's paper in its
            algorithm 1, correct it first, so that their epsilon weighs less in the
            first updates: `sqrt(1 - beta_2 ** t)` of this one at update t.
        bias_correction: Whether to correct the averages for starting at zero.
        no_decay: Pattern of the variables' own names (`kernel`, `bias`, ...) that
            are not decayed.
        rate_multipliers: Pattern of variables' paths -> factor of their learning
            rate. The first pattern found in a path counts; the others have factor 1.
        kwargs: Arguments of `keras.optimizers.Optimizer`: `global_clipnorm`,
            `gradient_accumulation_steps`, `use_ema`, `ema_momentum`, ...

    Raises:
        TypeError: This release of Keras does not call what the class overrides.

    Example:

    >>> optimizer = AdamW(
    ...     1e-4, rate_multipliers={"layer_0/": 0.8, "layer_1/": 0.9},
    ...     global_clipnorm=1.0)
    """

    #: Whether updates are of flat arrays; set where several are in one program.
    flat = False

    def __init__(
        self,
        learning_rate=1e-3,
        weight_decay=0.01,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        bias_correction=True,
        no_decay="^(bias|gamma|beta)$",
        rate_multipliers=None,
        name="adamw",
        **kwargs,
    ):
        check_hooks()
        # Keras's own `weight_decay` decays every variable, so it stays unset.
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.decay_rate = weight_decay
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.bias_correction = bias_correction
        self.no_decay = no_decay
        self.rate_multipliers = dict(rate_multipliers or {})

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self._momentums, self._velocities = self.add_optimizer_variables(
            variables, ["momentum", "velocity"]
        )
        self.gradient_norm = self.add_variable(
            (), aggregation="only_first_replica", name="gradient_norm"
        )
        # Decided here, by position: within a JAX update the variables have lost
        # what their names would tell.
        self._decays = [self.decay_of(variable) for variable in variables]
        self._multipliers = [self.multiplier_of(variable) for variable in variables]
        types = [variable.dtype for variable in variables]
        self.layout = FlatArrays(
            [variable.shape for variable in variables],
            zip(self._multipliers, self._decays, types, strict=True),
        )

    @property
    def flat_variables(self):
        """Lists of variables, in the model's order, that an update makes flat."""
        rows = [self._trainable_variables, self._momentums, self._velocities]
        return [*rows, self._model_variables_moving_average] if self.use_ema else rows

    def add_variable(self, shape, initializer="zeros", dtype=None, **kwargs):
        dtype = wide_enough(dtype or keras.config.floatx())
        return super().add_variable(shape, initializer, dtype, **kwargs)

    def decay_of(self, variable):
        """Returns the weight decay of a variable: a float, 0 if left out."""
        own_name = variable.path.rsplit("/", 1)[-1]
        return 0.0 if re.search(self.no_decay, own_name) else self.decay_rate

    def multiplier_of(self, variable):
        """Returns the factor of a variable's learning rate."""
        for pattern, factor in self.rate_multipliers.items():
            if re.search(pattern, variable.path):
                return factor
        return 1.0

    def apply(self, grads, trainable_variables=None):
        # Keras clips, accumulates and averages on each replica; with the sum over the
        # replicas all do the same as one device does.
        grads = dense(grads, trainable_variables or self._trainable_variables)
        grads = [
            None if g is None else ops.cast(g, wide_enough(g.dtype)) for g in grads
        ]
        super().apply(sum_over_replicas(grads), trainable_variables)

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        # Each replica updates its own copy. Keras would add up the gradients here.
        rate = ops.cast(learning_rate, "float32")
        correction = 1.0
        if self.bias_correction:
            step = ops.cast(self.iterations + 1, "float32")
            correction = ops.sqrt(1.0 - ops.power(self.beta_2, step))
            correction = correction / (1.0 - ops.power(self.beta_1, step))
        # What variables have in common is computed once; there are hundreds.
        rates = {
            (factor, decay): (rate * factor * correction, rate * factor * decay)
            for factor, decay in set(zip(self._multipliers, self._decays, strict=True))
        }
        if self.flat:
            self.update_flat(grads, rates)
            return
        for gradient, variable in zip(grads, trainable_variables, strict=True):
            index = self._get_variable_index(variable)
            momentum, velocity = self._momentums[index], self._velocities[index]
            rate, decay = rates[self._multipliers[index], self._decays[index]]
            if self._decays[index]:
                self.assign_sub(variable, ops.cast(decay, variable.dtype) * variable)
            adam(
                variable,
                momentum,
                velocity,
                ops.cast(gradient, momentum.dtype),
                ops.cast(rate, momentum.dtype),
                *(self.beta_1, self.beta_2, self.epsilon),
            )

    def update_flat(self, grads, rates):
        rows = self._trainable_variables, self._momentums, self._velocities
        updated = []
        for (factor, decay, _), variable, momentum, velocity, gradient in zip(
            self.layout.positions, *map(self.layout.pack, (*rows, grads)), strict=True
        ):
            rate, decay_rate = rates[factor, decay]
            if decay:
                variable -= ops.cast(decay_rate, variable.dtype) * variable
            averages = momentum, velocity, ops.cast(gradient, momentum.dtype)
            rate = ops.cast(rate, momentum.dtype)
            updated.append(
                adam_update(
                    variable, *averages, rate, self.beta_1, self.beta_2, self.epsilon
                )
            )
        for row, new in zip(rows, zip(*updated, strict=True), strict=True):
            self.assign_flat(row, new)

    def assign_flat(self, variables, flat_arrays):
        arrays = self.layout.unpack(flat_arrays)
        for variable, array in zip(variables, arrays, strict=True):
            variable.assign(array)

    def _clip_gradients(self, grads):
        flat = self.flat and not self.clipnorm  # which is a norm of each array
        grads = self.layout.pack(grads) if flat else grads
        # Keras computes the same to clip, so that compilers compute it once.
        self.gradient_norm.assign(global_norm(grads))
        grads = super()._clip_gradients(grads)
        return self.layout.unpack(grads) if flat else grads

    def _backend_increment_gradient_accumulators(self, grads, accumulated):
        for gradient, total in zip(grads, accumulated, strict=True):
            total.assign_add(gradient)

    def _get_current_learning_rate(self):
        # Keras passes a schedule the number of batches, accumulated ones included.
        if isinstance(
            self._learning_rate, keras.optimizers.schedules.LearningRateSchedule
        ):
            return self._learning_rate(self.iterations)
        return super()._get_current_learning_rate()

    def _update_model_variables_moving_average(self, trainable_variables):
        # Keras averages after every batch; with accumulation most change nothing.
        steps = self.gradient_accumulation_steps or 1
        updated = ops.equal((self._iterations + 1) % steps, 0)
        momentum = ops.where(ops.equal(self.iterations, 0), 0.0, self.ema_momentum)

        def average_of(average, variable):
            new = momentum * average + (1.0 - momentum) * variable
            return ops.where(updated, new, ops.convert_to_tensor(average))

        averages = self._model_variables_moving_average
        if self.flat:
            rows = map(self.layout.pack, (averages, trainable_variables))
            self.assign_flat(averages, [*map(average_of, *rows)])
            return
        for average, variable in zip(averages, trainable_variables, strict=True):
            average.assign(average_of(average, variable))

    def _overwrite_model_variables_with_average_value(self, trainable_variables):
        # Copies: on JAX the next step would otherwise give the averages' memory away
        # together with the variables' memory.
        for variable, average in zip(
            trainable_variables, self._model_variables_moving_average, strict=True
        ):
            variable.assign(ops.copy(ops.convert_to_tensor(average)))

    def get_config(self):
        return {
            **super().get_config(),
            "weight_decay": self.decay_rate,
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "bias_correction": self.bias_correction,
            "no_decay": self.no_decay,
            "rate_multipliers": self.rate_multipliers,
        }


def dense(gradients, variables):
    """Returns the gradients of variables; a token that occurs twice counts once.

    On TensorFlow a gathered embedding's gradient lists a token's row once for each
    occurrence, and Keras squares the rows before it adds them up, in the norm and in
    the second moment. Adding zeros makes it one dense tensor first. What came through
    a branch does not know its shape, but the variable does.
    """
    return [
        ops.zeros(v.shape, g.dtype) + g if hasattr(g, "indices") else g
        for g, v in zip(gradients, variables, strict=True)
    ]


def global_norm(gradients):
    """Returns the norm over all gradients, float32."""
    squares = [ops.sum(ops.square(ops.cast(g, "float32"))) for g in gradients]
    return ops.sqrt(ops.sum(ops.stack(squares)))


def wide_enough(dtype):
    """Returns a type of floats, or float32 in the place of one with 16 bits."""
    dtype = keras.backend.standardize_dtype(dtype)
    return "float32" if dtype in ("bfloat16", "float16") else dtype


def hooks():
    """Returns the names of Keras's private methods that `AdamW` overrides."""
    return [n for n in vars(AdamW) if n.startswith("_") and not n.startswith("__")]


def check_hooks():
    """Raises a `TypeError` if Keras has one of them no longer."""
    for name in hooks():
        if not callable(getattr(keras.optimizers.Optimizer, name, None)):
            raise TypeError(
                f"Keras {keras.__version__} has no Optimizer.{name}, which AdamW "
                "overrides, so that it would update wrongly. Install an earlier Keras."
            )
