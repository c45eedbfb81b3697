"""All that a model learns from."""

from collections.abc import Mapping


class Objectives(Mapping):
    """Name of a loss term -> its `Objective`; what all of them say together.

    Args:
        objectives: Dict. Name -> `Objective`. One without a weight is measured alone.
        kept: Name of the network that is kept, which learns from objectives that name
            no network.
    """

    def __init__(self, objectives, kept):
        self._objectives, self.kept = objectives, kept

    def __getitem__(self, term):
        return self._objectives[term]

    def __iter__(self):
        return iter(self._objectives)

    def __len__(self):
        return len(self._objectives)

    @property
    def weights(self):
        """Name of a loss term -> its weight, without those that are measured alone."""
        weights = {term: objective.weight for term, objective in self.items()}
        return {term: weight for term, weight in weights.items() if weight is not None}

    @property
    def metric_names(self):
        """Validation metric -> its name for people, in the order of the table."""
        names = (objective.metric_names for objective in self.values())
        return {metric: name for part in names for metric, name in part.items()}

    @property
    def vital_metrics(self):
        """Validation metrics that show whether the model is alive."""
        vital = (objective.vital_metrics for objective in self.values())
        return ("token_spread", *(name for names in vital for name in names))

    def update_metrics(self, outputs):
        """Updates the metrics of all: see `Objective.update_metrics`."""
        for objective in self.values():
            objective.update_metrics(outputs)

    def baselines(self, metrics, unigram):
        """Returns what guessing reaches: see `Objective.baselines`."""
        baselines = {}
        for objective in self.values():
            baselines |= objective.baselines(metrics, unigram)
        return baselines

    def warnings(self, metrics, unigram, networks=()):
        """Yields what looks wrong: see `Objective.warnings`.

        Args:
            metrics: The model's validation metrics.
            unigram: `Unigram`, the scores of guessing tokens by frequency.
            networks: Names of the networks that are trained now, if not all are: what
                others learn from is left out.
        """
        for objective in self.values():
            if not networks or (objective.network or self.kept) in networks:
                yield from objective.warnings(metrics, unigram)

    @property
    def shown(self):
        """The objective whose view of examples is shown: the last that has one."""
        having = [o for o in self.values() if o.examples_legend]
        return having[-1] if having else None

    @property
    def examples_legend(self):
        """How to read the examples of a model."""
        return self.shown.examples_legend if self.shown else ""
