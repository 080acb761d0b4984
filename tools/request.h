//===- request.h - What a person asked for ----------------------*- C++ -*-===//
//
// Flags as they were typed, and the same once their form is known to be good.
// Whether the numbers go together with a model and a machine is checked where
// those are known (limits.h).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_REQUEST_H
#define MTPLAN_TOOLS_REQUEST_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/graph/op_graph.h"
#include "planner/machine/machine.h"
#include "planner/search/pins.h"
#include "planner/search/search.h"

namespace mtplan::tools {

/// The command line, nothing judged.
struct Flags {
  using Text = std::optional<std::string>;
  std::string model;
  Text hardware, software, scaleNetwork;
  Text gpus, tp, dp, pp, cp, ep, virtualStages, zero, zeroRanks, schedule;
  Text recompute, recomputeLayers, overlap, offload, tiles;
  Text stageLayers, microBatch, globalBatch, sequence, layers, precision;
  Text splits, sequenceParallel, top, memoryGib;
  Text objective, maxStepTime, budgetSeconds;
  Text constraints, importFile, exportKind, load, save, output;
  Text emit, stage, dot, report, trace;
  std::vector<std::string> pins, compare;
  bool json = false, verify = false, timings = false, explain = false;
  /// By flag: where it was said, if not on the command line ("a.json: /tp").
  std::map<std::string, std::string> places;
};

/// A flag that says what may be planned, and its key in a constraints file.
struct FlagKey {
  enum class Kind : std::uint8_t { count, counts, number, word, words };
  const char *key, *flag;
  Flags::Text Flags::*text;
  Kind kind; ///< counts, words: one or several
};
const std::vector<FlagKey> &flagKeys();

/// Whose words `--export` uses.
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

/// What is to be least.
enum class Objective : std::uint8_t {
  stepTime, ///< of a step
  memory,   ///< of a GPU, then the step
  gpus      ///< in all, then the step
};
const char *nameOf(Objective objective);

/// A stage that `--emit mlir` prints.
enum class Stage : std::uint8_t { model, differentiated, planned, partitioned };
const char *nameOf(Stage stage);

struct PlanRequest {
  std::string model, hardware;
  std::optional<std::int64_t> gpus, tp, dp, microBatch, globalBatch;
  std::optional<std::int64_t> sequence, layers;
  /// What may be chosen. Nothing said: replicas and tensor ranks alone.
  planner::Choices<int> pp{{1}}, cp{{1}}, ep{{1}}, virtualStages{{1}};
  planner::Choices<int> zeroStage{{0}}, zeroRanks{{0}}, recomputeLayers{{-1}};
  planner::Choices<planner::ScheduleKind> schedule{
      {planner::ScheduleKind::oneForwardOneBackward}};
  planner::Choices<planner::Recompute> recompute{{planner::Recompute::none}};
  planner::Choices<planner::Offload> offload{{planner::Offload::none}};
  planner::Choices<int> tiles{{1}};
  /// Layers of each part of the model; empty: dealt out evenly.
  std::vector<int> stageLayers;
  bool unevenCuts = false; ///< or unevenly, as the search likes
  /// What runs beside compute. Nothing said: as a named software has it, else
  /// nothing.
  std::optional<planner::Overlaps> overlaps;
  std::optional<planner::Precision> precision;
  std::vector<planner::Split> splits;
  std::vector<planner::PinText> pins;
  std::int64_t top = 5;
  std::optional<planner::Bytes> memory; ///< of a device, instead of its own
  std::optional<Stage> emit;
  bool emitsCuda = false; ///< to `output`
  /// Rates between nodes, as a share of the machine's.
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
  std::optional<planner::Seconds> maxStepTime; ///< slower plans are none
  std::optional<planner::Seconds> budget;      ///< of the search
};

/// The default of `--splits`.
std::vector<planner::Split> defaultSplits();

/// The largest micro-batch or global batch.
inline constexpr std::int64_t kMostSamples = std::int64_t{1} << 20;

/// Every flag that is malformed becomes an error.
PlanRequest readFlags(const Flags &flags, std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REQUEST_H
