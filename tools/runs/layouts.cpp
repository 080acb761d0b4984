//===- layouts.cpp - Layouts that could be measured -----------------------===//

#include "tools/runs/layouts.h"

#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace mtplan::tools {

namespace {

auto layoutOf(const RunRow &row) {
  return std::tuple(row.model, row.gpus, row.globalBatch, row.sequence, row.tp,
                    row.pp, row.cp, row.chunks, microBatchOf(row),
                    row.zeroStage);
}

// Calls `use` with all powers of two up to `most` that divide `number`.
template <typename Use>
void forEachPower(std::int64_t number, std::int64_t most, Use use) {
  for (std::int64_t power = 1; power <= most && number % power == 0; power *= 2)
    use(power);
}

/// Adds the layouts of one model, cluster and batch.
class Layouts {
public:
  Layouts(const std::vector<RunRow> &measured, std::vector<RunRow> &found)
      : rows(found) {
    for (const RunRow &row : measured) {
      zeroStages.insert(row.zeroStage);
      splitsSequence |= row.tp > 1 && row.sequenceParallel;
    }
  }

  void addLike(const RunRow &like) {
    const std::int64_t heads =
        std::gcd(like.heads, like.kvHeads.value_or(like.heads));
    const std::int64_t ranks = like.gpus / like.cp;
    forEachPower(heads, ranks, [&](std::int64_t tp) {
      if (ranks % tp == 0)
        forEachPower(ranks / tp, like.layers, [&](std::int64_t pp) {
          addMicroBatches(like, tp, pp, ranks / tp / pp);
        });
    });
  }

private:
  void addMicroBatches(const RunRow &like, std::int64_t tp, std::int64_t pp,
                       std::int64_t dp) {
    if (like.globalBatch % dp != 0)
      return;
    const std::int64_t samples = like.globalBatch / dp;
    forEachPower(samples, samples, [&](std::int64_t microBatch) {
      for (int zero : zeroStages) {
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
        row.sequenceParallel = tp > 1 && splitsSequence;
        rows.push_back(row);
      }
    });
  }

  std::vector<RunRow> &rows;
  std::set<int> zeroStages;
  bool splitsSequence = false;
};

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
  Layouts layouts(rows, all);
  for (const auto &[key, row] : firsts)
    layouts.addLike(*row);
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
