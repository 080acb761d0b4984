//===- embedding.cpp - Embeddings and positions ---------------------------===//

#include <vector>

#include "runtime/cpu/families.h"
#include "runtime/cpu/numbers.h"
#include "runtime/cpu/sums.h"

namespace mtplan::runtime::cpu {

//===----------------------------------------------------------------------===//
// Lookups and learned positions
//===----------------------------------------------------------------------===//

namespace {

class Embedding : public Kernel {
public:
  Embedding(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        held(spec.inputs[1].shape[0]), width(spec.inputs[1].shape[1]),
        rows(pieceOf(spec.inputs[1], 0)) {}

  void run(const Invocation &call) override {
    const auto *ids = static_cast<const std::int32_t *>(call.inputs[0]);
    const ElementType type = spec.inputs[1].type;
    const auto bytes = static_cast<std::size_t>(width * bytesOf(type));
    context->forRange(
        spec.inputs[0].elements(), 64,
        [&](std::int64_t first, std::int64_t count, int) {
          for (std::int64_t t = first; t < first + count; ++t) {
            const std::int64_t row = ids[t] - rows.offset;
            std::byte *to = at(call.outputs[0], type, t * width);
            if (row >= 0 && row < held)
              std::memcpy(to, at(call.inputs[1], type, row * width), bytes);
            else
              std::memset(to, 0, bytes);
          }
        });
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const std::int64_t held, width;
  const Span rows;
};

/// Computes the gradient of an embedding table. A task clears a range of table
/// rows and adds the gradients of the tokens that read these rows, sorted by
/// row.
template <typename R> class EmbeddingGrad : public Kernel {
public:
  EmbeddingGrad(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        held(spec.outputs[0].shape[0]), width(spec.outputs[0].shape[1]),
        tokens(spec.inputs[0].elements()),
        tokensOfSample(spec.inputs[0].shape.empty()
                           ? 1
                           : tokens / spec.inputs[0].shape[0]),
        rows(pieceOf(spec.outputs[0], 0)), begin(tasks() + 1), order(tokens) {
    context->reserve(0, static_cast<std::size_t>(3 * width) * sizeof(R));
  }

  void run(const Invocation &call) override {
    const auto *ids = static_cast<const std::int32_t *>(call.inputs[0]);
    sortTokens(ids);
    context->forEach(tasks(), [&](std::int64_t task, int thread) {
      runRows(call, ids, task, context->ofThread<R>(thread));
    });
  }

private:
  static constexpr std::int64_t kRows = 256; ///< rows per task

  std::int64_t tasks() const { return (held + kRows - 1) / kRows; }

  /// Writes the tokens whose rows this rank holds to `order`, sorted by row and
  /// position. Writes each task's first index in `order` to `begin`.
  void sortTokens(const std::int32_t *ids) {
    order.clear();
    for (std::int64_t t = 0; t < tokens; ++t)
      if (ids[t] >= rows.offset && ids[t] < rows.offset + held)
        order.push_back(t);
    std::stable_sort(
        order.begin(), order.end(),
        [ids](std::int64_t a, std::int64_t b) { return ids[a] < ids[b]; });
    std::size_t next = 0;
    for (std::int64_t task = 0; task < tasks(); ++task) {
      begin[static_cast<std::size_t>(task)] = next;
      while (next < order.size() &&
             ids[order[next]] - rows.offset < (task + 1) * kRows)
        ++next;
    }
    begin.back() = next;
  }

  void runRows(const Invocation &call, const std::int32_t *ids,
               std::int64_t task, R *own) const {
    const ElementType to = spec.outputs[0].type;
    const std::int64_t first = task * kRows;
    std::memset(at(call.outputs[0], to, first * width), 0,
                static_cast<std::size_t>(std::min(kRows, held - first) * width *
                                         bytesOf(to)));
    std::size_t i = begin[static_cast<std::size_t>(task)];
    const std::size_t end = begin[static_cast<std::size_t>(task) + 1];
    while (i < end) {
      const std::int32_t id = ids[order[i]];
      R *sum = own, *term = own + width, *buffer = own + 2 * width;
      std::fill_n(sum, width, R(0));
      while (i < end && ids[order[i]] == id) {
        const std::int64_t sample = order[i] / tokensOfSample;
        std::fill_n(term, width, R(0));
        for (; i < end && ids[order[i]] == id &&
               order[i] / tokensOfSample == sample;
             ++i)
          addTo(widen(spec.inputs[1].type, call.inputs[1], order[i] * width,
                      width, buffer),
                width, term);
        addTo(term, width, sum);
      }
      narrow(to, call.outputs[0], (id - rows.offset) * width, width, sum);
    }
  }

  const SharedContext context;
  const KernelSpec spec;
  const std::int64_t held, width, tokens, tokensOfSample;
  const Span rows;
  std::vector<std::size_t> begin; ///< each task's first index in `order`
  std::vector<std::int64_t> order;
};

/// Maps local positions to local rows of a position table, which is sharded
/// like the sequence or replicated.
struct Positions {
  std::int64_t shift, held;

  Positions(const TensorView &tensor, const TensorView &table)
      : shift(pieceOf(tensor, 1).offset - pieceOf(table, 0).offset),
        held(table.shape[0]) {}

  /// Returns the local table row of position `s`, or -1 if this rank does not
  /// hold the row.
  std::int64_t row(std::int64_t s) const {
    return s + shift >= 0 && s + shift < held ? s + shift : -1;
  }
};

template <typename R> class PositionEmbedding : public Kernel {
public:
  PositionEmbedding(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        positions(spec.inputs[0], spec.inputs[1]),
        width(spec.inputs[0].shape[2]) {
    context->reserve(0, static_cast<std::size_t>(2 * width) * sizeof(R));
  }

  void run(const Invocation &call) override {
    const ElementType to = spec.outputs[0].type;
    const std::int64_t length = spec.inputs[0].shape[1];
    context->forRange(
        spec.inputs[0].shape[0] * length, 64,
        [&](std::int64_t first, std::int64_t count, int thread) {
          R *sum = context->ofThread<R>(thread), *buffer = sum + width;
          for (std::int64_t t = first; t < first + count; ++t) {
            widenInto(spec.inputs[0].type,
                      at(call.inputs[0], spec.inputs[0].type, t * width), width,
                      sum);
            if (const std::int64_t row = positions.row(t % length); row >= 0)
              addTo(widen(spec.inputs[1].type, call.inputs[1], row * width,
                          width, buffer),
                    width, sum);
            narrow(to, call.outputs[0], t * width, width, sum);
          }
        });
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const Positions positions;
  const std::int64_t width;
};

template <typename R> class PositionEmbeddingGrad : public Kernel {
public:
  PositionEmbeddingGrad(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        positions(spec.inputs[0], spec.outputs[0]),
        width(spec.inputs[0].shape[2]) {
    context->reserve(0, static_cast<std::size_t>(2 * width) * sizeof(R));
  }

  void run(const Invocation &call) override {
    const ElementType from = spec.inputs[0].type, to = spec.outputs[0].type;
    const std::int64_t samples = spec.inputs[0].shape[0];
    const std::int64_t length = spec.inputs[0].shape[1];
    context->forRange(
        positions.held, 16,
        [&](std::int64_t first, std::int64_t count, int thread) {
          R *sum = context->ofThread<R>(thread), *buffer = sum + width;
          for (std::int64_t row = first; row < first + count; ++row) {
            const std::int64_t s = row - positions.shift;
            std::fill_n(sum, width, R(0));
            for (std::int64_t b = 0; s >= 0 && s < length && b < samples; ++b)
              addTo(widen(from, call.inputs[0], (b * length + s) * width, width,
                          buffer),
                    width, sum);
            narrow(to, call.outputs[0], row * width, width, sum);
          }
        });
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const Positions positions;
  const std::int64_t width;
};

} // namespace

MadeKernel makeEmbedding(const KernelSpec &spec, const SharedContext &context) {
  if (spec.kernel == "embedding_grad")
    return makeOf<EmbeddingGrad>(spec, context);
  if (spec.inputs[1].type != spec.outputs[0].type)
    return nullptr;
  return std::make_unique<Embedding>(spec, context);
}

MadeKernel makePosition(const KernelSpec &spec, const SharedContext &context) {
  if (spec.kernel == "position_embedding_grad")
    return makeOf<PositionEmbeddingGrad>(spec, context);
  return makeOf<PositionEmbedding>(spec, context);
}

//===----------------------------------------------------------------------===//
// Rotary positions
//===----------------------------------------------------------------------===//

/// Rotates the pairs (x, y) of one head. Consecutive x are `step` elements
/// apart, and y is `apart` elements after x.
template <typename R>
MTPLAN_INLINE void rotateAny(R *head, const R *cosine, const R *sine,
                             std::int64_t pairs, std::int64_t step,
                             std::int64_t apart) {
#pragma omp simd
  for (std::int64_t i = 0; i < pairs; ++i) {
    const R x = head[i * step], y = head[i * step + apart];
    head[i * step] = x * cosine[i] - y * sine[i];
    head[i * step + apart] = x * sine[i] + y * cosine[i];
  }
}
MTPLAN_CLONES void rotate(float *head, const float *cosine, const float *sine,
                          std::int64_t pairs, std::int64_t step,
                          std::int64_t apart) {
  rotateAny(head, cosine, sine, pairs, step, apart);
}
MTPLAN_CLONES void rotate(double *head, const double *cosine,
                          const double *sine, std::int64_t pairs,
                          std::int64_t step, std::int64_t apart) {
  rotateAny(head, cosine, sine, pairs, step, apart);
}

namespace {

template <typename R> class Rope : public Kernel {
public:
  Rope(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        length(spec.inputs[0].shape[1]), width(spec.inputs[0].shape[2]),
        headWidth(spec.integer("head_dim", 1)),
        pairs(spec.integer("rotary_dim", 0) / 2),
        interleaved(spec.integer("interleaved", 0) != 0) {
    const double theta = spec.number("theta", 1e4);
    const double turn = spec.integer("inverse", 0) != 0 ? -1.0 : 1.0;
    for (std::int64_t s = 0; s < length; ++s)
      for (std::int64_t i = 0; i < pairs; ++i) {
        const double angle =
            static_cast<double>(pieceOf(spec.inputs[0], 1).offset + s) *
            std::pow(theta,
                     -static_cast<double>(i) / static_cast<double>(pairs));
        cosines.push_back(static_cast<R>(std::cos(angle)));
        sines.push_back(static_cast<R>(turn * std::sin(angle)));
      }
    context->reserve(0, static_cast<std::size_t>(width) * sizeof(R));
  }

  void run(const Invocation &call) override {
    const ElementType from = spec.inputs[0].type, to = spec.outputs[0].type;
    context->forRange(
        spec.inputs[0].shape[0] * length, 32,
        [&](std::int64_t first, std::int64_t count, int thread) {
          for (std::int64_t t = first; t < first + count; ++t) {
            R *row = target(to, call.outputs[0], t * width,
                            context->ofThread<R>(thread));
            widenInto(from, at(call.inputs[0], from, t * width), width, row);
            const std::int64_t place = t % length * pairs;
            for (std::int64_t head = 0; head < width; head += headWidth)
              rotate(row + head, cosines.data() + place, sines.data() + place,
                     pairs, interleaved ? 2 : 1, interleaved ? 1 : pairs);
            narrow(to, call.outputs[0], t * width, width,
                   static_cast<const R *>(row));
          }
        });
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const std::int64_t length, width, headWidth, pairs;
  const bool interleaved;
  std::vector<R> cosines, sines; ///< [position][pair]
};

} // namespace

MadeKernel makeRope(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Rope>(spec, context);
}

} // namespace mtplan::runtime::cpu
