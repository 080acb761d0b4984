//===- row_model.h - The model of a published run ---------------*- C++ -*-===//
//
// Builds the operators of a training step from a row's name and dimensions,
// with the builder that every Hugging Face family uses.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_VALIDATE_ROW_MODEL_H
#define MTPLAN_TOOLS_VALIDATE_ROW_MODEL_H

#include "ir/model/transformer.h"
#include "planner/graph/op_graph.h"
#include "tools/validate/run_row.h"

namespace mtplan::tools {

/// Returns the model that the row and the defaults of its software describe.
/// \param software  name of the software's preset
ir::Transformer transformerOf(const RunRow &row, const std::string &software);

/// Returns the planner's graph of a training step in 16-bit precision. Returns
/// nothing, with errors, if the dimensions contradict each other.
std::optional<planner::ModelGraph> graphOf(const ir::Transformer &model,
                                           bool half,
                                           std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_ROW_MODEL_H
