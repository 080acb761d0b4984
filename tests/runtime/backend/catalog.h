//===- catalog.h - Calls that every backend must get right ------*- C++ -*-===//

#ifndef MTPLAN_TESTS_RUNTIME_BACKEND_CATALOG_H
#define MTPLAN_TESTS_RUNTIME_BACKEND_CATALOG_H

#include <vector>

#include "tests/runtime/backend/kernel_case.h"

namespace mtplan::runtime::testing {

/// Samples of every case. No other dimension has this size, so that samples
/// can be told from the shape alone.
inline constexpr std::int64_t kSamples = 4;

/// Every kernel at least once, in several shapes, pieces and settings. \param
/// type  of activations and weights; what is summed over samples is of f64 with
/// f64, else of f32
std::vector<Case> catalog(ElementType type, unsigned seed);

/// Attention of 16 bits and its gradient, as models have it, which more ways
/// are made for than one.
std::vector<Case> modelAttention(ElementType type, unsigned seed);

} // namespace mtplan::runtime::testing

#endif // MTPLAN_TESTS_RUNTIME_BACKEND_CATALOG_H
