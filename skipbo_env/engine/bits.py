"""Machine instructions that Numba has no name for, on the bits of a word and on array cells.

Each is plain LLVM, which turns it into the best that the CPU has. The array ones check no bounds.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def popcount(typingctx, word):
    """How many bits of a uint64 are set."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@intrinsic
def lowest_bit(typingctx, word):
    """The place of a uint64's lowest set bit; the word must not be 0."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


def _cell_pointer(context, builder, array_type, array, index):
    """The address of cell `index` of a C-contiguous array of one dimension."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [index])


@intrinsic
def prefetch(typingctx, array, index):
    """Have the CPU bring the line of cell `index` into its cache; any index will do."""

    def codegen(context, builder, signature, args):
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        pointer = builder.bitcast(_cell_pointer(context, builder, array, *args), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        # For a write, to stay in the nearest cache, data and not code.
        builder.call(fetch, [pointer, word(1), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


@intrinsic
def positive_cells(typingctx, array, first):
    """A uint64 whose bit i, 0 to 15, is set where cell first + i of an int32 array is above 0."""

    def codegen(context, builder, signature, args):
        row = ir.VectorType(ir.IntType(32), 16)
        pointer = _cell_pointer(context, builder, signature.args[0], *args)
        cells = builder.load(builder.bitcast(pointer, row.as_pointer()), align=4)
        above = builder.icmp_signed(">", cells, ir.Constant(row, None))
        return builder.zext(builder.bitcast(above, ir.IntType(16)), ir.IntType(64))

    return types.uint64(array, types.int64), codegen


@intrinsic
def spread_bits(typingctx, word, array, first):
    """Write the bits of a uint64, lowest first, into the cells [first, first + 64), int8."""

    def codegen(context, builder, signature, args):
        row = ir.VectorType(ir.IntType(8), 64)
        pointer = _cell_pointer(context, builder, signature.args[1], *args[1:])
        bits = builder.bitcast(args[0], ir.VectorType(ir.IntType(1), 64))
        target = builder.bitcast(pointer, row.as_pointer())
        builder.store(builder.zext(bits, row), target, align=1)
        return context.get_dummy_value()

    return types.void(types.uint64, array, types.int64), codegen


@intrinsic(prefer_literal=True)
def narrow_cells(typingctx, source, first, target, at, n):
    """Copy n (a constant) int32 cells from `first` on to int8 cells from `at` on, 127 at most."""

    def codegen(context, builder, signature, args):
        lanes = signature.args[4].literal_value
        row = ir.VectorType(ir.IntType(32), lanes)
        narrow = ir.VectorType(ir.IntType(8), lanes)
        pointer = _cell_pointer(context, builder, signature.args[0], *args[:2])
        cells = builder.load(builder.bitcast(pointer, row.as_pointer()), align=4)
        most = ir.Constant(row, [127] * lanes)
        cells = builder.select(builder.icmp_signed("<", cells, most), cells, most)
        pointer = _cell_pointer(context, builder, signature.args[2], *args[2:4])
        pointer = builder.bitcast(pointer, narrow.as_pointer())
        builder.store(builder.trunc(cells, narrow), pointer, align=1)
        return context.get_dummy_value()

    if isinstance(n, types.IntegerLiteral):
        return types.void(source, types.int64, target, types.int64, n), codegen
    return None
