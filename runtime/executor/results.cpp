//===- results.cpp - Numbers of a step for the host -----------------------===//

#include "runtime/executor/results.h"

#include "runtime/backend/element.h"

namespace mtplan::runtime {

void Results::keep(const std::string &label, ElementType type,
                   const void *number) {
  memory.queueDownload(places.get() + kept.size() * kPlace, number,
                       static_cast<std::size_t>(bytesOf(type)));
  kept.push_back({label, type});
}

std::map<std::string, double> Results::sums() const {
  std::map<std::string, double> all;
  for (std::size_t i = 0; i < kept.size(); ++i)
    all[kept[i].label] +=
        readElement(kept[i].type, places.get() + i * kPlace, 0);
  return all;
}

} // namespace mtplan::runtime
