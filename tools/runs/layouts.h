//===- layouts.h - Layouts that could be measured ---------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUNS_LAYOUTS_H
#define MTPLAN_TOOLS_RUNS_LAYOUTS_H

#include <vector>

#include "tools/runs/run_row.h"

namespace mtplan::tools {

/// Returns runs of the models, clusters and batches of `rows` in all layouts of
/// dp, tp, pp, micro-batch and ZeRO 0 and 1 that divide the sizes evenly,
/// without the layouts of `rows`. Other members, except the time, are those of
/// the first such row. Clusters of more than `mostGpus` devices are left out.
std::vector<RunRow> otherLayouts(const std::vector<RunRow> &rows,
                                 std::int64_t mostGpus);

/// Returns "tp 2, pp 4, dp 2, micro-batch 1, ZeRO 1 on 16 GPUs".
std::string layoutText(const RunRow &row);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUNS_LAYOUTS_H
