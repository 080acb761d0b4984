//===- batch_triple.h - Batch sizes that agree ------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_BATCH_TRIPLE_H
#define MTPLAN_TOOLS_EXCHANGE_BATCH_TRIPLE_H

#include <cstdint>
#include <string>
#include <vector>

namespace mtplan::tools {

/// A number, and its name in messages. 0: not given.
struct NamedCount {
  std::string name;
  std::int64_t value = 0;
};

struct BatchTriple {
  NamedCount global; ///< samples per step
  NamedCount micro;  ///< samples per micro-batch
  NamedCount steps;  ///< micro-batches per step and replica
};

/// Fills in missing numbers: two determine the third, and a single batch size
/// means one micro-batch per step. All three must agree for `replicas`; an
/// error names the numbers and the nearest that would agree. Returns whether
/// they agree.
bool completeTriple(BatchTriple &triple, std::int64_t replicas,
                    std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_BATCH_TRIPLE_H
