"""The TensorFlow operation that runs compiled loops, without Python.

TensorFlow's C interface (its headers `c/ops.h`, `c/kernels.h`, `c/env.h`) registers an
operation whose kernel is a C function, which Numba compiles. There is one operation for
all: it takes the inputs, makes the outputs, and lets threads call the function of its
program, which an attribute names by its address.
"""

import ctypes
from pathlib import Path

import numpy as np
import tensorflow as tf
from llvmlite import binding
from numba import njit, types
from numba.core.types import ExternalFunction

from keras_corrupt.kernels.fused.numbers import c_function
from keras_corrupt.kernels.fused.threads import (
    ARRAYS,
    FUNCTION,
    LENGTH,
    PIECES,
    Int,
    Word,
    Words,
    share,
)

OPERATION = "KerasCorruptKernel"

#: Values that are worth a piece of their own.
PIECE = 1 << 15
#: So that a thread that is held up holds up little.
PIECES_PER_THREAD = 2

# A program, in words: the address of a C function that takes a job; how many inputs are
# cut, and how many are whole; how many outputs; how many numbers are summed up; how
# many threads; the pool of the others; the words of the job.
PROGRAM, CUT, WHOLE, OUTPUTS, SUMS, THREADS, POOL, WORDS = range(8)

LIBRARY = next(Path(tf.sysconfig.get_lib()).glob("libtensorflow_framework.*"))
binding.load_library_permanently(str(LIBRARY))


# === TensorFlow's functions ===

new_status = ExternalFunction("TF_NewStatus", Word())
delete_status = ExternalFunction("TF_DeleteStatus", types.void(Word))
fail = ExternalFunction("TF_OpKernelContext_Failure", types.void(Word, Word))
get_attribute = ExternalFunction(
    "TF_OpKernelConstruction_GetAttrInt64", types.void(Word, Word, Word, Word)
)
get_input = ExternalFunction("TF_GetInput", types.void(Word, Int, Word, Word))
dtype_of_output = ExternalFunction("TF_ExpectedOutputDataType", Int(Word, Int))
allocate_output = ExternalFunction(
    "TF_AllocateOutput", Word(Word, Int, Int, Word, Int, Word, Word)
)
delete_tensor = ExternalFunction("TF_DeleteTensor", types.void(Word))
data_of = ExternalFunction("TF_TensorData", Word(Word))
floats_of = ExternalFunction("TF_TensorData", types.CPointer(types.float32)(Word))
rank_of = ExternalFunction("TF_NumDims", Int(Word))
dimension_of = ExternalFunction("TF_Dim", Word(Word, Int))
elements_of = ExternalFunction("TF_TensorElementCount", Word(Word))


# === The kernel ===


@c_function(Word, Word)
def _create(construction):
    """Finds the program of a new operation."""
    name = np.array([112, 114, 111, 103, 114, 97, 109, 0], np.uint8)  # "program"
    program, status = np.zeros(1, np.int64), new_status()
    get_attribute(construction, name.ctypes.data, program.ctypes.data, status)
    delete_status(status)
    return program[0] + name[-1]  # `name` must live until here


@njit
def _input(context, i, scratch, status):
    get_input(context, i, scratch.ctypes.data, status)
    return scratch[0]


@njit
def _output(context, k, shape, status):
    """Makes an output of a shape that a tensor holds; 0 if there is no memory."""
    dtype, rank = dtype_of_output(context, k), dimension_of(shape, 0)
    tensor = allocate_output(context, k, dtype, data_of(shape), rank, 0, status)
    delete_tensor(shape)
    return tensor


@njit
def _enter(job, at, tensor):
    """Writes a tensor's address and shape into the job; returns the place after."""
    job[at] = data_of(tensor)
    for i in range(rank_of(tensor)):
        job[at + 1 + i] = dimension_of(tensor, i)
    at += 1 + rank_of(tensor)
    delete_tensor(tensor)  # the operation holds it, too
    return at


@c_function(types.void, Words, Word)
def _compute(program, context):
    """Runs a program."""
    cut, whole = program[CUT], program[WHOLE]
    outputs, sums = program[OUTPUTS], program[SUMS]
    job, at = np.zeros(program[WORDS], np.intp), ARRAYS
    job[FUNCTION] = program[PROGRAM]
    status, scratch, size = new_status(), np.zeros(1, np.intp), 0
    for i in range(cut):
        tensor = _input(context, i, scratch, status)
        job[LENGTH], size = dimension_of(tensor, 0), max(size, elements_of(tensor))
        at = _enter(job, at, tensor)
    for k in range(outputs):
        shape = _input(context, cut + whole + k, scratch, status)
        tensor = _output(context, k, shape, status)
        if tensor == 0:
            fail(context, status)
            delete_status(status)
            return
        at = _enter(job, at, tensor)
    most = min(job[LENGTH], size // PIECE, PIECES_PER_THREAD * program[THREADS])
    job[PIECES] = pieces = max(1, most)
    totals = np.empty((pieces, sums), np.float32)
    if sums > 0:
        job[at], job[at + 1], job[at + 2] = totals.ctypes.data, pieces, sums
        at += 3
    for i in range(cut, cut + whole):
        at = _enter(job, at, _input(context, i, scratch, status))

    helpers = min(program[THREADS], pieces) - 1
    share(program[POOL], job.ctypes.data, helpers)

    if sums > 0:
        shape = _input(context, cut + whole + outputs, scratch, status)
        tensor = _output(context, outputs, shape, status)
        if tensor == 0:
            fail(context, status)
        else:
            total = floats_of(tensor)
            for j in range(sums):
                total[j] = np.float32(0.0)
                for i in range(job[PIECES]):
                    total[j] += totals[i, j]
            delete_tensor(tensor)
    delete_status(status)


def _register():
    library = ctypes.CDLL(str(LIBRARY))

    def do(name, *arguments):
        function = getattr(library, name)
        function.restype = ctypes.c_void_p
        return function(
            *(ctypes.c_void_p(x) if isinstance(x, int) else x for x in arguments)
        )

    status = do("TF_NewStatus")
    definition = do("TF_NewOpDefinitionBuilder", OPERATION.encode())
    do("TF_OpDefinitionBuilderAddAttr", definition, b"program: int")
    do("TF_OpDefinitionBuilderAddAttr", definition, b"Tin: list(type)")
    do("TF_OpDefinitionBuilderAddAttr", definition, b"Tout: list(type)")
    do("TF_OpDefinitionBuilderAddInput", definition, b"inputs: Tin")
    do("TF_OpDefinitionBuilderAddOutput", definition, b"outputs: Tout")
    do(
        "TF_OpDefinitionBuilderSetShapeInferenceFunction",
        definition,
        library.TF_ShapeInferenceContextSetUnknownShape,
    )
    do("TF_RegisterOpDefinition", definition, status)
    kernel = do(
        "TF_NewKernelBuilder",
        OPERATION.encode(),
        b"CPU",
        _create.address,
        _compute.address,
        None,
    )
    do("TF_RegisterKernelBuilder", OPERATION.encode(), kernel, status)
    code = ctypes.c_int(do("TF_GetCode", status) or 0).value
    do("TF_DeleteStatus", status)
    if code:
        raise RuntimeError(f"TensorFlow {tf.__version__} did not register {OPERATION}.")


_register()
tf.no_gradient(OPERATION)  # the functions around it have theirs
