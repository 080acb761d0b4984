//===- flag_values.h - Flags with a special syntax --------------*- C++ -*-===//
//
// These functions read and write the flags whose values are neither numbers nor
// words nor lists of numbers or words.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_FLAG_VALUES_H
#define MTPLAN_TOOLS_DRIVER_FLAG_VALUES_H

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "planner/search/search.h"
#include "tools/driver/read_flags.h"

namespace mtplan::tools {

inline constexpr std::int64_t kMostGpus = std::int64_t{1} << 20;

/// These functions set members of a request from a flag's text, and add a fault
/// for each error in the text.
void readOverlap(const std::string &text, PlanRequest &request, Faults &faults);
void readStageLayers(const std::string &text, PlanRequest &request,
                     Faults &faults);
void readTensorAxes(const std::string &text, PlanRequest &request,
                    Faults &faults);
void readSplits(const std::string &text, PlanRequest &request, Faults &faults);
void readEmit(const std::string &text, PlanRequest &request, Faults &faults);

/// These functions return a flag's value as files store it.
nlohmann::ordered_json overlapJson(const PlanRequest &request,
                                   const planner::SearchOptions &options);
nlohmann::ordered_json stageLayersJson(const PlanRequest &request,
                                       const planner::SearchOptions &options);
nlohmann::ordered_json tensorAxesJson(const PlanRequest &request,
                                      const planner::SearchOptions &options);
nlohmann::ordered_json splitsJson(const PlanRequest &request,
                                  const planner::SearchOptions &options);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_FLAG_VALUES_H
