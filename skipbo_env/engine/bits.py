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


@intrinsic
def subtract_kinds(typingctx, source, a, b, c, each, last, target, at):
    """Write 13 int32 cells from `at` on: `each`, in the last `last`, less the three cells of the
    source that lie as far behind a, b and c.
    """

    def codegen(context, builder, signature, args):
        row, i32 = ir.VectorType(ir.IntType(32), 13), ir.IntType(32)

        def place(kind, array, index):
            pointer = _cell_pointer(context, builder, kind, array, index)
            return builder.bitcast(pointer, row.as_pointer())

        every = builder.insert_element(ir.Constant(row, ir.Undefined), args[4], i32(0))
        first = ir.Constant(ir.VectorType(i32, 13), [0] * 13)
        left = builder.shuffle_vector(every, ir.Constant(row, ir.Undefined), first)
        left = builder.insert_element(left, args[5], i32(12))
        for index in args[1:4]:
            pointer = place(signature.args[0], args[0], index)
            left = builder.sub(left, builder.load(pointer, align=4))
        builder.store(left, place(signature.args[6], *args[6:]), align=4)
        return context.get_dummy_value()

    i64, i32 = types.int64, types.int32
    return types.void(source, i64, i64, i64, i32, i32, target, i64), codegen


@intrinsic
def subtract_bits(typingctx, word, target, at):
    """Take the lowest 13 bits of a uint64 off as many int32 cells from `at` on."""

    def codegen(context, builder, signature, args):
        row = ir.VectorType(ir.IntType(32), 13)
        bits = builder.trunc(args[0], ir.IntType(13))
        bits = builder.bitcast(bits, ir.VectorType(ir.IntType(1), 13))
        pointer = _cell_pointer(context, builder, signature.args[1], *args[1:])
        pointer = builder.bitcast(pointer, row.as_pointer())
        left = builder.sub(builder.load(pointer, align=4), builder.zext(bits, row))
        builder.store(left, pointer, align=4)
        return context.get_dummy_value()

    return types.void(types.uint64, target, types.int64), codegen


@intrinsic(prefer_literal=True)
def spread_ones(typingctx, word, target, at, n):
    """Write the lowest n (16 or 64) bits of a uint64 into float32 cells from `at` on as 1 or 0."""

    def codegen(context, builder, signature, args):
        lanes = signature.args[3].literal_value
        row = ir.VectorType(ir.FloatType(), lanes)
        bits = builder.trunc(args[0], ir.IntType(lanes)) if lanes < 64 else args[0]
        bits = builder.bitcast(bits, ir.VectorType(ir.IntType(1), lanes))
        ones, zeros = ir.Constant(row, [1.0] * lanes), ir.Constant(row, [0.0] * lanes)
        pointer = _cell_pointer(context, builder, signature.args[1], *args[1:3])
        pointer = builder.bitcast(pointer, row.as_pointer())
        builder.store(builder.select(bits, ones, zeros), pointer, align=4)
        return context.get_dummy_value()

    if isinstance(n, types.IntegerLiteral):
        return types.void(types.uint64, target, types.int64, n), codegen
    return None


@intrinsic
def spread_levels(typingctx, source, first, target, at):
    """For each of 16 int32 cells from `first` on write four float32 cells from `at` on: 1 where the
    cell is at least 1, 2, 3, 4, else 0.
    """

    def codegen(context, builder, signature, args):
        i32, f32 = ir.IntType(32), ir.FloatType()
        row = ir.VectorType(i32, 16)
        pointer = _cell_pointer(context, builder, signature.args[0], *args[:2])
        cells = builder.load(builder.bitcast(pointer, row.as_pointer()), align=4)
        fourfold = ir.Constant(ir.VectorType(i32, 64), [i // 4 for i in range(64)])
        cells = builder.shuffle_vector(cells, ir.Constant(row, ir.Undefined), fourfold)
        levels = ir.Constant(ir.VectorType(i32, 64), [i % 4 for i in range(64)])
        above = builder.icmp_signed(">", cells, levels)
        wide = ir.VectorType(f32, 64)
        ones, zeros = ir.Constant(wide, [1.0] * 64), ir.Constant(wide, [0.0] * 64)
        pointer = _cell_pointer(context, builder, signature.args[2], *args[2:])
        pointer = builder.bitcast(pointer, wide.as_pointer())
        builder.store(builder.select(above, ones, zeros), pointer, align=4)
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64), codegen


@intrinsic(prefer_literal=True)
def divide_cells(typingctx, source, first, most, divisor, target, at, n):
    """Write n (a constant) int32 cells from `first` on, `most` at most, divided by a float32, into
    float32 cells from `at` on.
    """

    def codegen(context, builder, signature, args):
        lanes = signature.args[6].literal_value
        i32, f32 = ir.IntType(32), ir.FloatType()
        row, wide = ir.VectorType(i32, lanes), ir.VectorType(f32, lanes)
        lane_0 = ir.Constant(ir.VectorType(i32, lanes), [0] * lanes)

        def splat(value, kind):
            whole = builder.insert_element(ir.Constant(kind, ir.Undefined), value, i32(0))
            return builder.shuffle_vector(whole, ir.Constant(kind, ir.Undefined), lane_0)

        pointer = _cell_pointer(context, builder, signature.args[0], *args[:2])
        cells = builder.load(builder.bitcast(pointer, row.as_pointer()), align=4)
        bound = splat(args[2], row)
        cells = builder.select(builder.icmp_signed("<", cells, bound), cells, bound)
        shares = builder.fdiv(builder.sitofp(cells, wide), splat(args[3], wide))
        pointer = _cell_pointer(context, builder, signature.args[4], *args[4:6])
        builder.store(shares, builder.bitcast(pointer, wide.as_pointer()), align=4)
        return context.get_dummy_value()

    if isinstance(n, types.IntegerLiteral):
        kinds = (source, types.int64, types.int32, types.float32, target, types.int64, n)
        return types.void(*kinds), codegen
    return None


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
