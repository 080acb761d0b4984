//===- relative_position.h - Distances that share a bias --------*- C++ -*-===//

#ifndef MTPLAN_IR_RELATIVE_POSITION_H
#define MTPLAN_IR_RELATIVE_POSITION_H

#include <cstdint>

namespace mtplan::ir {

/// Row, of `rows`, of the bias of a key `distance` positions after its query
/// (Raffel et al. 2020, section 2.1, as T5 has it). Half of the rows are for
/// one distance each; the others grow with its logarithm, and the last serves
/// all from `maxDistance` on. With `both` directions the second half of all
/// rows is for keys after the query, else those have the row of distance 0.
std::int64_t relativeBucket(std::int64_t distance, std::int64_t rows,
                            std::int64_t maxDistance, bool both);

} // namespace mtplan::ir

#endif // MTPLAN_IR_RELATIVE_POSITION_H
