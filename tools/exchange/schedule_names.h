//===- schedule_names.h - What PyTorch calls pipeline schedules -*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_SCHEDULE_NAMES_H
#define MTPLAN_TOOLS_EXCHANGE_SCHEDULE_NAMES_H

#include <optional>
#include <string>

#include "planner/simulate/schedule.h"

namespace mtplan::tools {

struct NamedSchedule {
  planner::ScheduleKind kind = planner::ScheduleKind::oneForwardOneBackward;
  bool manyChunks = false; ///< two chunks a stage unless more are asked for
  std::string note; ///< how mtplan's schedule differs; empty: it does not
};

/// By torch.distributed.pipelining's names, in any case; "ZBV" too.
std::optional<NamedSchedule> scheduleNamed(const std::string &name);

/// "1F1B, GPipe, ..."
std::string scheduleNames();

/// PyTorch's name of the schedule.
const char *pytorchName(planner::ScheduleKind kind);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_SCHEDULE_NAMES_H
