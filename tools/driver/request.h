//===- request.h - The request for a plan -----------------------*- C++ -*-===//
//
// A request holds the values of all flags, each of which is well-formed.
// limits.h checks whether the numbers fit a model and a machine.
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

/// Names the notation that `--export` writes.
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

/// Names the quantity that the search minimizes.
enum class Objective : std::uint8_t {
  stepTime,
  memory, ///< memory of a GPU, then the step time
  gpus    ///< number of GPUs, then the step time
};
inline const char *nameOf(Objective objective) {
  constexpr const char *kNames[] = {"step-time", "memory", "gpus"};
  return kNames[static_cast<int>(objective)];
}

/// Names the stage of compilation that `--emit mlir` prints.
enum class Stage : std::uint8_t { model, differentiated, planned, partitioned };
inline const char *nameOf(Stage stage) {
  constexpr const char *kNames[] = {"model", "differentiated", "planned",
                                    "partitioned"};
  return kNames[static_cast<int>(stage)];
}

/// Returns the splits that tp may use with `--splits all`. `hidden` is not
/// among them (see planner::Split).
inline std::vector<planner::Split> allSplits() {
  using planner::Split;
  return {Split::column,   Split::row,   Split::head,  Split::vocab,
          Split::sequence, Split::batch, Split::expert};
}

/// Returns the splits that tp may use on a command line without `--splits`: all
/// but the samples, which dp splits.
inline std::vector<planner::Split> defaultSplits() {
  std::vector<planner::Split> splits = allSplits();
  std::erase(splits, planner::Split::batch);
  return splits;
}

/// Limits the number of GPUs for PlanRequest::countsOnFewGpus.
inline constexpr std::int64_t kFewGpus = 8;

/// By default, a request leaves only dp, tp and the micro-batch to the search.
/// The command line leaves further choices to the search (read_flags.h).
struct PlanRequest {
  std::string model, hardware = "dgx-h100";
  std::optional<std::int64_t> gpus, tp, dp, microBatch, globalBatch;
  std::optional<std::int64_t> sequence, layers;
  /// The search chooses each degree from these values. By default, each member
  /// has a single value.
  planner::Choices<int> pp{{1}}, cp{{1}}, ep{{1}}, virtualStages{{1}};
  /// If set, cp is not searched but 1 for models with experts, because a search
  /// over both cp and ep takes long.
  bool cpNeedsDenseModel = false;
  /// If set, the search chooses the number of recomputed layers for dense
  /// models on up to kFewGpus GPUs. On more GPUs, or with experts, full
  /// recomputation covers all layers, because a search over uneven stages and
  /// such numbers takes long.
  bool countsOnFewGpus = false;
  /// If set, the optimizer's state is offloaded if nothing else fits.
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
  bool unevenCuts = false; ///< the search chooses the cuts
  /// Says whether it is an error that no configuration of the request can have
  /// uneven cuts; otherwise `unevenCuts` is then ignored.
  bool asksForCuts = false;
  /// Names the communication that overlaps compute. If empty, the software file
  /// decides; without a software file, nothing overlaps.
  std::optional<planner::Overlaps> overlaps;
  std::optional<planner::Precision> precision;
  std::vector<planner::Split> splits = allSplits();
  /// Lists the collectives that may change layouts between operators.
  planner::Choices<planner::StepKind> collectives;
  std::vector<planner::PinText> pins;
  std::int64_t top = 5;
  /// Becomes planner::SearchOptions::tolerance.
  double tolerance = 0.0;
  /// Holds the share of a GPU's memory that plans leave free, unless no plan
  /// fits into the rest. The share is ignored if `memory` is set, and by
  /// Objective::memory.
  double keptFree = 0.0;
  /// Replaces the memory of the machine's devices.
  std::optional<planner::Bytes> memory;
  std::optional<Stage> emit;
  bool emitsCuda = false; ///< the CUDA program is written to `output`
  /// The bandwidth of all network levels but the innermost, or of the only
  /// level, is multiplied by this number.
  double networkScale = 1.0;
  /// These texts replace the files named by `model`, `hardware`, `software` and
  /// `importFile`, if set. Messages still begin with the names.
  std::string modelText, machineText, softwareText, importText;
  /// Searches call this often, on the thread that started them. It may throw,
  /// which ends the search without a result.
  std::function<void()> poll;
  std::string load;       ///< a saved plan, or empty
  std::string save;       ///< file for the plan, or empty
  std::string output;     ///< folder for the compiled plan, or empty
  std::string trace;      ///< file for the timeline, or empty
  std::string dot;        ///< file for the graph, or empty
  std::string report;     ///< HTML file, or empty
  std::string software;   ///< preset or file, or empty
  std::string importFile; ///< another trainer's configuration, or empty
  std::optional<ExportKind> exportKind;
  bool json = false, verify = false, timings = false, explain = false;
  Objective objective = Objective::stepTime;
  bool sequenceParallel = false; ///< requested: tp must split the sequence
  std::optional<planner::Seconds> maxStepTime; ///< slower plans are rejected
  std::optional<planner::Seconds> budget;      ///< time limit of the search
};

/// Limits micro-batches and global batches, in samples.
inline constexpr std::int64_t kMostSamples = std::int64_t{1} << 20;

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_REQUEST_H
