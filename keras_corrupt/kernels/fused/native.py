"""The TensorFlow operation that runs compiled loops, without Python.

TensorFlow's C interface (its headers `c/ops.h`, `c/kernels.h`, `c/env.h`) registers an
operation whose kernel is a C function, which Numba compiles. There is one operation for
all: it takes the inputs, makes the outputs, and lets threads call the function of its
program, which an attribute names by its address.
"""

import ctypes
import functools
from pathlib import Path

import numpy as np
import tensorflow as tf
from llvmlite import binding, ir
from numba import cfunc, njit, types
from numba.core.types import ExternalFunction
from numba.extending import intrinsic

from keras_corrupt.kernels.fused.numbers import kept

OPERATION = "KerasCorruptKernel"

#: Values that are worth a piece of their own.
PIECE = 1 << 15
#: So that a thread that is held up holds up little.
PIECES_PER_THREAD = 2

# A program, in words: the address of a C function that takes a table; how many inputs
# are cut, and how many are whole; how many outputs; how many numbers are summed up; how
# many threads; the words of the table.
FUNCTION, CUT, WHOLE, OUTPUTS, SUMS, THREADS, WORDS = range(7)
# A table, in words: the next piece, how many there are, what length they are cut from;
# then address and shape of the arrays: what is cut, outputs, sums, what is whole.
NEXT, PIECES, LENGTH, ARRAYS = range(4)

Word, Int, Words = types.intp, types.int32, types.CPointer(types.intp)

LIBRARY = next(Path(tf.sysconfig.get_lib()).glob("libtensorflow_framework.*"))
binding.load_library_permanently(str(LIBRARY))


def c_function(result, *arguments):
    """Compiles a function that C calls, from its types."""
    return functools.partial(kept, functools.partial(cfunc, result(*arguments)))


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
start_thread = ExternalFunction("TF_StartThread", Word(Word, Word, Word, Word))
join_thread = ExternalFunction("TF_JoinThread", types.void(Word))


@intrinsic
def call(context, function, table):
    """Calls the C function at an address."""

    def code(context, builder, signature, args):
        kind = ir.FunctionType(ir.VoidType(), [args[1].type])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [args[1]])
        return context.get_dummy_value()

    return types.void(function, table), code


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
def _enter(table, at, tensor):
    """Writes a tensor's address and shape into the table; returns the place after."""
    table[at] = data_of(tensor)
    for i in range(rank_of(tensor)):
        table[at + 1 + i] = dimension_of(tensor, i)
    at += 1 + rank_of(tensor)
    delete_tensor(tensor)  # the operation holds it, too
    return at


@c_function(types.void, Words, Word)
def _compute(program, context):
    """Runs a program."""
    cut, whole = program[CUT], program[WHOLE]
    outputs, sums = program[OUTPUTS], program[SUMS]
    table, at = np.zeros(program[WORDS], np.intp), ARRAYS
    status, scratch, size = new_status(), np.zeros(1, np.intp), 0
    for i in range(cut):
        tensor = _input(context, i, scratch, status)
        table[LENGTH], size = dimension_of(tensor, 0), max(size, elements_of(tensor))
        at = _enter(table, at, tensor)
    for k in range(outputs):
        shape = _input(context, cut + whole + k, scratch, status)
        tensor = _output(context, k, shape, status)
        if tensor == 0:
            fail(context, status)
            delete_status(status)
            return
        at = _enter(table, at, tensor)
    most = min(table[LENGTH], size // PIECE, PIECES_PER_THREAD * program[THREADS])
    table[PIECES] = pieces = max(1, most)
    totals = np.empty((pieces, sums), np.float32)
    if sums > 0:
        table[at], table[at + 1], table[at + 2] = totals.ctypes.data, pieces, sums
        at += 3
    for i in range(cut, cut + whole):
        at = _enter(table, at, _input(context, i, scratch, status))

    threads = np.zeros(min(program[THREADS], pieces) - 1, np.intp)
    options, name = np.array([0, 0, -1], np.intp), np.zeros(1, np.intp)
    for i in range(len(threads)):
        threads[i] = start_thread(
            options.ctypes.data, name.ctypes.data, program[FUNCTION], table.ctypes.data
        )
    call(program[FUNCTION], table.ctypes.data)
    for i in range(len(threads)):
        join_thread(threads[i])

    if sums > 0:
        shape = _input(context, cut + whole + outputs, scratch, status)
        tensor = _output(context, outputs, shape, status)
        if tensor == 0:
            fail(context, status)
        else:
            total = floats_of(tensor)
            for j in range(sums):
                total[j] = np.float32(0.0)
                for i in range(table[PIECES]):
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
