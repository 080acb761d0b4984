//===- saved_config.cpp - A configuration in a saved plan -----------------===//

#include "tools/driver/saved_config.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

using json = base::Json;
using base::JsonFields;
using planner::Parallelism;

namespace {

constexpr std::int64_t kMostCounted = 10'000'000;

template <typename Value>
std::vector<std::string> namesOf(std::initializer_list<Value> values) {
  std::vector<std::string> names;
  for (Value value : values)
    names.emplace_back(nameOf(value));
  return names;
}

} // namespace

json configJson(const Parallelism &config) {
  json value = {{"dp", config.dp},
                {"tp", config.tp},
                {"pp", config.pp},
                {"cp", config.cp},
                {"ep", config.ep},
                {"schedule", nameOf(config.schedule)},
                {"virtual_stages", config.virtualStages},
                {"stage_layers", config.layers},
                {"micro_batch", config.microBatch},
                {"zero", config.zeroStage},
                {"zero_ranks", config.zeroRanks},
                {"recompute", nameOf(config.recompute)},
                {"recompute_layers", config.recomputeLayers},
                {"offload", nameOf(config.offload)},
                {"tiles", config.tiles}};
  if (config.tp2 > 1)
    value["tp2"] = config.tp2;
  return value;
}

int savedCount(JsonFields &fields, const char *key) {
  return static_cast<int>(fields.integer(key, 0, kMostCounted));
}

std::optional<Parallelism> readConfig(JsonFields &plan,
                                      std::int64_t globalBatch,
                                      std::vector<std::string> &notes) {
  using planner::Offload;
  using planner::Recompute;
  using planner::ScheduleKind;
  constexpr std::int64_t kMostLayers = 10'000;
  const json *value = plan.need("parallelism");
  if (!value)
    return std::nullopt;
  std::size_t before = notes.size();
  JsonFields fields(*value, plan.pointerTo("parallelism"), notes);
  Parallelism config;
  config.dp = savedCount(fields, "dp");
  config.tp = savedCount(fields, "tp");
  config.tp2 = static_cast<int>(fields.integer("tp2", 1, kMostCounted, 1));
  if (config.tp % config.tp2 != 0)
    fields.fail("tp2", fmt::format("is {}, which does not divide tp {}",
                                   config.tp2, config.tp));
  config.pp = savedCount(fields, "pp");
  config.cp = savedCount(fields, "cp");
  config.ep = savedCount(fields, "ep");
  config.schedule = static_cast<ScheduleKind>(fields.oneOf(
      "schedule",
      namesOf({ScheduleKind::gpipe, ScheduleKind::oneForwardOneBackward,
               ScheduleKind::interleaved, ScheduleKind::zeroBubble})));
  config.virtualStages = savedCount(fields, "virtual_stages");
  for (std::int64_t layers :
       fields.integers("stage_layers", 1, kMostLayers, true))
    config.layers.push_back(static_cast<int>(layers));
  config.microBatch = fields.integer("micro_batch", 1, kMostSamples);
  config.globalBatch = globalBatch;
  config.zeroStage = static_cast<int>(fields.integer("zero", 0, 3));
  config.zeroRanks = savedCount(fields, "zero_ranks");
  config.recompute = static_cast<Recompute>(fields.oneOf(
      "recompute",
      namesOf({Recompute::none, Recompute::selective, Recompute::full})));
  config.recomputeLayers =
      static_cast<int>(fields.integer("recompute_layers", -1, kMostLayers));
  config.offload = static_cast<Offload>(
      fields.oneOf("offload", namesOf({Offload::none, Offload::optimizer})));
  config.tiles = savedCount(fields, "tiles");
  fields.rejectOthers();
  if (notes.size() != before)
    return std::nullopt;
  return config;
}

} // namespace mtplan::tools
