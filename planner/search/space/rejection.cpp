//===- rejection.cpp - Why a configuration is not among the plans ---------===//

#include "planner/search/space/rejection.h"

namespace mtplan::planner {

const char *nameOf(Rejection::Reason reason) {
  using Reason = Rejection::Reason;
  switch (reason) {
  case Reason::divisor:
    return "divisor";
  case Reason::memory:
    return "memory";
  case Reason::host:
    return "host";
  case Reason::bound:
    return "bound";
  case Reason::pins:
    return "pins";
  case Reason::budget:
    return "budget";
  }
  return "?";
}

} // namespace mtplan::planner
