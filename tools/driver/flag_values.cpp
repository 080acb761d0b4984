//===- flag_values.cpp - Flags with a special syntax ----------------------===//

#include "tools/driver/flag_values.h"

#include <nlohmann/json.hpp>

#include "ir/model/fields.h"

namespace mtplan::tools {

using planner::SearchOptions;
using planner::Split;
using Json = nlohmann::ordered_json;

namespace {

constexpr Split kSplits[] = {Split::column, Split::row,      Split::head,
                             Split::vocab,  Split::sequence, Split::batch,
                             Split::expert, Split::hidden};

struct Overlapped {
  const char *name;
  bool planner::Overlaps::*allowed;
};
constexpr Overlapped kOverlapped[] = {
    {"gather", &planner::Overlaps::gather},
    {"reduce", &planner::Overlaps::reduce},
    {"sends", &planner::Overlaps::pointToPoint},
    {"host", &planner::Overlaps::up}};
const char *nameOf(const Overlapped &traffic) { return traffic.name; }

} // namespace

void readOverlap(const std::string &text, PlanRequest &request,
                 Faults &faults) {
  if (text == "on") {
    request.overlaps = planner::Overlaps{};
    return;
  }
  planner::Overlaps &overlaps = request.overlaps.emplace(
      planner::Overlaps{false, false, false, false, false, false});
  if (text == "off")
    return;
  for (const std::string &word : distinct(wordsOf(text)))
    if (auto traffic =
            namedBy(word, "traffic (or on, off)", kOverlapped, faults))
      overlaps.*traffic->allowed = true;
  overlaps.down = overlaps.hostUpdate = overlaps.up;
}

void readStageLayers(const std::string &text, PlanRequest &request,
                     Faults &faults) {
  request.unevenCuts = request.asksForCuts = text == "any";
  if (!request.unevenCuts && text != "even")
    request.stageLayers = countsOf(text, ir::kMaxLayers, faults);
}

void readTensorAxes(const std::string &text, PlanRequest &request,
                    Faults &faults) {
  const std::size_t before = faults.size();
  std::vector<int> axes = countsOf(text, kMostGpus, faults);
  if (faults.size() > before)
    return;
  const bool isNumber = axes.size() == 1 && axes[0] <= 2;
  const bool areSizes = axes.size() == 2 && axes[0] > 1 && axes[1] > 1;
  if (isNumber || areSizes)
    request.tensorAxes = std::move(axes);
  else
    faults.push_back("must be 1, 2, or two sizes above 1 such as 4,2, but is "
                     "\"" +
                     text + '"');
}

void readSplits(const std::string &text, PlanRequest &request, Faults &faults) {
  if (text == "all") {
    request.splits = allSplits();
    return;
  }
  std::vector<Split> splits;
  Faults unknown;
  for (const std::string &word : distinct(wordsOf(text)))
    if (auto split = namedBy(word, "split", kSplits, unknown))
      splits.push_back(*split);
  // A list with an unknown split is not stored, because its other splits alone
  // would only cause further errors.
  if (unknown.empty())
    request.splits = std::move(splits);
  faults.insert(faults.end(), unknown.begin(), unknown.end());
}

void readEmit(const std::string &text, PlanRequest &request, Faults &faults) {
  request.emitsCuda = text == "cuda";
  if (text != "mlir" && text != "cuda")
    faults.push_back("knows mlir and cuda, but is \"" + text + '"');
}

Json tensorAxesJson(const PlanRequest &request, const SearchOptions &) {
  if (request.tensorAxes.size() == 1)
    return request.tensorAxes[0];
  return request.tensorAxes;
}

Json overlapJson(const PlanRequest &, const SearchOptions &options) {
  Json list = Json::array();
  bool all = true;
  for (const Overlapped &traffic : kOverlapped) {
    const bool is = options.overlaps.*traffic.allowed;
    all = all && is;
    if (is)
      list.push_back(traffic.name);
  }
  if (list.empty())
    return "off";
  return all ? Json("on") : list;
}

Json stageLayersJson(const PlanRequest &, const SearchOptions &options) {
  if (!options.layers.empty())
    return options.layers;
  return options.unevenCuts ? "any" : "even";
}

// The splits of two tensor axes are written only if the request names splits;
// otherwise, other flags determine them.
Json splitsJson(const PlanRequest &request, const SearchOptions &options) {
  if (request.tensorAxes != std::vector{1} && !request.asksForSplits)
    return Json();
  Json splits = Json::array();
  for (Split split : options.tensorSplits)
    splits.push_back(nameOf(split));
  return splits;
}

} // namespace mtplan::tools
