//===- environment_switch.h - What is left out to compare -------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_ENVIRONMENT_SWITCH_H
#define MTPLAN_RUNTIME_CUDA_ENVIRONMENT_SWITCH_H

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace mtplan::runtime::cuda {

/// A variable of the environment, which is 1 where it is not set.
/// \throws std::runtime_error if it is neither 0 nor 1
inline bool isSwitchedOn(const char *name) {
  const char *given = std::getenv(name);
  const std::string_view wanted = given ? given : "1";
  if (wanted != "0" && wanted != "1")
    throw std::runtime_error(std::string(name) + " is \"" +
                             std::string(wanted) + "\": 0 or 1 is wanted");
  return wanted == "1";
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_ENVIRONMENT_SWITCH_H
