//===- pipeline_layout.h - "Et*3|(tt|)*29,m|L" ------------------*- C++ -*-===//
//
// Megatron-LM's word for an uneven pipeline: E embedding, t layer, m layer that
// predicts further tokens, L loss, | border between two parts, *n repetition of
// the letter or bracket before; commas and blanks mean nothing.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_PIPELINE_LAYOUT_H
#define MTPLAN_TOOLS_EXCHANGE_PIPELINE_LAYOUT_H

#include <string>
#include <vector>

namespace mtplan::tools {

/// One part of a model, in model order.
struct PipelinePart {
  int layers = 0;
  int predictors = 0; ///< m
  int embeddings = 0; ///< E
  int losses = 0;     ///< L
};

/// The parts between borders. Complaints name the offending column.
std::vector<PipelinePart> parsePipelineLayout(const std::string &text,
                                              std::vector<std::string> &errors);

/// One such text, runs of layers written t*n:
/// {3, 2, 2, 1} -> "Et*3|t*2|t*2|tL".
std::string writePipelineLayout(const std::vector<int> &layers);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_PIPELINE_LAYOUT_H
