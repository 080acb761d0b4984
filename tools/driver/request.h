//===- request.h - What a plan is asked for ---------------------*- C++ -*-===//
//
// The values of all flags, once each is known to be well-formed. Whether the
// numbers fit a model and a machine is checked where those are known
// (limits.h).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_REQUEST_H
#define MTPLAN_TOOLS_DRIVER_REQUEST_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/graph/op_graph.h"
#include "planner/machine/machine.h"
#include "planner/search/search.h"
#include "planner/search/space/pins.h"

namespace mtplan::tools {

/// The notation that `--export` writes.
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
const char *nameOf(ExportKind kind);

/// The quantity that the search minimizes.
enum class Objective : std::uint8_t {
  stepTime,
  memory, ///< of a GPU, then the step time
  gpus    ///< in all, then the step time
};
const char *nameOf(Objective objective);

/// The stage of compilation that `--emit mlir` prints.
enum class Stage : std::uint8_t { model, differentiated, planned, partitioned };
const char *nameOf(Stage stage);

/// The splits that tp may use unless `--splits` says otherwise.
std::vector<planner::Split> defaultSplits();

struct PlanRequest {
  std::string model, hardware = "dgx-h100";
  std::optional<std::int64_t> gpus, tp, dp, microBatch, globalBatch;
  std::optional<std::int64_t> sequence, layers;
  /// Values to choose from. The defaults leave only dp and tp to the search.
  planner::Choices<int> pp{{1}}, cp{{1}}, ep{{1}}, virtualStages{{1}};
  planner::Choices<int> zeroStage{{0}}, zeroRanks{{0}}, recomputeLayers{{-1}};
  planner::Choices<planner::ScheduleKind> schedule{
      {planner::ScheduleKind::oneForwardOneBackward}};
  planner::Choices<planner::Recompute> recompute{{planner::Recompute::none}};
  planner::Choices<planner::Offload> offload{{planner::Offload::none}};
  planner::Choices<int> tiles{{1}};
  /// Layers of each virtual stage; empty: the layers are cut evenly.
  std::vector<int> stageLayers;
  bool unevenCuts = false; ///< the search chooses the cuts
  /// Communication that runs beside compute. Empty: the software file's, or
  /// none without one.
  std::optional<planner::Overlaps> overlaps;
  std::optional<planner::Precision> precision;
  std::vector<planner::Split> splits = defaultSplits();
  std::vector<planner::PinText> pins;
  std::int64_t top = 5;
  std::optional<planner::Bytes> memory; ///< of a device, instead of its own
  std::optional<Stage> emit;
  bool emitsCuda = false; ///< to `output`
  /// Bandwidth between nodes, as a multiple of the machine's.
  double networkScale = 1.0;
  /// Texts of machine and software files to use instead of those named.
  std::string machineText, softwareText;
  std::string load;       ///< a saved plan, or empty
  std::string save;       ///< file for the plan, or empty
  std::string output;     ///< folder for the compiled plan, or empty
  std::string trace;      ///< file, or empty
  std::string dot;        ///< file, or empty
  std::string report;     ///< HTML file, or empty
  std::string software;   ///< preset or file, or empty
  std::string importFile; ///< another trainer's configuration, or empty
  std::optional<ExportKind> exportKind;
  bool json = false, verify = false, timings = false, explain = false;
  Objective objective = Objective::stepTime;
  bool sequenceParallel = false; ///< requested: tp must split the sequence
  std::optional<planner::Seconds> maxStepTime; ///< slower plans are rejected
  std::optional<planner::Seconds> budget;      ///< of the search
};

/// The largest micro-batch or global batch.
inline constexpr std::int64_t kMostSamples = std::int64_t{1} << 20;

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_REQUEST_H
