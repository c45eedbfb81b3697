"""Batches of several tasks' sentences, and of sentences that are every task's."""

import numpy as np


def drawn(count, num_tasks, *seed):
    """Returns the number of a task for each batch, drawn at random."""
    return np.random.default_rng(seed).integers(num_tasks, size=count)


class TaskBatches:
    """Batches of several kinds in an order, each with the number of a task.

    Which batch is which depends on its number alone.

    Args:
        kinds: A list of `SentenceBatches`.
        tasks: For each batch the number of its task.
        drawn: For each batch the number of its kind; its task's if not given.
    """

    def __init__(self, kinds, tasks, drawn=None):
        self.kinds, self.tasks = kinds, tasks
        self.drawn = tasks if drawn is None else drawn
        self.lengths = np.concatenate([kind.lengths for kind in kinds])
        #: How many batches of the same kind come before each.
        self.earlier = np.zeros(len(tasks), int)
        for kind in range(len(kinds)):
            mine = self.drawn == kind
            self.earlier[mine] = np.arange(mine.sum())

    def batch(self, number):
        """Returns `(inputs, tags)`, with the number of the batch's task."""
        kind = self.kinds[self.drawn[number]]
        inputs, tags = kind.batch(self.earlier[number])
        task = np.full_like(inputs["labelled"], self.tasks[number])
        return {**inputs, "task": task}, tags
