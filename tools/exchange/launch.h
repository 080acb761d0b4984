//===- launch.h - What a configuration leaves to the command ----*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_LAUNCH_H
#define MTPLAN_TOOLS_EXCHANGE_LAUNCH_H

#include <cstdint>

namespace mtplan::tools {

/// Facts that a trainer takes from its launcher or its code. 0: not known.
struct Launch {
  std::int64_t gpus = 1;
  int stages = 1;          ///< pipeline stages, where the file cannot say
  std::int64_t layers = 0; ///< of the model
  std::int64_t sequence = 0;
  std::int64_t microBatch = 0;  ///< where the file leaves it open
  std::int64_t globalBatch = 0; ///< where the file leaves it open
};

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_LAUNCH_H
