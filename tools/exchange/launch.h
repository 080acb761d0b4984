//===- launch.h - Facts outside a configuration file ------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_LAUNCH_H
#define MTPLAN_TOOLS_EXCHANGE_LAUNCH_H

#include <cstdint>

namespace mtplan::tools {

/// Facts that a trainer takes from its launcher or its code. 0: unknown.
struct Launch {
  std::int64_t gpus = 1;
  int stages = 1;          ///< pipeline stages, if the file cannot have them
  std::int64_t layers = 0; ///< layers of the model
  std::int64_t sequence = 0;
  std::int64_t microBatch = 0;  ///< used if the file has none
  std::int64_t globalBatch = 0; ///< used if the file has none
};

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_LAUNCH_H
