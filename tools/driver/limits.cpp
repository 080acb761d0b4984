//===- limits.cpp - Degrees that a model and a machine allow --------------===//

#include "tools/driver/limits.h"

#include <algorithm>
#include <array>
#include <optional>

#include "planner/search/space/parallelism.h"
#include "planner/search/space/pipeline_parts.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::SearchOptions;

namespace {

std::string text(std::int64_t number) { return std::to_string(number); }

const char *const kNearest = "nearest that do: ";

template <typename Value>
std::optional<Value> only(const planner::Choices<Value> &choices) {
  return choices.only.size() == 1 ? std::optional(choices.only[0])
                                  : std::nullopt;
}

// Returns "1 2 4 7 14 28", with at most the first 24 divisors.
std::string divisorList(std::int64_t number) {
  constexpr int kMost = 24;
  std::string list;
  int count = 0;
  for (std::int64_t d = 1; d <= number && count < kMost; ++d)
    if (number % d == 0) {
      if (count++)
        list += ' ';
      list += text(d);
    }
  return list;
}

struct Degree {
  const char *name;
  std::int64_t size;
};

void checkMesh(const SearchOptions &options, std::vector<std::string> &errors) {
  std::vector<Degree> fixed;
  // A degree that is not fixed can use the remaining devices.
  bool isOpen = false;
  auto note = [&](const char *name, std::optional<int> size) {
    isOpen = isOpen || !size;
    if (size &&
        (*size > 1 || name == std::string("tp") || name == std::string("dp")))
      fixed.push_back({name, *size});
  };
  note("tp", options.tp);
  note("dp", options.dp);
  note("pp", only(options.pp));
  note("cp", only(options.cp));
  std::size_t before = errors.size();
  std::int64_t product = 1;
  for (const Degree &degree : fixed) {
    if (options.devices % degree.size != 0)
      errors.push_back(std::string(degree.name) + ' ' + text(degree.size) +
                       " does not divide the " + text(options.devices) +
                       " GPUs; " + kNearest +
                       nearestDivisors(options.devices, degree.size));
    product *= degree.size;
  }
  if (errors.size() != before || fixed.size() < 2 ||
      (isOpen ? options.devices % product == 0 : product == options.devices))
    return;
  std::string message, advice;
  for (const Degree &degree : fixed) {
    message += (message.empty() ? "" : " times ") + std::string(degree.name) +
               ' ' + text(degree.size);
    std::int64_t others = product / degree.size;
    if (!isOpen && options.devices % others == 0)
      for (const Degree &other : fixed)
        if (fixed.size() == 2 && &other != &degree)
          advice += std::string("; with ") + degree.name + ' ' +
                    text(degree.size) + ", " + other.name + " must be " +
                    text(options.devices / degree.size);
    if (!isOpen && fixed.size() > 2 && options.devices % others == 0)
      advice += std::string("; ") + degree.name + " could be " +
                text(options.devices / others);
  }
  errors.push_back(message + " is " + text(product) +
                   (isOpen ? ", which does not divide the " : ", not the ") +
                   text(options.devices) + " GPUs" + advice);
}

void checkDivisors(const SearchOptions &options,
                   std::vector<std::string> &errors) {
  // With two tensor axes, one axis may leave a dimension unsplit.
  if (!options.tp || options.tp2.only != std::vector{1})
    return;
  for (const planner::Divisor &divisor : options.divisors)
    if (divisor.size % *options.tp != 0 &&
        std::ranges::find(options.tensorSplits, divisor.split) !=
            options.tensorSplits.end())
      errors.push_back(text(divisor.size) + ' ' + divisor.name +
                       " do not divide by tp " + text(*options.tp) +
                       "; tp may be " + divisorList(divisor.size) +
                       ", or any with --splits that leave " +
                       nameOf(divisor.split) + " out");
}

std::optional<std::int64_t> onlyDp(const SearchOptions &options) {
  if (options.dp)
    return *options.dp;
  if (!options.tp || options.pp.only.size() != 1 || options.cp.only.size() != 1)
    return std::nullopt;
  std::int64_t others =
      std::int64_t{*options.tp} * options.pp.only[0] * options.cp.only[0];
  if (options.devices % others == 0)
    return options.devices / others;
  return std::nullopt;
}

void checkBatch(const SearchOptions &options,
                std::vector<std::string> &errors) {
  std::int64_t batch = options.globalBatch;
  std::optional<std::int64_t> dp = onlyDp(options);
  if (dp && batch % *dp != 0) {
    errors.push_back("global batch " + text(batch) + " does not divide by dp " +
                     text(*dp) + "; " + kNearest +
                     nearestMultiples(*dp, batch));
    return;
  }
  if (!options.microBatch)
    return;
  std::int64_t samples = *options.microBatch;
  if (dp && batch / *dp % samples != 0) {
    errors.push_back("micro-batch " + text(samples) + " does not divide the " +
                     text(batch / *dp) +
                     " samples of a replica (global batch " + text(batch) +
                     " over dp " + text(*dp) + "); " + kNearest +
                     nearestDivisors(batch / *dp, samples));
  } else if (!dp && batch % samples != 0) {
    errors.push_back("micro-batch " + text(samples) +
                     " does not divide global batch " + text(batch) + "; " +
                     kNearest + nearestDivisors(batch, samples));
  }
}

// Checks that the replicas can be divided into groups of ep replicas, which
// share the experts, and into groups over which ZeRO shards state.
void checkReplicas(const SearchOptions &options,
                   const planner::ModelGraph &model,
                   std::vector<std::string> &errors) {
  const std::vector<int> &sharing = options.zeroRanks.only;
  std::optional<std::int64_t> dp = onlyDp(options);
  int replicas = dp ? static_cast<int>(*dp) : options.devices;
  std::int64_t experts = planner::expertsOf(model);
  std::string against = planner::errorOfExpertRanks(options.ep, experts,
                                                    replicas, dp.has_value());
  bool splits = std::ranges::any_of(
      std::array{1, 2, 3}, [&](int z) { return options.zeroStage.allows(z); });
  if (against.empty() && splits && dp)
    against = planner::errorOfZeroRanks(
        options.zeroRanks, planner::expertRanks(options.ep, experts, replicas),
        replicas);
  else if (against.empty() && splits && !sharing.empty() &&
           std::ranges::none_of(sharing, [&](int n) {
             return n == 0 || options.devices % n == 0;
           }))
    against = "zero-ranks " + planner::listText(sharing, "or") +
              " does not divide the " + text(options.devices) + " GPUs; " +
              kNearest +
              planner::nearestOf(planner::divisorsOf(options.devices),
                                 {sharing.begin(), sharing.end()});
  else if (against.empty() && !splits && !sharing.empty() &&
           std::ranges::max(sharing) > 1)
    against = "zero-ranks " + planner::listText(sharing, "or") +
              " need ZeRO, but its stage is 0; use --zero 1, 2 or 3, or "
              "--zero-ranks 1";
  if (!against.empty())
    errors.push_back(std::move(against));
}

// Checks that pp divides the number of micro-batches, because an interleaved
// schedule runs micro-batches in rounds of pp.
void checkRounds(const SearchOptions &options, int pp,
                 std::vector<std::string> &errors) {
  std::optional<std::int64_t> dp = onlyDp(options);
  if (!dp || !options.microBatch || options.globalBatch % *dp != 0 ||
      options.globalBatch / *dp % *options.microBatch != 0)
    return;
  std::int64_t rounds = options.globalBatch / *dp / *options.microBatch;
  if (rounds % pp != 0)
    errors.push_back(text(rounds) + " micro-batches do not divide by pp " +
                     text(pp) + ", as the interleaved schedule needs; " +
                     kNearest + nearestMultiples(pp, rounds));
}

// Lists the numbers (>= 2) of virtual stages per rank that fillsChunks()
// accepts, or returns "none".
std::string chunksFor(int layers, int pp) {
  std::string list;
  for (int v = 2; v * pp <= layers; ++v)
    if (planner::fillsChunks(layers, v * pp))
      list += ' ' + text(v);
  return list.empty() ? "none" : list.substr(1);
}

void checkStageLayers(const SearchOptions &options, int layers,
                      std::vector<std::string> &errors) {
  int sum = 0;
  for (int part : options.layers)
    sum += part;
  auto parts = static_cast<int>(options.layers.size());
  if (sum != layers)
    errors.push_back("the parts of the pipeline hold " + text(sum) +
                     " layers, the model " + text(layers));
  std::optional<int> pp = only(options.pp), v = only(options.virtualStages);
  if (pp && v && *pp * *v != parts)
    errors.push_back("layers are given for " + text(parts) + " parts, pp " +
                     text(*pp) + (*v > 1 ? " times vp " + text(*v) : "") +
                     " has " + text(*pp * *v));
  else if (pp && parts % *pp != 0)
    errors.push_back("layers are given for " + text(parts) +
                     " parts, which do not divide by pp " + text(*pp) + "; " +
                     kNearest + nearestMultiples(*pp, parts));
}

// Checks that the layers fill all stages, that twice cp divides the sequence,
// and that the schedule allows pp, vp and the number of micro-batches.
void checkPipeline(const SearchOptions &options,
                   const planner::ModelGraph &model,
                   std::vector<std::string> &errors) {
  int layers = planner::layersOf(model);
  std::optional<int> pp = only(options.pp), v = only(options.virtualStages);
  std::optional<int> cp = only(options.cp);
  if (!options.layers.empty())
    checkStageLayers(options, layers, errors);
  if (pp && *pp > layers)
    errors.push_back(text(layers) + " layers do not fill pp " + text(*pp) +
                     "; at most " + text(layers) + " stages have one each");
  if (cp && *cp > 1 && model.sequence % (2 * std::int64_t{*cp}) != 0)
    errors.push_back("sequence " + text(model.sequence) +
                     " does not divide by twice cp " + text(*cp) + "; " +
                     kNearest +
                     nearestMultiples(2 * std::int64_t{*cp}, model.sequence));
  bool interleaves =
      options.schedule.allows(planner::ScheduleKind::interleaved);
  if (v && *v > 1 && !interleaves) {
    errors.push_back("vp " + text(*v) +
                     " needs the interleaved schedule, not " +
                     nameOf(options.schedule.only.front()));
    return;
  }
  if (!pp || only(options.schedule) != planner::ScheduleKind::interleaved)
    return;
  if (*pp == 1) {
    errors.emplace_back("the interleaved schedule needs pp above 1");
    return;
  }
  if (v && *v == 1)
    errors.emplace_back("the interleaved schedule needs vp above 1");
  else if (v && options.layers.empty() && *pp <= layers &&
           !planner::fillsChunks(layers, *pp * *v))
    errors.push_back(text(layers) + " layers do not divide by pp " + text(*pp) +
                     " times vp " + text(*v) + ", which is " + text(*pp * *v) +
                     ", nor with one less in the first or last chunk; vp may "
                     "be " +
                     chunksFor(layers, *pp) + ", or any with --stage-layers");
  checkRounds(options, *pp, errors);
}

// Rejects numbers of recomputed layers above the largest number of layers of a
// virtual stage. A request without a number recomputes all layers.
void checkRecomputed(const SearchOptions &options,
                     const planner::ModelGraph &model,
                     std::vector<std::string> &errors) {
  auto least = [](const planner::Choices<int> &choices) {
    return choices.only.empty() ? 1 : std::ranges::min(choices.only);
  };
  const int layers = planner::layersOf(model);
  const int parts = least(options.pp) * least(options.virtualStages);
  int most = layers;
  if (!options.layers.empty())
    most = std::ranges::max(options.layers);
  else if (parts > layers)
    most = 1;
  else if (options.unevenCuts)
    most = layers - parts + 1;
  else
    most = std::ranges::max(planner::evenLayers(layers, parts));
  for (int count : options.recomputeLayers.only)
    if (count > most)
      errors.push_back("recompute-layers " + text(count) +
                       " is more than the " + text(most) +
                       " layers of a virtual stage; at most " + text(most) +
                       ", or left out for all of them");
}

void checkTiles(const SearchOptions &options,
                std::vector<std::string> &errors) {
  if (options.tiles.allows(1))
    return;
  if (!options.zeroStage.allows(3))
    errors.push_back(
        "tiles " + text(options.tiles.only.front()) +
        " divide the weights that ZeRO 3 gathers; use --zero 3, or --tiles 1");
  else if (options.devices == 1 && options.zeroStage.only.size() != 1)
    errors.push_back(
        "tiles " + text(options.tiles.only.front()) +
        " need ZeRO 3, which on one GPU must be requested with --zero 3");
}

} // namespace

void checkSequenceParallel(const SearchOptions &options, std::int64_t sequence,
                           std::vector<std::string> &errors) {
  const std::vector<int> &cps = options.cp.only;
  const std::int64_t cp = cps.empty() ? 1 : std::ranges::min(cps);
  const bool oneGpu = !options.tp && options.devices == 1;
  if (!options.tp && !oneGpu)
    return;
  const std::int64_t tp = oneGpu ? 1 : *options.tp;
  std::int64_t nearest = 2;
  while (nearest * cp < sequence && sequence % (nearest * cp) != 0)
    ++nearest;
  const bool divides = sequence % (nearest * cp) == 0;
  if (tp == 1)
    errors.push_back(
        std::string(
            "sequence-parallel on splits the sequence over tp, which ") +
        (oneGpu ? "on 1 GPU is 1" : "is 1") +
        "; nearest tp that divides sequence " + text(sequence) + ": " +
        (divides ? text(nearest) : "none") + ", or sequence-parallel off");
  else if (sequence % (tp * cp) != 0)
    errors.push_back(
        "sequence " + text(sequence) + " does not divide by tp " + text(tp) +
        (cp > 1 ? " times cp " + text(cp) + ", which is " + text(tp * cp)
                : "") +
        ", as sequence-parallel on needs; " + kNearest +
        nearestMultiples(tp * cp, sequence) + ", or sequence-parallel off");
}

std::string errorOfUnevenCuts(const SearchOptions &options) {
  const std::vector<int> &pp = options.pp.only,
                         &vp = options.virtualStages.only;
  auto isOne = [](int n) { return n == 1; };
  if (!pp.empty() && std::ranges::all_of(pp, isOne))
    return "stage-layers any cuts a pipeline unevenly, and pp 1 has nothing to "
           "cut; with --pp any, or above 1, it has";
  if (!vp.empty() && std::ranges::none_of(vp, isOne))
    return "stage-layers any cuts stages of one part each unevenly, and vp " +
           planner::listText(vp, "or") +
           " has more; with vp 1 or any there are such cuts, or "
           "--stage-layers gives the layers of each part";
  if (only(options.schedule) == planner::ScheduleKind::interleaved)
    return "stage-layers any cuts stages of one part each unevenly, and the "
           "interleaved schedule has more; with 1f1b, or any, there are such "
           "cuts, or --stage-layers gives the layers of each part";
  return {};
}

void checkLimits(const SearchOptions &options, const planner::ModelGraph *model,
                 std::vector<std::string> &errors) {
  checkMesh(options, errors);
  checkDivisors(options, errors);
  checkBatch(options, errors);
  checkTiles(options, errors);
  if (options.unevenCuts)
    if (std::string error = errorOfUnevenCuts(options); !error.empty())
      errors.push_back(std::move(error));
  if (model) {
    checkReplicas(options, *model, errors);
    checkPipeline(options, *model, errors);
    checkRecomputed(options, *model, errors);
  }
}

void setTensorAxes(const PlanRequest &request, SearchOptions &options,
                   std::vector<std::string> &errors) {
  const std::vector<int> &axes = request.tensorAxes;
  if (axes.size() == 1) {
    options.tp2.only = axes[0] == 1 ? std::vector{1} : std::vector<int>{};
    return;
  }
  const std::int64_t product = std::int64_t{axes[0]} * axes[1];
  const std::string said = "--tp-axes " + text(axes[0]) + ',' + text(axes[1]) +
                           ": " + text(product) + " tensor ranks, but ";
  if (request.tp && *request.tp != product)
    errors.push_back(said + "--tp is " + text(*request.tp));
  if (product > options.devices) {
    errors.push_back(said + "there are " + text(options.devices) + " GPUs");
    return;
  }
  options.tp = static_cast<int>(product);
  options.tp2.only = {axes[1]};
}

} // namespace mtplan::tools
