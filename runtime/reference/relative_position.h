//===- relative_position.h - Buckets of relative distance -------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_REFERENCE_RELATIVE_POSITION_H
#define MTPLAN_RUNTIME_REFERENCE_RELATIVE_POSITION_H

#include <cstdint>

namespace mtplan::runtime::reference {

/// Returns the row, of a table of `rows`, of the bias for a key that is
/// `distance` positions after its query (Raffel et al. 2020, section 2.1, as T5
/// has it). Half of the rows serve one distance each. The others serve ranges
/// that grow with the logarithm of the distance, and the last row serves all
/// distances from `maxDistance` on. With `both` directions the second half of
/// all rows is for keys after the query. Otherwise such keys have the row of
/// distance 0.
std::int64_t relativeBucket(std::int64_t distance, std::int64_t rows,
                            std::int64_t maxDistance, bool both);

} // namespace mtplan::runtime::reference

#endif // MTPLAN_RUNTIME_REFERENCE_RELATIVE_POSITION_H
