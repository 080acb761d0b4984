//===- runs_apart.cpp - Instructions that need no order -------------------===//

#include "runtime/plan/runs_apart.h"

#include <algorithm>
#include <tuple>

namespace mtplan::runtime {

void RunsApart::add(const Instruction &instruction, int copy, int microBatch) {
  for (const auto *some : {&instruction.inputs, &instruction.outputs})
    for (const Tensor &tensor : *some)
      touched.push_back({arenaBytesOf(stage, tensor, copy, microBatch), count,
                         some == &instruction.outputs});
  ++count;
}

bool RunsApart::areSeveral() {
  std::ranges::sort(touched, {}, [](const Touched &one) {
    return std::tuple(one.arena, one.begin);
  });
  for (std::size_t i = 0; i < touched.size(); ++i)
    for (std::size_t j = i + 1;
         j < touched.size() && touched[j].arena == touched[i].arena &&
         touched[j].begin < touched[i].end;
         ++j)
      if (touched[i].run != touched[j].run &&
          (touched[i].isWritten || touched[j].isWritten))
        return false;
  return count > 1;
}

} // namespace mtplan::runtime
