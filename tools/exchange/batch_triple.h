//===- batch_triple.h - Global batch = micro-batch x steps x replicas -*- C++
//-*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_BATCH_TRIPLE_H
#define MTPLAN_TOOLS_EXCHANGE_BATCH_TRIPLE_H

#include <cstdint>
#include <string>
#include <vector>

namespace mtplan::tools {

/// A number with the name a complaint gives it; 0: not given.
struct NamedCount {
  std::string name;
  std::int64_t value = 0;
};

struct BatchTriple {
  NamedCount global; ///< samples per step
  NamedCount micro;  ///< samples per replica at once
  NamedCount steps;  ///< micro-batches per step and replica
};

/// Fills in what is missing: any two give the third, one of the batches alone
/// means one micro-batch a step. All three must agree for `replicas`; if they
/// cannot, an error names the numbers and the nearest that would do. Returns
/// whether they do.
bool completeTriple(BatchTriple &triple, std::int64_t replicas,
                    std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_BATCH_TRIPLE_H
