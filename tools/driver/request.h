//===- request.h - The request for a plan -----------------------*- C++ -*-===//
//
// A request holds the values of all flags. Each value is well-formed. limits.h
// checks whether the numbers fit a model and a machine.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_REQUEST_H
#define MTPLAN_TOOLS_DRIVER_REQUEST_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/graph/op_graph.h"
#include "planner/machine/machine.h"
#include "planner/search/search.h"
#include "planner/search/space/pins.h"

namespace mtplan::tools {

enum class ExportKind : std::uint8_t {
  megatron,
  deepspeed,
  torchtitan,
  accelerate,
  tpPlan, ///< Hugging Face's base_model_tp_plan
  jax,
  shardy,
  dtensor,
  meshTensorflow,
  constraints
};
inline const char *nameOf(ExportKind kind) {
  constexpr const char *kNames[] = {
      "megatron", "deepspeed", "torchtitan", "accelerate",      "hf-tp-plan",
      "jax",      "shardy",    "dtensor",    "mesh-tensorflow", "constraints"};
  return kNames[static_cast<int>(kind)];
}

enum class Objective : std::uint8_t {
  stepTime,
  memory, ///< memory of a GPU, then the step time
  gpus    ///< number of GPUs, then the step time
};
inline const char *nameOf(Objective objective) {
  constexpr const char *kNames[] = {"step-time", "memory", "gpus"};
  return kNames[static_cast<int>(objective)];
}

enum class Stage : std::uint8_t { model, differentiated, planned, partitioned };
inline const char *nameOf(Stage stage) {
  constexpr const char *kNames[] = {"model", "differentiated", "planned",
                                    "partitioned"};
  return kNames[static_cast<int>(stage)];
}

/// Returns the splits of tp for `--splits all`, which excludes `hidden` (see
/// planner::Split).
inline std::vector<planner::Split> allSplits() {
  using planner::Split;
  return {Split::column,   Split::row,   Split::head,  Split::vocab,
          Split::sequence, Split::batch, Split::expert};
}

/// Returns the splits of tp if `--splits` is not given. `batch` is left out,
/// because dp splits the samples.
inline std::vector<planner::Split> defaultSplits() {
  std::vector<planner::Split> splits = allSplits();
  std::erase(splits, planner::Split::batch);
  return splits;
}

inline constexpr std::int64_t kFewGpus = 8;

/// With the default values below, the search chooses only dp, tp and the
/// micro-batch. The command line leaves further choices to the search
/// (read_flags.h). An empty file name means that there is no file.
struct PlanRequest {
  std::string model, hardware = "dgx-h100";
  std::optional<std::int64_t> gpus, tp, dp, microBatch, globalBatch;
  /// Holds the number of tensor axes, 1 or 2, or the sizes of two axes.
  std::vector<int> tensorAxes{1};
  std::optional<std::int64_t> sequence, layers;
  /// The search chooses each degree from these values.
  planner::Choices<int> pp{{1}}, cp{{1}}, ep{{1}}, virtualStages{{1}};
  /// If set, cp is 1 for models with experts, because a search over both cp and
  /// ep takes long.
  bool cpNeedsDenseModel = false;
  /// If set, the search chooses the number of recomputed layers for dense
  /// models. On more than kFewGpus GPUs, uneven stages recompute all layers or
  /// none, because a search over uneven stages and numbers of layers takes
  /// long.
  bool opensCounts = false;
  /// If set, the search may offload the optimizer's state if nothing else fits.
  bool offloadsIfNeeded = false;
  planner::Choices<int> zeroStage{{0}}, zeroRanks{{0}}, recomputeLayers{{-1}};
  planner::Choices<planner::ScheduleKind> schedule{
      {planner::ScheduleKind::oneForwardOneBackward}};
  planner::Choices<planner::Recompute> recompute{{planner::Recompute::none}};
  planner::Choices<planner::Offload> offload{{planner::Offload::none}};
  planner::Choices<int> tiles{{1}};
  /// Holds the number of layers of each virtual stage. If empty, the layers are
  /// divided evenly, or in any way if `unevenCuts` is set.
  std::vector<int> stageLayers;
  bool unevenCuts = false;
  /// If set, a request that rules out uneven cuts is an error; otherwise such a
  /// request ignores `unevenCuts`.
  bool asksForCuts = false;
  /// Names the communication that overlaps compute. If empty, the software file
  /// decides. Without a software file, no communication overlaps.
  std::optional<planner::Overlaps> overlaps;
  std::optional<planner::Precision> precision;
  std::vector<planner::Split> splits = allSplits();
  /// Says whether `splits` also applies to two tensor axes. If not, two tensor
  /// axes do not split the sequence, because a layer would have too many
  /// layouts.
  bool asksForSplits = false;
  /// Limits the collectives that may change layouts between operators.
  planner::Choices<planner::StepKind> collectives;
  std::vector<planner::PinText> pins;
  std::int64_t top = 5;
  double tolerance = 0.0; ///< as in planner::SearchOptions
  /// Plans leave this share of a GPU's memory free. If no plan fits into the
  /// rest, plans may use all of the memory. The share has no effect if `memory`
  /// is set or the objective is memory.
  double keptFree = 0.0;
  std::optional<planner::Bytes> memory;
  std::optional<Stage> emit;
  bool emitsCuda = false; ///< write the CUDA program to `output`
  /// This factor scales the bandwidth of all network levels except the
  /// innermost level. If there is only one level, the factor scales this level.
  double networkScale = 1.0;
  /// If set, these texts replace the contents of the files `model`, `hardware`,
  /// `software` and `importFile`. Messages still begin with the names of the
  /// files.
  std::string modelText, machineText, softwareText, importText;
  /// Searches call this function often, on the thread that started the search.
  /// An exception ends the search without a result.
  std::function<void()> poll;
  /// Searches report their progress to this function (SearchOptions::watch).
  std::function<void(const planner::SearchState &)> watch;
  std::string load; ///< a saved plan
  std::string save;
  std::string output; ///< a folder
  std::string trace;
  std::string dot;
  std::string report;
  std::string software;
  std::string importFile;
  std::optional<ExportKind> exportKind;
  bool json = false, verify = false, timings = false, explain = false;
  Objective objective = Objective::stepTime;
  bool sequenceParallel = false; ///< tp may split the sequence
  std::optional<planner::Seconds> maxStepTime;
  std::optional<planner::Seconds> budget; ///< time limit of the search
};

/// Limits micro-batches and global batches, in samples.
inline constexpr std::int64_t kMostSamples = std::int64_t{1} << 20;

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_REQUEST_H
