"""Weights & Biases and MLflow: they get each row of `metrics.csv`, as TensorBoard does.

A continued run goes on in the run of the service that it began: `trackers.json` in its
directory has the id. No trouble of a service stops training.
"""

import contextlib
import importlib
import json
import sys

from keras_corrupt.files.whole import write_whole

TRACKERS_FILE = "trackers.json"


class Wandb:
    """A run in Weights & Biases.

    Args:
        project: Name of its project.
    """

    module = "wandb"

    def __init__(self, project):
        self.project, self.run = project, None

    def start(self, directory, settings, run_id):
        """Starts a run, or goes on with one.

        Args:
            directory: The run's directory, a `Path`.
            settings: Its settings, a dict.
            run_id: What an earlier call returned, or `None`.

        Returns:
            The id of the run.
        """
        import wandb

        new = {} if run_id else {"config": settings, "name": directory.name}
        self.run = wandb.init(
            project=self.project, id=run_id, resume="allow", dir=str(directory), **new
        )
        # A run that returns to a checkpoint has some steps twice, which W&B's own count
        # of steps would refuse.
        self.run.define_metric("step")
        self.run.define_metric("*", step_metric="step")
        return self.run.id

    def log(self, row):
        """Sends a row of `metrics.csv`."""
        self.run.log(row)

    def finish(self, well):
        """Ends the run; says whether well."""
        self.run.finish(exit_code=0 if well else 1)


class Mlflow:
    """A run in MLflow.

    Args:
        where: Name of its experiment, or the address of a server (`http://...`) or a
            store (`sqlite:///...`).
    """

    module = "mlflow"

    def __init__(self, where):
        self.where = where

    def start(self, directory, settings, run_id):
        """See `Wandb.start`."""
        import mlflow

        if "://" in self.where:
            mlflow.set_tracking_uri(self.where)
        else:
            mlflow.set_experiment(self.where)
        run = mlflow.start_run(
            run_id=run_id, run_name=None if run_id else directory.name
        )
        if not run_id:
            mlflow.log_params(flat(settings))
        return run.info.run_id

    def log(self, row):
        """See `Wandb.log`."""
        import mlflow

        metrics = {name: value for name, value in row.items() if name != "step"}
        mlflow.log_metrics(metrics, step=row["step"])

    def finish(self, well):
        """See `Wandb.finish`."""
        import mlflow

        mlflow.end_run("FINISHED" if well else "FAILED")


class Tracker:
    """Sends rows to a service, and warns once if it fails.

    Args:
        service: A `Wandb` or an `Mlflow`.
        directory: The run's directory, a `Path`.
        settings: Its settings, a dict.
    """

    def __init__(self, service, directory, settings):
        self.service, self.key = service, service.module  # the key in `trackers.json`
        self.path, self.settings = directory / TRACKERS_FILE, settings
        self.unsent, self.warned = [], False
        self.running = None  # not started yet

    def start(self):
        """Starts the service's run, the first time."""
        if self.running is None:
            self.running = self._tries(self._start)

    def _start(self):
        run_ids = json.loads(self.path.read_text()) if self.path.exists() else {}
        run_id = self.service.start(
            self.path.parent, self.settings, run_ids.get(self.key)
        )
        text = json.dumps(run_ids | {self.key: run_id}, indent=1) + "\n"
        write_whole(self.path, text)

    def log(self, row):
        """Sends a row, and those that could not be sent before."""
        if self.running:
            self.unsent.append(row)
            self._tries(self._send)

    def _send(self):
        while self.unsent:
            self.service.log(self.unsent[0])
            del self.unsent[0]

    def finish(self, well):
        """Ends the service's run.

        Args:
            well: Whether training ended without an error.
        """
        if self.running:
            self._tries(lambda: self.service.finish(well))

    def _tries(self, action):
        """Does something; returns whether it worked."""
        try:
            action()
            return True
        except Exception as error:  # a service's own errors, and networks' errors
            if not self.warned:
                print(
                    f"\nWarning: --{self.key} does not follow this run "
                    f"({type(error).__name__}: {error}). Training goes on; metrics.csv "
                    "and TensorBoard have all metrics.",
                    file=sys.stderr,
                )
            self.warned = True
            return False


@contextlib.contextmanager
def following(config, directory, settings):
    """Has the services that a configuration names follow a run.

    Args:
        config: Has `wandb` and `mlflow`: what to follow it by, or `None`.
        directory: The run's directory, a `Path`.
        settings: The run's settings, a dict.

    Yields:
        The `Tracker`s, none of them started.

    Raises:
        ValueError: A library is not installed.
    """
    asked = [(Wandb, config.wandb), (Mlflow, config.mlflow)]
    services = [service(where) for service, where in asked if where]
    for service in services:
        try:
            importlib.import_module(service.module)
        except ImportError as error:
            raise ValueError(
                f"--{service.module} needs its library ({error}): "
                f"pip install -e '.[{service.module}]'."
            ) from error
    trackers = [Tracker(s, directory, settings) for s in services]
    well = False
    try:
        yield trackers
        well = True
    finally:
        for tracker in trackers:
            tracker.finish(well)


def flat(settings, prefix=""):
    """Returns nested settings as one dict.

    >>> flat({"steps": 5, "objective": {"generator": {"num_layers": 2}}})
    {'steps': 5, 'objective.generator.num_layers': 2}
    """
    flattened = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flattened |= flat(value, f"{prefix}{name}.")
        else:
            flattened[prefix + name] = value
    return flattened
