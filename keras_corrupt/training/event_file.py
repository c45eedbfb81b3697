"""Scalars in a file that TensorBoard reads, written without TensorFlow."""

import socket
import time


class EventFile:
    """A new event file.

    TensorBoard's own `EventFileWriter` would load TensorFlow wherever it is installed,
    only to open the file.

    Args:
        directory: The file's directory, a `Path`; made if there is none.
    """

    def __init__(self, directory):
        from tensorboard.compat.proto import event_pb2
        from tensorboard.plugins.scalar.summary_v2 import scalar_pb
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._scalar = event_pb2.Event, scalar_pb
        directory.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{time.time():017.6f}.{socket.gethostname()}"
        self._file = RecordWriter(open(directory / name, "xb"))  # noqa: SIM115
        self._write(file_version="brain.Event:2")

    def add(self, step, scalars):
        """Appends the values of scalars, name -> number, after `step` updates."""
        for name, value in scalars.items():
            self._write(step=step, summary=self._scalar(name, value))
        self._file.flush()

    def _write(self, **fields):
        event = self._event(wall_time=time.time(), **fields)
        self._file.write(event.SerializeToString())

    def close(self):
        """Ends the file."""
        self._file.close()
