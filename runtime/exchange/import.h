//===- import.h - Imports weights as a checkpoint ---------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_IMPORT_H
#define MTPLAN_RUNTIME_EXCHANGE_IMPORT_H

#include <string>

#include "runtime/exchange/weight_source.h"

namespace mtplan::runtime {

struct Imported {
  std::string checkpoint; ///< "FOLDER/step-00000000"
  std::int64_t tensors = 0, parameters = 0, bytes = 0;
};

/// Writes the parameters, in their own types, as a checkpoint of step 0 in
/// `folder`. A run with any layout starts from this checkpoint (`--checkpoint`,
/// `--load` or `--weights`). The checkpoint also describes the original files,
/// if there are any. Moments are not imported. The import needs memory for one
/// tensor.
/// \throws WeightError if the folder has weights already
/// \throws CheckpointError if the checkpoint cannot be written
Imported importWeights(const WeightSource &source, const std::string &folder);

Imported importWeights(const std::string &path, const std::string &folder);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_IMPORT_H
