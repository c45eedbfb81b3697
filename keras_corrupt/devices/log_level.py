"""What TensorFlow's own log shows."""

import os


def hide_start_up_lines():
    """Hides what TensorFlow logs of CPUs, drivers and streams that end.

    For commands, before TensorFlow is imported: what is an error comes as an exception,
    too. The environment variable `TF_CPP_MIN_LOG_LEVEL`, if it is set, decides instead.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
