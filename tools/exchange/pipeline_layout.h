//===- pipeline_layout.h - "Et*3|(tt|)*29,m|L" ------------------*- C++ -*-===//
//
// Megatron-LM's notation of an uneven pipeline: E embedding, t layer, m layer
// that predicts further tokens, L loss, | border between two virtual stages, *n
// repetition of the preceding letter or bracket. Commas and blanks are ignored.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_PIPELINE_LAYOUT_H
#define MTPLAN_TOOLS_EXCHANGE_PIPELINE_LAYOUT_H

#include <string>
#include <vector>

namespace mtplan::tools {

/// The contents of one virtual stage.
struct PipelinePart {
  int layers = 0;
  int predictors = 0; ///< letters m
  int embeddings = 0; ///< letters E
  int losses = 0;     ///< letters L
};

/// Returns the virtual stages of a text. Errors name the column.
std::vector<PipelinePart> parsePipelineLayout(const std::string &text,
                                              std::vector<std::string> &errors);

/// Writes the text of stages with these numbers of layers: {3, 2, 2, 1} becomes
/// "Et*3|t*2|t*2|tL".
std::string writePipelineLayout(const std::vector<int> &layers);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_PIPELINE_LAYOUT_H
