//===- imported_config.h - Imported configuration ---------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_DRIVER_IMPORTED_CONFIG_H
#define MTPLAN_TOOLS_DRIVER_IMPORTED_CONFIG_H

#include <string>
#include <vector>

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Restricts the search to the configuration that a Megatron-LM command line, a
/// DeepSpeed JSON or a torchtitan TOML states. The content of the file tells
/// its format. Unsupported options become errors, and so do contradictions to
/// the model.
/// \param options  gives the number of devices; also gives the number of stages
///   and the batch sizes if a DeepSpeed JSON lacks these
void applyTrainerConfig(const std::string &file, const std::string &text,
                        const ir::LoadedModel &model,
                        planner::SearchOptions &options,
                        std::vector<std::string> &notes,
                        std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_IMPORTED_CONFIG_H
