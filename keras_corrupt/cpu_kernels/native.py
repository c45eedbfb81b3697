"""The TensorFlow operation that runs compiled loops, without Python.

TensorFlow's C interface (its headers `c/ops.h`, `c/kernels.h`, `c/env.h`) registers an
operation whose kernel is a C function, which Numba compiles. There is one operation for
all: it takes the inputs, makes the outputs, and lets threads call the function of its
program, which an attribute names by its address. Another attribute has a random number
of the process, so that a graph that another process made is refused: there is something
else at that address.
"""

import ctypes
import functools
import secrets
from pathlib import Path

import numpy as np
import tensorflow as tf
from llvmlite import binding
from numba import njit, types
from numba.extending import intrinsic

from keras_corrupt.cpu_kernels.compiling import c_function, external
from keras_corrupt.cpu_kernels.threads import (
    ARRAYS,
    FUNCTION,
    LENGTH,
    PIECES,
    Int,
    Word,
    Words,
    run_pieces,
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

LIBRARY = next(Path(tf.sysconfig.get_lib()).glob("libtensorflow_framework.*"), None)
if LIBRARY is None:
    raise ImportError(f"{tf.sysconfig.get_lib()} has no libtensorflow_framework")
binding.load_library_permanently(str(LIBRARY))


# === TensorFlow's functions ===

_tensorflow = functools.partial(external, library=LIBRARY)
new_status = _tensorflow("TF_NewStatus", Word)
set_status = _tensorflow("TF_SetStatus", types.void, Word, Int, Word)
delete_status = _tensorflow("TF_DeleteStatus", types.void, Word)
fail = _tensorflow("TF_OpKernelContext_Failure", types.void, Word, Word)
refuse = _tensorflow("TF_OpKernelConstruction_Failure", types.void, Word, Word)
get_attribute = _tensorflow(
    "TF_OpKernelConstruction_GetAttrInt64", types.void, Word, Word, Word, Word
)
get_input = _tensorflow("TF_GetInput", types.void, Word, Int, Word, Word)
dtype_of_output = _tensorflow("TF_ExpectedOutputDataType", Int, Word, Int)
allocate_output = _tensorflow(
    "TF_AllocateOutput", Word, Word, Int, Int, Word, Int, Word, Word
)
delete_tensor = _tensorflow("TF_DeleteTensor", types.void, Word)
data_of = _tensorflow("TF_TensorData", Word, Word)
floats_of = _tensorflow("TF_TensorData", types.CPointer(types.float32), Word)
rank_of = _tensorflow("TF_NumDims", Int, Word)
dimension_of = _tensorflow("TF_Dim", Word, Word, Int)
elements_of = _tensorflow("TF_TensorElementCount", Word, Word)


# === The kernel ===

#: Tells this process from others; a positive number, as TensorFlow's attributes are.
PROCESS = secrets.randbits(63)
# The compiled code is cached, so it finds the number by a name.
_process = np.array([PROCESS], np.int64)
binding.add_symbol("keras_corrupt_process", _process.ctypes.data)


@intrinsic
def _this_process(context):
    """Returns `PROCESS`."""

    def code(context, builder, signature, args):
        word = context.get_value_type(types.int64)
        return builder.load(context.get_c_value(builder, word, "keras_corrupt_process"))

    return types.int64(), code


def _c_string(text):
    return np.frombuffer(text.encode() + b"\0", np.uint8)


PROGRAM_NAME, PROCESS_NAME = _c_string("program"), _c_string("process")
FAILED_PRECONDITION = 9
OF_ANOTHER_PROCESS = _c_string(
    "Another process made this graph, with keras_corrupt's CPU kernels, which are in "
    "that process only. Save a graph of inference (`export_saved_model`), or trace the "
    "training step with the environment variable KERAS_CORRUPT_KERNELS=plain."
)


@c_function(Word, Word)
def _create(construction):
    """Finds the program of a new operation, unless another process made it."""
    program, process = np.zeros(1, np.int64), np.zeros(1, np.int64)
    status = new_status()
    for name, value in ((PROGRAM_NAME, program), (PROCESS_NAME, process)):
        get_attribute(construction, name.ctypes.data, value.ctypes.data, status)
    if process[0] != _this_process():
        set_status(status, FAILED_PRECONDITION, OF_ANOTHER_PROCESS.ctypes.data)
        refuse(construction, status)
    delete_status(status)
    return program[0]


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
    run_pieces(program[POOL], job.ctypes.data, helpers)

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
    do("TF_OpDefinitionBuilderAddAttr", definition, b"process: int")
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
