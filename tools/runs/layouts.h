//===- layouts.h - Layouts that could be measured ---------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUNS_LAYOUTS_H
#define MTPLAN_TOOLS_RUNS_LAYOUTS_H

#include <vector>

#include "tools/runs/run_row.h"

namespace mtplan::tools {

/// Returns runs of the models, clusters and batches of `rows` in all layouts of
/// dp, tp, pp and micro-batch that divide the sizes evenly, with the ZeRO
/// stages that occur in `rows`, without the layouts of `rows`. Stages do not
/// interleave. Tensor ranks split the sequence if those of some row do. Other
/// members, except the time, are those of the first row of the model, cluster
/// and batch. Clusters of more than `mostGpus` devices are left out.
std::vector<RunRow> otherLayouts(const std::vector<RunRow> &rows,
                                 std::int64_t mostGpus);

/// Returns "tp 2, pp 4, dp 2, micro-batch 1, ZeRO 1 on 16 GPUs".
std::string layoutText(const RunRow &row);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUNS_LAYOUTS_H
