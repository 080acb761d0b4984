//===- schedule_names.h - PyTorch's pipeline schedules ----------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_SCHEDULE_NAMES_H
#define MTPLAN_TOOLS_EXCHANGE_SCHEDULE_NAMES_H

#include <optional>
#include <string>

#include "planner/simulate/schedule.h"

namespace mtplan::tools {

struct NamedSchedule {
  planner::ScheduleKind kind = planner::ScheduleKind::oneForwardOneBackward;
  bool manyChunks =
      false;        ///< two virtual stages per rank unless more are given
  std::string note; ///< how mtplan's schedule differs; empty: not at all
};

/// Reads a name of torch.distributed.pipelining in any case, and "ZBV".
std::optional<NamedSchedule> scheduleNamed(const std::string &name);

/// Returns "1F1B, GPipe, ...".
std::string scheduleNames();

/// Returns PyTorch's name of the schedule.
const char *pytorchName(planner::ScheduleKind kind);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_SCHEDULE_NAMES_H
