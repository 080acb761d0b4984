//===- layouts.cpp - Layouts that could be measured -----------------------===//

#include "tools/runs/layouts.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace mtplan::tools {

namespace {

auto layoutOf(const RunRow &row) {
  return std::tuple(row.model, row.gpus, row.globalBatch, row.sequence, row.tp,
                    row.pp, microBatchOf(row), row.zeroStage);
}

// Calls `use` with all powers of two up to `most` that divide `number`.
template <typename Use>
void forEachPower(std::int64_t number, std::int64_t most, Use use) {
  for (std::int64_t power = 1; power <= most && number % power == 0; power *= 2)
    use(power);
}

void addLayouts(const RunRow &like, std::vector<RunRow> &rows) {
  const std::int64_t keys = like.kvHeads.value_or(like.heads);
  forEachPower(std::min(like.heads, keys), like.gpus, [&](std::int64_t tp) {
    if (like.gpus % tp != 0)
      return;
    forEachPower(like.gpus / tp, like.layers, [&](std::int64_t pp) {
      const std::int64_t dp = like.gpus / tp / pp;
      if (like.globalBatch % dp != 0)
        return;
      forEachPower(like.globalBatch / dp, like.globalBatch / dp,
                   [&](std::int64_t microBatch) {
                     for (int zero : {0, 1}) {
                       if (zero > 0 && dp == 1)
                         continue;
                       RunRow row = like;
                       row.id.clear();
                       row.tp = tp;
                       row.pp = pp;
                       row.dp = dp;
                       row.chunks = 1;
                       row.microBatch = microBatch;
                       row.zeroStage = zero;
                       rows.push_back(row);
                     }
                   });
    });
  });
}

} // namespace

std::vector<RunRow> otherLayouts(const std::vector<RunRow> &rows,
                                 std::int64_t mostGpus) {
  std::set<decltype(layoutOf(RunRow{}))> known;
  std::map<std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>,
           const RunRow *>
      firsts;
  for (const RunRow &row : rows) {
    known.insert(layoutOf(row));
    if (row.gpus <= mostGpus)
      firsts.emplace(
          std::tuple(row.model, row.gpus, row.globalBatch, row.sequence), &row);
  }
  std::vector<RunRow> all;
  for (const auto &[key, row] : firsts)
    addLayouts(*row, all);
  std::erase_if(
      all, [&](const RunRow &row) { return known.contains(layoutOf(row)); });
  return all;
}

std::string layoutText(const RunRow &row) {
  return fmt::format("tp {}, pp {}, dp {}, micro-batch {}, ZeRO {} on {} GPUs",
                     row.tp, row.pp,
                     row.dp.value_or(row.gpus / row.tp / row.pp / row.cp),
                     microBatchOf(row), row.zeroStage, row.gpus);
}

} // namespace mtplan::tools
