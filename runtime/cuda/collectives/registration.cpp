//===- registration.cpp - Memory that NCCL reads and writes itself --------===//

#include "runtime/cuda/collectives/registration.h"

#include <cstdlib>
#include <string_view>

namespace mtplan::runtime::cuda {

bool registrationIsWanted() {
  const char *given = std::getenv("MTPLAN_NCCL_REGISTER");
  const std::string_view wanted = given ? given : "";
  return !wanted.empty() && wanted != "0";
}

} // namespace mtplan::runtime::cuda
