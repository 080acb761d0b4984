//===- cublaslt.h - What was asked of the fake cuBLASLt ---------*- C++ -*-===//

#ifndef MTPLAN_TESTS_EMULATOR_CUBLASLT_H
#define MTPLAN_TESTS_EMULATOR_CUBLASLT_H

namespace mtplan::emulator {

/// Of this thread, since it began.
struct ProductCalls {
  int handles = 0;    ///< made
  int heuristics = 0; ///< questions which algorithm is best
};
const ProductCalls &productCalls();

/// While this lives, no product of this thread is given a vector to add; nor of
/// a process whose environment has MTPLAN_REFUSED_BIASES. One that has
/// MTPLAN_REFUSED_GELUS has none with a gelu or its derivative. A process that
/// was told so and refused nothing fails.
struct RefusedBiases {
  RefusedBiases();
  ~RefusedBiases();
  RefusedBiases(const RefusedBiases &) = delete;
  RefusedBiases &operator=(const RefusedBiases &) = delete;
};

/// While this lives, none sums an operand; nor of a process whose environment
/// has MTPLAN_REFUSED_SUMS.
struct RefusedSums {
  RefusedSums();
  ~RefusedSums();
  RefusedSums(const RefusedSums &) = delete;
  RefusedSums &operator=(const RefusedSums &) = delete;
};

} // namespace mtplan::emulator

#endif // MTPLAN_TESTS_EMULATOR_CUBLASLT_H
