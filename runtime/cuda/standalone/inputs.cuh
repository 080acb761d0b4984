//===- inputs.cuh - What a step that stands alone is fed --------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_STANDALONE_INPUTS_CUH
#define MTPLAN_RUNTIME_CUDA_STANDALONE_INPUTS_CUH

#include <optional>
#include <string>
#include <vector>

#include "runtime/cuda/standalone/rank.cuh"

namespace mtplan::runtime::cuda {

/// The training data, step by step.
class Samples {
public:
  virtual ~Samples() = default;
  /// Steps come one after another, from 1.
  virtual void begin(std::int64_t step) = 0;
  /// Targets of the step that are tokens, of all ranks.
  virtual double count() = 0;
  /// All elements of an input of a micro-batch, of all ranks.
  /// \param limit  integers are below; 0: no integers
  virtual std::vector<double> values(const std::string &label, int microBatch,
                                     std::int64_t limit,
                                     std::int64_t elements) = 0;
};

/// An input of the step: it comes from the host's memory, which `writeInputs`
/// fills before every step.
inline void feed(const Run &now, const char *label, const Tensor &to,
                 const TensorView &piece, std::int64_t limit) {
  const std::size_t bytes = bytesOf(to, piece.elements());
  std::byte *const from = now.rank.inputs.take(bytes);
  now.rank.fed.push_back({label, now.microBatch, piece, limit, to.type, from});
  MTPLAN_CUDA(cudaMemcpyAsync(to.data, from, bytes, cudaMemcpyHostToDevice,
                              now.stream()));
}

/// This rank's piece of what the samples have.
inline std::vector<double> pieceOf(const Fed &fed, Samples &samples) {
  std::int64_t elements = 1;
  for (const Span &span : fed.piece.pieces)
    elements *= span.global;
  const std::vector<double> all =
      samples.values(fed.label, fed.microBatch, fed.limit, elements);
  std::vector<double> mine(static_cast<std::size_t>(fed.piece.elements()));
  std::vector<std::int64_t> place(fed.piece.shape.size(), 0);
  for (double &value : mine) {
    std::int64_t global = 0;
    for (std::size_t d = 0; d < place.size(); ++d)
      global = global * fed.piece.pieces[d].global +
               fed.piece.pieces[d].offset + place[d];
    value = all[static_cast<std::size_t>(global)];
    for (std::size_t d = place.size(); d-- > 0;) {
      if (++place[d] < fed.piece.shape[d])
        break;
      place[d] = 0;
    }
  }
  return mine;
}

/// The values of each input of a step.
using Inputs = std::vector<std::vector<double>>;

inline Inputs inputsOf(const Rank &rank, Samples &samples) {
  std::optional<double> count; // of all micro-batches, and not of all ranks
  Inputs all;
  for (const Fed &fed : rank.fed) {
    if (fed.label == "count" && !count)
      count = samples.count();
    all.push_back(
        fed.label == "count"
            ? std::vector<double>(
                  static_cast<std::size_t>(fed.piece.elements()), *count)
            : pieceOf(fed, samples));
  }
  return all;
}

/// Writes the inputs to the pinned memory that the next step copies from.
inline void writeInputs(const Rank &rank, const Inputs &inputs,
                        double lossScale) {
  for (std::size_t f = 0; f < rank.fed.size(); ++f) {
    const Fed &fed = rank.fed[f];
    // Losses are sums over that number: a part of it is a multiple of them.
    const double divisor = fed.label == "count" ? lossScale : 1.0;
    for (std::size_t i = 0; i < inputs[f].size(); ++i)
      writeElement(fed.type, fed.to, static_cast<std::int64_t>(i),
                   inputs[f][i] / divisor);
  }
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_STANDALONE_INPUTS_CUH
