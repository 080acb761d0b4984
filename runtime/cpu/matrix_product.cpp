//===- matrix_product.cpp - A matrix product by oneDNN --------------------===//

#include "runtime/cpu/matrix_product.h"

#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>

#include <omp.h>

#include "runtime/backend/element.h"
#include "runtime/cpu/numbers.h"

namespace mtplan::runtime::cpu {

//===----------------------------------------------------------------------===//
// Products by oneDNN
//===----------------------------------------------------------------------===//

namespace {

const dnnl::engine &engine() {
  static const dnnl::engine kEngine(dnnl::engine::kind::cpu, 0);
  return kEngine;
}

dnnl::memory::data_type dataType(ElementType type) {
  return type == ElementType::bf16 ? dnnl::memory::data_type::bf16
                                   : dnnl::memory::data_type::f32;
}

/// Describes a matrix. oneDNN rejects some strides of a single row or column,
/// so the unused stride is replaced.
dnnl::memory::desc matrix(std::int64_t rows, std::int64_t columns,
                          ElementType type, std::int64_t row,
                          std::int64_t column) {
  if (rows == 1)
    row = std::max<std::int64_t>(1, columns * column);
  if (columns == 1)
    column = std::max<std::int64_t>(1, row == 1 ? rows : 1);
  return {{rows, columns}, dataType(type), dnnl::memory::dims{row, column}};
}

} // namespace

struct MatrixProduct::State {
  dnnl::memory::desc bPlain, bPacked, scratch;
  dnnl::matmul product;
  dnnl::reorder reorder;
  bool biased = false, packed = false;

  struct Hands {
    dnnl::stream stream;
    dnnl::memory a, b, bias, c, scratch, from;
  };
  std::vector<Hands> hands;
};

MatrixProduct::MatrixProduct(const MatrixShape &shape, int threads)
    : state(std::make_unique<State>()) {
  // oneDNN chooses block sizes for the current number of OpenMP threads.
  omp_set_num_threads(1);
  const auto a =
      matrix(shape.m, shape.k, shape.inputs, shape.aRow, shape.aColumn);
  state->bPlain =
      matrix(shape.k, shape.n, shape.inputs, shape.bRow, shape.bColumn);
  const auto c = matrix(shape.m, shape.n, shape.result, shape.cRow, 1);
  const dnnl::memory::desc bias({1, shape.n}, dnnl::memory::data_type::f32,
                                dnnl::memory::format_tag::ab);
  const dnnl::memory::desc any({shape.k, shape.n}, dataType(shape.inputs),
                               dnnl::memory::format_tag::any);
  const auto &b = shape.packed ? any : state->bPlain;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto description = shape.biased ? dnnl::matmul::desc(a, b, bias, c)
                                        : dnnl::matmul::desc(a, b, c);
  const dnnl::matmul::primitive_desc chosen(description, attributes, engine());
  state->product = dnnl::matmul(chosen);
  state->bPacked = chosen.weights_desc();
  state->scratch = chosen.scratchpad_desc();
  state->biased = shape.biased;
  state->packed = shape.packed;
  for (int thread = 0; thread < threads; ++thread) {
    const auto hold = [&](const dnnl::memory::desc &what) {
      return dnnl::memory(what, engine(), nullptr);
    };
    state->hands.push_back({dnnl::stream(engine()), hold(a),
                            hold(state->bPacked), hold(bias), hold(c),
                            hold(state->scratch), hold(state->bPlain)});
  }
  if (shape.packed)
    state->reorder = dnnl::reorder(state->hands[0].from, state->hands[0].b);
}

MatrixProduct::~MatrixProduct() = default;
MatrixProduct::MatrixProduct(MatrixProduct &&) noexcept = default;
MatrixProduct &MatrixProduct::operator=(MatrixProduct &&) noexcept = default;

std::size_t MatrixProduct::scratchBytes() const {
  return state->scratch.get_size();
}

std::size_t MatrixProduct::packedBytes() const {
  return state->packed ? state->bPacked.get_size() : 0;
}

void MatrixProduct::pack(int thread, const void *b, void *packed) const {
  State::Hands &own = state->hands[static_cast<std::size_t>(thread)];
  own.from.set_data_handle(const_cast<void *>(b));
  own.b.set_data_handle(packed);
  state->reorder.execute(own.stream, own.from, own.b);
}

void MatrixProduct::run(int thread, const void *a, const void *b,
                        const float *bias, void *c, void *scratch) const {
  State::Hands &own = state->hands[static_cast<std::size_t>(thread)];
  own.a.set_data_handle(const_cast<void *>(a));
  own.b.set_data_handle(const_cast<void *>(b));
  own.c.set_data_handle(c);
  own.scratch.set_data_handle(scratch);
  if (state->biased)
    own.bias.set_data_handle(const_cast<float *>(bias));
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, own.a.get()},
                                       {DNNL_ARG_WEIGHTS, own.b.get()},
                                       {DNNL_ARG_DST, own.c.get()},
                                       {DNNL_ARG_SCRATCHPAD, own.scratch.get()},
                                       {DNNL_ARG_BIAS, own.bias.get()}};
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(state->product.get(), own.stream.get(),
                             state->biased ? 5 : 4, arguments),
      "a product of matrices failed");
}

bool multipliesBf16() {
  static const bool kAble = [] {
    try {
      const MatrixProduct trial({.m = 16,
                                 .n = 16,
                                 .k = 16,
                                 .aRow = 16,
                                 .aColumn = 1,
                                 .bRow = 16,
                                 .bColumn = 1,
                                 .cRow = 16,
                                 .inputs = ElementType::bf16},
                                1);
      return true;
    } catch (const dnnl::error &) {
      return false;
    }
  }();
  return kAble;
}

//===----------------------------------------------------------------------===//
// Transpositions
//===----------------------------------------------------------------------===//

namespace {

constexpr std::int64_t kBlock = 16;

template <typename T> struct Row {
  using Type [[gnu::vector_size(kBlock * sizeof(T))]] = T;
};

/// Transposes 16 x 16 elements in four rounds. Each round interleaves rows i
/// and i + 8 into rows 2 i and 2 i + 1.
template <typename V> MTPLAN_INLINE void transposeBlock(V (&rows)[kBlock]) {
  for (int time = 0; time < 4; ++time) {
    V mixed[kBlock];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const V low = rows[i], high = rows[i + 8];
      mixed[2 * i] = __builtin_shufflevector(low, high, 0, 16, 1, 17, 2, 18, 3,
                                             19, 4, 20, 5, 21, 6, 22, 7, 23);
      mixed[2 * i + 1] =
          __builtin_shufflevector(low, high, 8, 24, 9, 25, 10, 26, 11, 27, 12,
                                  28, 13, 29, 14, 30, 15, 31);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kBlock; ++i)
      rows[i] = mixed[i];
  }
}

template <typename T>
MTPLAN_INLINE void transposeAny(const T *from, std::int64_t stride,
                                std::int64_t rows, std::int64_t columns,
                                T *to) {
  using V = typename Row<T>::Type;
  const std::int64_t wholeRows = rows / kBlock * kBlock;
  const std::int64_t wholeColumns = columns / kBlock * kBlock;
  for (std::int64_t column = 0; column < wholeColumns; column += kBlock)
    for (std::int64_t row = 0; row < wholeRows; row += kBlock) {
      V block[kBlock];
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kBlock; ++i)
        std::memcpy(&block[i], from + (row + i) * stride + column, sizeof(V));
      transposeBlock(block);
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kBlock; ++i)
        std::memcpy(to + (column + i) * rows + row, &block[i], sizeof(V));
    }
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = row < wholeRows ? wholeColumns : 0;
         column < columns; ++column)
      to[column * rows + row] = from[row * stride + column];
}

} // namespace

MTPLAN_CLONES void transposeOf(const std::uint16_t *from, std::int64_t stride,
                               std::int64_t rows, std::int64_t columns,
                               std::uint16_t *to) {
  transposeAny(from, stride, rows, columns, to);
}
MTPLAN_CLONES void transposeOf(const std::uint32_t *from, std::int64_t stride,
                               std::int64_t rows, std::int64_t columns,
                               std::uint32_t *to) {
  transposeAny(from, stride, rows, columns, to);
}

void transpose(ElementType type, const void *from, std::int64_t stride,
               std::int64_t rows, std::int64_t columns, void *to) {
  if (bytesOf(type) == 2)
    transposeOf(static_cast<const std::uint16_t *>(from), stride, rows, columns,
                static_cast<std::uint16_t *>(to));
  else
    transposeOf(static_cast<const std::uint32_t *>(from), stride, rows, columns,
                static_cast<std::uint32_t *>(to));
}

} // namespace mtplan::runtime::cpu
