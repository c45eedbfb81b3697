"""GLUE: its tasks, WNLI as ranking, and what papers report."""

from keras_corrupt.tasks.glue.glue import TASKS, GlueTask
from keras_corrupt.tasks.glue.winograd import WinogradTask

__all__ = ["TASKS", "GlueTask", "WinogradTask"]
