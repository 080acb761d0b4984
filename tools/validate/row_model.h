//===- row_model.h - The model of a published run ---------------*- C++ -*-===//
//
// From dimensions and a name to the operators of a training step, by the
// builder that every Hugging Face family goes through.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_VALIDATE_ROW_MODEL_H
#define MTPLAN_TOOLS_VALIDATE_ROW_MODEL_H

#include "ir/model/transformer.h"
#include "planner/graph/op_graph.h"
#include "tools/validate/run_row.h"

namespace mtplan::tools {

/// What the row's dimensions and its software's habits say of the model.
/// \param software  name of the software's preset
ir::Transformer transformerOf(const RunRow &row, const std::string &software);

/// The planner's graph of a training step, elements of 16 bits. Empty, with
/// errors, if the dimensions do not go together.
std::optional<planner::ModelGraph> graphOf(const ir::Transformer &model,
                                           bool half,
                                           std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_ROW_MODEL_H
