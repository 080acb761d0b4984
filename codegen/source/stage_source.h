//===- stage_source.h - A pipeline stage as functions -----------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_STAGE_SOURCE_H
#define MTPLAN_CODEGEN_SOURCE_STAGE_SOURCE_H

#include <set>
#include <string>
#include <vector>

#include "codegen/source/dimension_names.h"
#include "codegen/source/setting_names.h"
#include "codegen/source/text.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

struct SharedNames {
  const DimensionNames &dimensions;
  const SettingNames &settings;
  std::vector<std::string> groups, streams; ///< names of constants
  std::vector<std::string> reports;         ///< labels of reported values
};

/// Holds the texts of the files that contain all stages.
struct StageTexts {
  Text step;       ///< train.cu: forward, backward, update
  Text memory;     ///< memory.cuh: arenas, buffers, tables, products
  Text parameters; ///< parameters.cuh: initial values, gradient norm
  /// Lists the functions that a step calls, by stage: forwardAndBackward and
  /// update.
  std::vector<std::vector<std::string>> steps;
  /// Lists the runtime files that declare the called functions.
  std::set<std::string> needed;
};

/// Writes each stage's memory, parameters and step in the stage's namespace,
/// after the functions that several stages share.
/// \throws SourceError if a part of a stage cannot be written
void writeStages(const runtime::Plan &plan, const SharedNames &shared,
                 StageTexts &texts);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_STAGE_SOURCE_H
