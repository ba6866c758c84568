"""One hand-vectorised kernel: the layers of a small network above its first, the hottest loop of
the project.

Numba's automatic vectorisation keeps the running sums of a matrix-vector product in memory; written
here in LLVM's vector types they stay in registers, which is about five times as fast. LLVM fits the
16-wide vectors to whatever the CPU has.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16
BLOCK = 2 * LANES  # outputs at a time, so that each input is loaded once for both vectors
# Inputs at a time, each with sums of its own, so that one addition need not wait for the last.
_STEPS = 4


@intrinsic
def dense_head(typingctx, acc, hidden, w2, b2, w3):
    """sum_j w3[j] * relu(b2[j] + sum_i relu(acc[i]) * w2[i, j]) as float32.

    Args:
        typingctx: Numba's; callers leave it out.
        acc: float32, shape (n,), n a multiple of 16.
        hidden: scratch space, float32, shape (n,).
        w2: float32, shape (n, m), C-contiguous, m a multiple of 32.
        b2: float32, shape (m,).
        w3: float32, shape (m,).
    """

    def codegen(context, builder, signature, args):
        f32 = ir.FloatType()
        i32 = ir.IntType(32)
        size = ir.IntType(64)
        vec = ir.VectorType(f32, LANES)
        arrays = [
            cgutils.create_struct_proxy(kind)(context, builder, value=value)
            for kind, value in zip(signature.args, args, strict=True)
        ]
        acc_at, hidden_at, w2_at, b2_at, w3_at = (array.data for array in arrays)
        n = builder.extract_value(arrays[0].shape, 0)
        m = builder.extract_value(arrays[3].shape, 0)
        zero = ir.Constant(vec, [0.0] * LANES)
        undefined = ir.Constant(vec, ir.Undefined)
        first_lane = ir.Constant(ir.VectorType(i32, LANES), [0] * LANES)

        def intrinsic_of(name, result, *arguments):
            kind = ir.FunctionType(result, arguments)
            return cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f32")

        fma = intrinsic_of("fma", vec, vec, vec, vec)
        vmax = intrinsic_of("maxnum", vec, vec, vec)
        reduce = intrinsic_of("vector.reduce.fadd", f32, f32, vec)

        def place(pointer, index):
            return builder.bitcast(builder.gep(pointer, [index]), vec.as_pointer())

        def load(pointer, index):
            return builder.load(place(pointer, index), align=4)

        with cgutils.for_range_slice(builder, size(0), n, size(LANES), inc=True) as (i, _):
            builder.store(builder.call(vmax, [load(acc_at, i), zero]), place(hidden_at, i), align=4)
        total = cgutils.alloca_once_value(builder, ir.Constant(f32, 0.0))
        with cgutils.for_range_slice(builder, size(0), m, size(BLOCK), inc=True) as (j, _):
            head = builder.append_basic_block("head")
            body = builder.append_basic_block("body")
            done = builder.append_basic_block("done")
            before = builder.block
            builder.branch(head)
            builder.position_at_end(head)
            i = builder.phi(size)
            i.add_incoming(size(0), before)
            sums = [[builder.phi(vec) for _half in range(2)] for _step in range(_STEPS)]
            builder.cbranch(builder.icmp_signed("<", i, n), body, done)
            builder.position_at_end(body)
            for step, halves in enumerate(sums):
                row = builder.add(i, size(step))
                x = builder.load(builder.gep(hidden_at, [row]))
                splat = builder.insert_element(undefined, x, i32(0))
                splat = builder.shuffle_vector(splat, undefined, first_lane)
                column = builder.add(builder.mul(row, m), j)
                for half, running in enumerate(halves):
                    weights = load(w2_at, builder.add(column, size(LANES * half)))
                    running.add_incoming(zero, before)
                    running.add_incoming(builder.call(fma, [splat, weights, running]), body)
            i.add_incoming(builder.add(i, size(_STEPS)), body)
            builder.branch(head)
            builder.position_at_end(done)
            parts = []
            for half in range(2):
                at = builder.add(j, size(LANES * half))
                out = load(b2_at, at)
                for halves in sums:
                    out = builder.fadd(out, halves[half])
                out = builder.call(vmax, [out, zero])
                parts.append(builder.fmul(out, load(w3_at, at)))
            both = builder.fadd(*parts)
            part = builder.call(reduce, [ir.Constant(f32, 0.0), both], fastmath=("reassoc",))
            builder.store(builder.fadd(builder.load(total), part), total)
        return builder.load(total)

    return types.float32(acc, hidden, w2, b2, w3), codegen
