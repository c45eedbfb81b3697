"""How a thread's processor rounds, and whether it takes denormal numbers for zero.

TensorFlow sets this for its own threads. Elsewhere than on x86-64 and AArch64 the
functions do nothing.
"""

import platform

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

# LLVM has intrinsics for this, and needs a parser of assembly for anything else.
_X86 = platform.machine() in ("x86_64", "AMD64")
_ARM = platform.machine() in ("aarch64", "arm64")


@intrinsic
def float_mode(context):
    """Returns the mode of the thread: MXCSR on x86-64, FPCR on AArch64, else 0."""

    def code(context, builder, signature, args):
        word = context.get_value_type(types.intp)
        if _X86:  # which goes through memory
            slot = cgutils.alloca_once(builder, ir.IntType(32))
            _call(builder, "x86.sse.stmxcsr", ir.VoidType(), _bytes(builder, slot))
            return builder.zext(builder.load(slot), word)
        return _call(builder, "aarch64.get.fpcr", word) if _ARM else word(0)

    return types.intp(), code


@intrinsic
def set_float_mode(context, mode):
    """Sets the mode of the thread to what `float_mode` returned."""

    def code(context, builder, signature, args):
        (mode,) = args
        if _X86:
            slot = cgutils.alloca_once(builder, ir.IntType(32))
            builder.store(builder.trunc(mode, ir.IntType(32)), slot)
            _call(builder, "x86.sse.ldmxcsr", ir.VoidType(), _bytes(builder, slot))
        if _ARM:
            _call(builder, "aarch64.set.fpcr", ir.VoidType(), mode)
        return context.get_dummy_value()

    return types.void(types.intp), code


def _bytes(builder, address):
    return builder.bitcast(address, ir.IntType(8).as_pointer())


def _call(builder, name, result, *args):
    """Calls an intrinsic of LLVM."""
    kind = ir.FunctionType(result, [x.type for x in args])
    function = builder.module.declare_intrinsic(f"llvm.{name}", fnty=kind)
    return builder.call(function, args)
