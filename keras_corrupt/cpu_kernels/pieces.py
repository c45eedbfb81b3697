"""What the threads of an operation run: a kernel, on one piece after the other."""

import functools
import types

import numpy as np
from llvmlite import ir
from numba.core import types as numba_types
from numba.extending import intrinsic
from numba.np import arrayobj

from keras_corrupt.cpu_kernels import threads
from keras_corrupt.cpu_kernels.compiling import c_function


@functools.cache  # which keeps the C function where programs find it
def pieces_of(kernel, sliced, sums, whole):
    """Compiles the C function that takes a job and does pieces until none is left.

    Args:
        kernel: As in `program`.
        sliced: Data type and rank of each array that the kernel gets a slice of.
        sums: The same of the sums, or nothing.
        whole: The same of the other arrays.

    Returns:
        Numba's C function, and the number of words in the job.
    """
    groups = (sliced, sums, whole)
    examples = [tuple(np.empty((0,) * n, t) for t, n in x) for x in groups]
    words = [sum(1 + n for _, n in x) for x in groups]
    _, sums_start, whole_start, end = np.cumsum([threads.ARRAYS, *words]).tolist()
    # The kernel's file may stand elsewhere; Numba's cache notices the file's edits.
    place, code = kernel.py_func.__code__, _pieces.__code__
    function = types.FunctionType(
        code.replace(
            co_filename=place.co_filename, co_firstlineno=place.co_firstlineno
        ),
        {
            **globals(),
            "KERNEL": kernel,
            "SLICED": examples[0],
            "SUMS": examples[1],
            "WHOLE": examples[2],
            "SUMS_START": sums_start,
            "WHOLE_START": whole_start,
        },
    )
    # Numba's cache knows the function by its file, line and name.
    kinds = ("_".join(f"{np.dtype(t).name}x{n}" for t, n in x) for x in groups)
    function.__qualname__ = "__".join([kernel.py_func.__name__, *kinds])
    function.__module__ = kernel.py_func.__module__
    return c_function(numba_types.void, threads.Words)(function), end


# Where `_pieces` finds what `pieces_of` gives it.
KERNEL = SLICED = SUMS = WHOLE = SUMS_START = WHOLE_START = None


def _pieces(job):
    count, length = job[threads.PIECES], job[threads.LENGTH]
    i = _take(job)
    while i < count:
        first, last = length * i // count, length * (i + 1) // count
        slices = _arrays(job, threads.ARRAYS, SLICED, first, last)
        sums = _arrays(job, SUMS_START, SUMS, i, i + 1)
        whole = _arrays(job, WHOLE_START, WHOLE, None, None)
        KERNEL(first, *(slices + sums + whole))
        i = _take(job)


@intrinsic
def _take(context, job):
    """Counts a piece; returns the count before."""

    def code(context, builder, signature, args):
        word = args[0].type.pointee
        count = builder.gep(args[0], [ir.Constant(word, threads.NEXT)])
        return builder.atomic_rmw("add", count, ir.Constant(word, 1), "monotonic")

    return job.dtype(job), code


@intrinsic
def _arrays(context, job, start, examples, first, last):
    """Makes the arrays that a job lists from `start` on, or slices of them."""
    kinds = [example.copy(readonly=False) for example in examples]
    types = numba_types.Tuple([k if k.ndim else k.dtype for k in kinds])

    def code(context, builder, signature, args):
        job, at, _, first, last = args
        sliced = signature.args[3] != numba_types.none

        def word(i):
            return builder.load(builder.gep(job, [builder.add(at, at.type(i))]))

        values = []
        for kind in kinds:
            item = context.get_data_type(kind.dtype)
            size = at.type(context.get_abi_sizeof(item))
            address, *shape = (word(i) for i in range(1 + kind.ndim))
            at = builder.add(at, at.type(1 + kind.ndim))
            strides = [size]
            for n in reversed(shape[1:]):
                strides.insert(0, builder.mul(strides[0], n))
            if sliced:
                address = builder.add(address, builder.mul(first, strides[0]))
                shape[0] = builder.sub(last, first)
            data = builder.inttoptr(address, item.as_pointer())
            if kind.ndim:
                array = arrayobj.make_array(kind)(context, builder)
                arrayobj.populate_array(array, data, shape, strides, size, meminfo=None)
                values.append(array._getvalue())
            else:
                values.append(builder.load(data))
        return context.make_tuple(builder, types, values)

    return types(job, start, examples, first, last), code
