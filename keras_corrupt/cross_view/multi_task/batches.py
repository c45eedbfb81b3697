"""Batches of several tasks' sentences, and of what is every task's."""

import numpy as np


class RandomTasks:
    """Batches of one task each, drawn at random (Clark's thesis, 4.1.2).

    Which batch is which depends on its number alone.

    Args:
        kinds: For each task the `SentenceBatches` of its labelled sentences.
        count: Batches that will be asked for, at most.
        seed: Of the draws.
    """

    def __init__(self, kinds, count, seed):
        self.kinds = kinds
        self.lengths = np.concatenate([kind.lengths for kind in kinds])
        self.tasks = np.random.default_rng((seed, 1)).integers(len(kinds), size=count)
        #: How many batches of the same task come before each.
        self.earlier = np.zeros(count, int)
        for task in range(len(kinds)):
            mine = self.tasks == task
            self.earlier[mine] = np.arange(mine.sum())

    def batch(self, number):
        """Returns `(inputs, tags)`, with the number of the batch's task."""
        task = self.tasks[number]
        inputs, tags = self.kinds[task].batch(self.earlier[number])
        return of_task(inputs, task), tags


class WithTasks:
    """Batches of other sentences, each with the number of a task.

    Args:
        batches: `SentenceBatches`.
        tasks: For each batch the number of its task.
    """

    def __init__(self, batches, tasks):
        self.batches, self.lengths, self.tasks = batches, batches.lengths, tasks

    def batch(self, number):
        """Returns `(inputs, tags)`, with the number of the batch's task."""
        inputs, tags = self.batches.batch(number)
        return of_task(inputs, self.tasks[number]), tags


def of_task(inputs, task):
    """Returns a batch's inputs with the number of its task for each sentence."""
    return {**inputs, "task": np.full_like(inputs["labelled"], task)}
