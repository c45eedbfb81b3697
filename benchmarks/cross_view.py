"""What comparisons of Cross-View Training have in common."""

import ast
import dataclasses
import json
from pathlib import Path

from keras_corrupt import cross_view
from keras_corrupt.cross_view.images import setup as images
from keras_corrupt.cross_view.run import sentences
from keras_corrupt.training.run_directory import check_same_run, settings_in


@dataclasses.dataclass(kw_only=True)
class CrossViewSettings:
    """What all runs have."""

    unlabelled: tuple[str, ...]
    """Text or images without labels, for Cross-View Training."""
    output: str
    """Directory for the runs, the table and the plot."""
    preset: str = "tiny"
    """Size of the networks, or a pretrained encoder."""
    seeds: int = 3
    """Runs of each."""
    first_seed: int = 0
    """Seed of the first; with it, several machines can share the seeds."""
    steps: int = 2000
    """Updates of each run."""
    batch_size: int = 32
    """Sentences or images in an update."""
    max_unlabelled: int = 100_000
    """Unlabelled sentences or images, at most."""
    ema: float = 0.99
    """Momentum of the average of the weights."""
    options: dict[str, str] = dataclasses.field(default_factory=dict)
    """Other settings of all runs, as the task's recipe has them: `--options
    unlabelled_dropout 0.4 channels "(8, 8, 8, 16, 16, 16, 32, 16, 8)"`."""

    def configuration(
        self, config_class, name, seed, with_text, steps=None, start=None, **own
    ):
        """Returns the configuration of a run.

        Args:
            config_class: `CrossViewConfig` or one derived from it.
            name: What the run is called.
            seed: Its seed.
            with_text: Whether it learns from what has no labels, too.
            steps: Its updates, if not `self.steps`.
            start: Directory of a run whose encoder it starts from, if any.
            own: Other settings of its own.
        """
        steps = steps or self.steps
        options = {name: value_of(text) for name, text in self.options.items()}
        if start:
            preset = str(Path(start, "preset"))
            own |= {"preset": preset, "word_vectors": None, "lstm_size": None}
        return config_class(
            output=str(self.directory(name, seed)),
            steps=steps,
            interval=max(steps // 5, 1),
            batch_size=self.batch_size,
            ema=self.ema,
            seed=seed,
            **{
                "preset": self.preset,
                "unlabelled": self.unlabelled if with_text else (),
                "max_unlabelled": self.max_unlabelled,
            }
            | options
            | own,
        )

    def all_seeds(self):
        """Returns the seeds of the runs."""
        return range(self.first_seed, self.first_seed + self.seeds)

    def directory(self, name, seed):
        """Returns where a run is."""
        return Path(self.output, "runs", f"{name}, seed {seed}")


def value_of(text):
    """Returns what an option's text means: Python's literals, or itself.

    >>> value_of("0.4"), value_of("(8, 16)"), value_of("auto")
    (0.4, (8, 16), 'auto')
    """
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def check(task, config):
    """Raises an error if settings, text or images of a run cannot work."""
    config.check()
    if isinstance(config, cross_view.ImageConfig):
        images.check_task(task, config)
        images.unlabelled_images(config, task.splits["train"].examples)
    else:
        sentences.check_task(task, config)
        sentences.unlabelled_of(config)


def finish(task, config, outputs=()):
    """Trains, unless it has been done.

    Args:
        task: The task, or a list of those learned together.
        config: The run's configuration.
        outputs: Where it leaves results, if not in its own directory.

    Raises:
        ValueError: It has been done with other settings.
    """
    if all(results_of(output).exists() for output in outputs or [config.output]):
        uncompared = {*config.FILES, "dtype"}
        settings = config.as_dict().items()
        asked = {n: v for n, v in settings if v is not None and n not in uncompared}
        done = settings_in(Path(config.output))
        check_same_run(config.output, {n: done.get(n) for n in asked}, asked)
        return
    print(f"\n=== {Path(config.output).name} ===", flush=True)
    if cross_view.train(task, config) is None:
        raise SystemExit(130)


def score(task, output):
    """Returns a task's main score, on the sentences to evaluate on."""
    return json.loads(results_of(output).read_text())["dev"][task.main_metric]


def results_of(output):
    return Path(output, "results.json")
