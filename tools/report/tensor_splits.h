//===- tensor_splits.h - Tensor splits that trainers support ----*- C++ -*-===//
//
// Megatron-LM, and the trainers that follow it, split q, k, v and the first
// products of an MLP by columns, the last products by rows, attention by heads,
// and the table and the head by the vocabulary.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_REPORT_TENSOR_SPLITS_H
#define MTPLAN_TOOLS_REPORT_TENSOR_SPLITS_H

#include <string>
#include <vector>

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Returns the reason why `trainer` cannot run a configuration with two tensor
/// axes.
std::string twoAxesText(const std::string &trainer,
                        const planner::Parallelism &config);

/// Returns reasons why `trainer` cannot split operators over tensor ranks like
/// the best plan. Assumes that `trainer` splits operators like Megatron-LM.
/// \param sequence  whether the trainer has sequence parallelism, which splits
/// norms, residual additions and dropout by the sequence
std::vector<std::string> unlikeMegatronSplits(const PlanOutcome &outcome,
                                              const std::string &trainer,
                                              bool sequence);

/// Returns "h.0..31.attn.q" for layers 0 to 31 of "h.*.attn.q".
std::string nameOfLayers(const std::string &label, int first, int count);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_TENSOR_SPLITS_H
