"""`huggingface`, compiled by `torch.compile`, which needs a C++ compiler."""

import functools

from benchmarks.peers import huggingface

make_step = functools.partial(huggingface.make_step, compiled=True)
