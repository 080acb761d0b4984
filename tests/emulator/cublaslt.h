//===- cublaslt.h - Calls and refusals of the emulated cuBLASLt -*- C++ -*-===//

#ifndef MTPLAN_TESTS_EMULATOR_CUBLASLT_H
#define MTPLAN_TESTS_EMULATOR_CUBLASLT_H

namespace mtplan::emulator {

/// Counts calls of this thread since its start.
struct ProductCalls {
  int handles = 0;    ///< handles created
  int heuristics = 0; ///< calls of cublasLtMatmulAlgoGetHeuristic
};
const ProductCalls &productCalls();

/// While an object exists, bias epilogues are refused in this thread. The
/// environment variable MTPLAN_REFUSED_BIASES refuses them in the process, and
/// MTPLAN_REFUSED_GELUS refuses GELU and its gradient. A process with such a
/// variable fails if it refuses nothing.
struct RefusedBiases {
  RefusedBiases();
  ~RefusedBiases();
  RefusedBiases(const RefusedBiases &) = delete;
  RefusedBiases &operator=(const RefusedBiases &) = delete;
};

/// While an object exists, epilogues that sum an operand are refused in this
/// thread. MTPLAN_REFUSED_SUMS refuses them in the process.
struct RefusedSums {
  RefusedSums();
  ~RefusedSums();
  RefusedSums(const RefusedSums &) = delete;
  RefusedSums &operator=(const RefusedSums &) = delete;
};

} // namespace mtplan::emulator

#endif // MTPLAN_TESTS_EMULATOR_CUBLASLT_H
