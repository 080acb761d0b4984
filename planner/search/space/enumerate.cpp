//===- enumerate.cpp - The configurations of a space ----------------------===//

#include "planner/search/space/enumerate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "planner/integers.h"
#include "planner/search/space/pipeline_parts.h"
#include "planner/search/space/segment_runs.h"

namespace mtplan::planner {

namespace {

class Enumeration {
public:
  Enumeration(const ModelGraph &m, const Machine &on, const SearchOptions &o,
              std::vector<Rejection> &r)
      : model(m), machine(on), options(o), rejections(r), layers(layersOf(m)),
        experts(expertsOf(m)) {}

  std::vector<Parallelism> run() {
    for (std::int64_t tp : divisorsOf(options.devices))
      for (std::int64_t pp : divisorsOf(options.devices / tp))
        for (std::int64_t cp : divisorsOf(options.devices / tp / pp)) {
          Parallelism config;
          config.tp = static_cast<int>(tp);
          config.pp = static_cast<int>(pp);
          config.cp = static_cast<int>(cp);
          config.dp = static_cast<int>(options.devices / tp / pp / cp);
          config.microBatch = 0;
          config.globalBatch = options.globalBatch;
          if (!isAskedFor(config))
            continue;
          const std::vector<int> second = secondTensorRanks(config);
          if (second.empty())
            refuseTensorRanks(config);
          else if (isLegal(config) && replicasMayShare(config))
            for (int tp2 : second) {
              config.tp2 = tp2;
              addExperts(config);
            }
        }
    return std::move(found);
  }

private:
  // Returns the nearest global batches that `dp` divides, for example "510 and
  // 513".
  std::string batchesNear(std::int64_t dp) const {
    std::int64_t below = options.globalBatch / dp * dp;
    return nearestOf({std::max(below, dp), below + dp}, {options.globalBatch});
  }

  // Returns the legal values of Parallelism::tp2. If there are two tensor axes,
  // each has several ranks.
  std::vector<int> secondTensorRanks(Parallelism config) const {
    std::vector<int> ranks;
    for (std::int64_t tp2 : divisorsOf(config.tp)) {
      config.tp2 = static_cast<int>(tp2);
      if ((tp2 == 1 || tp2 < config.tp) && options.tp2.allows(config.tp2) &&
          violatedDivisor(config).empty())
        ranks.push_back(config.tp2);
    }
    return ranks;
  }

  void refuseTensorRanks(const Parallelism &config) {
    std::string violated = violatedDivisor(config);
    refuse(config, violated.empty() ? "tp " + std::to_string(config.tp) +
                                          " has no two axes of these sizes"
                                    : violated + " are not divisible by tp " +
                                          std::to_string(config.tp));
  }

  bool isAskedFor(const Parallelism &config) const {
    return (!options.tp || *options.tp == config.tp) &&
           (!options.dp || *options.dp == config.dp) &&
           options.pp.allows(config.pp) && options.cp.allows(config.cp);
  }

  bool isLegal(const Parallelism &config) {
    if (config.tp == 1 && splitsArePinned() && mayBeSplit())
      return refuse(config, "a pin requires a split, but tp 1 splits nothing",
                    Rejection::Reason::pins);
    if (options.globalBatch % config.dp != 0)
      return refuse(config,
                    "global batch " + std::to_string(options.globalBatch) +
                        " is not divisible by dp " + std::to_string(config.dp) +
                        "; nearest that are: " + batchesNear(config.dp));
    if (config.pp > layers)
      return refuse(config, std::to_string(layers) +
                                " layers are too few for pp " +
                                std::to_string(config.pp));
    if (config.pp > 1 && !layersCarryEqualShapes() &&
        options.schedule.only == std::vector{ScheduleKind::interleaved})
      return refuse(config,
                    "encoder and decoder layers carry different values and "
                    "cannot alternate on a stage: interleaved needs layers of "
                    "one kind");
    // In zigzag order, each context rank has an early and a late slice of the
    // sequence.
    if (config.cp > 1 && model.sequence % (2 * config.cp) != 0)
      return refuse(config, "sequence " + std::to_string(model.sequence) +
                                " is not divisible by twice cp " +
                                std::to_string(config.cp));
    return true;
  }

  bool refuse(const Parallelism &config, std::string detail,
              Rejection::Reason reason = Rejection::Reason::divisor) {
    rejections.push_back({config, reason, {}, {}, false, std::move(detail)});
    return false;
  }

  // Returns a dimension that tp must divide but does not, as text. The
  // check needs a tp that the options fix, and a single tensor axis: a tp that
  // the search chooses may be useful for other splits, and one of two tensor
  // axes may leave the dimension unsplit.
  std::string violatedDivisor(const Parallelism &config) const {
    if (!options.tp || config.tp2 > 1)
      return {};
    for (const Divisor &divisor : options.divisors)
      if (divisor.size % config.tp != 0 &&
          contains(options.tensorSplits, divisor.split))
        return std::to_string(divisor.size) + " " + divisor.name;
    return {};
  }

  // Returns whether a pin requires a split over the tensor axis.
  bool splitsArePinned() const {
    if (!options.pins)
      return false;
    for (const auto &segment : options.pins->ops)
      for (const std::string &word : segment)
        if (!word.empty() && word != "replicated")
          return true;
    return std::ranges::any_of(options.pins->parameters, [](const auto &pin) {
      return pin && std::ranges::any_of(*pin, [](const std::string &entry) {
               return !entry.empty();
             });
    });
  }

  // Returns whether tp is open and may be greater than 1.
  bool mayBeSplit() const {
    return options.devices > 1 && !options.tp &&
           (!options.dp || *options.dp < options.devices);
  }

  // Returns whether a requested expert-parallel size and, if ZeRO is required,
  // a requested ZeRO group size is possible; if not, rejects the mesh.
  bool replicasMayShare(const Parallelism &config) {
    std::string against = errorOfExpertRanks(options.ep, experts, config.dp);
    bool asked = options.zeroStage.only.size() == 1;
    if (against.empty() && !options.zeroStage.allows(0) &&
        (config.dp * config.cp > 1 || asked))
      against = errorOfZeroRanks(options.zeroRanks,
                                 expertRanks(options.ep, experts, config.dp),
                                 config.dp);
    return against.empty() || refuse(config, std::move(against));
  }

  void addExperts(Parallelism config) {
    for (int ep : expertRanks(options.ep, experts, config.dp)) {
      config.ep = ep;
      addBatches(config);
    }
  }

  void addBatches(Parallelism config) {
    for (std::int64_t b : divisorsOf(options.globalBatch / config.dp))
      if (!options.microBatch || *options.microBatch == b) {
        config.microBatch = b;
        addSchedules(config);
      }
  }

  void addSchedules(Parallelism config) {
    constexpr ScheduleKind kKinds[] = {
        ScheduleKind::oneForwardOneBackward, ScheduleKind::interleaved,
        ScheduleKind::zeroBubble, ScheduleKind::gpipe};
    if (config.pp == 1) {
      config.layers = {layers};
      addStages(config);
      return;
    }
    for (ScheduleKind kind : kKinds) {
      if (!options.schedule.allows(kind))
        continue;
      config.schedule = kind;
      bool chunked = kind == ScheduleKind::interleaved;
      if (chunked && !layersCarryEqualShapes())
        continue;
      for (int v = chunked ? 2 : 1;
           v == 1 || (chunked && v * config.pp <= layers); ++v) {
        config.virtualStages = v;
        if (options.virtualStages.allows(v) &&
            (!chunked ||
             ((!options.layers.empty() || fillsChunks(layers, v * config.pp)) &&
              config.microBatches() % config.pp == 0)) &&
            (options.layers.empty() ||
             static_cast<int>(options.layers.size()) == v * config.pp)) {
          config.layers = options.layers.empty()
                              ? evenLayers(layers, v * config.pp)
                              : options.layers;
          addStages(config);
        }
        if (!chunked)
          break;
      }
    }
  }

  // Returns whether all layers receive values of the same shapes. The chunks of
  // a stage are solved as one chain, so any layer must be able to follow any
  // other layer.
  bool layersCarryEqualShapes() const {
    const SegmentGraph *first = nullptr;
    auto shapeAt = [](const SegmentGraph &segment, std::size_t i) {
      return segment.tensors[at(segment.carriedIn[i])].shape;
    };
    for (const SegmentGraph &segment : model.segments) {
      if (segment.repeat == 1)
        continue;
      if (!first)
        first = &segment;
      if (segment.carriedIn.size() != first->carriedIn.size())
        return false;
      for (std::size_t i = 0; i < segment.carriedIn.size(); ++i)
        if (shapeAt(segment, i) != shapeAt(*first, i))
          return false;
    }
    return true;
  }

  void addStages(Parallelism config) {
    bool asked = options.zeroStage.only.size() == 1;
    for (int stage = 0; stage <= 3; ++stage) {
      bool pointless = stage > 0 && config.dp * config.cp == 1;
      bool perMicroBatch = stage > 1 && config.pp > 1;
      if (!options.zeroStage.allows(stage) ||
          ((pointless || perMicroBatch) && !asked))
        continue;
      config.zeroStage = stage;
      for (int sharing : zeroRanksOf(config, machine, options.zeroRanks)) {
        config.zeroRanks = sharing;
        addRecomputations(config);
      }
    }
    if (asked || config.dp * config.cp > 1 || options.zeroStage.allows(0))
      return;
    // Without replicas all ZeRO stages are equal.
    config.zeroStage = 0;
    addRecomputations(config);
  }

  void addRecomputations(Parallelism config) {
    bool asked = options.recompute.only.size() == 1;
    bool counted = isCounted(options);
    for (Recompute recompute :
         {Recompute::none, Recompute::selective, Recompute::full}) {
      // If the attention kernel stores no scores, selective recomputation has
      // nothing to recompute.
      bool pointless = recompute == Recompute::selective &&
                       keepsAllTensors(recompute, *options.software) &&
                       !options.software->attention.keepsScores;
      if (!options.recompute.allows(recompute) || (pointless && !asked))
        continue;
      config.recompute = recompute;
      for (Offload offload : {Offload::none, Offload::optimizer}) {
        if (!options.offload.allows(offload))
          continue;
        config.offload = offload;
        if (recompute != Recompute::full || !counted)
          addTiles(config);
        else if (!options.recompute.allows(Recompute::none))
          if (std::vector<int> counts = recomputeCounts(config, options);
              !counts.empty())
            addTiles(withCount(config, counts.front()));
      }
    }
  }

  // More tiles take more time and less memory. If the options leave the number
  // of tiles open, trying a few numbers is enough.
  void addTiles(Parallelism config) {
    static const std::vector<int> kOne{1}, kFew{1, 2, 4, 8, 16, 32};
    const std::vector<int> &asked =
        options.tiles.only.empty() ? kFew : options.tiles.only;
    for (int tiles : config.zeroStage == 3 ? asked : kOne) {
      config.tiles = tiles;
      if (options.tiles.allows(tiles))
        found.push_back(config);
    }
  }

  const ModelGraph &model;
  const Machine &machine;
  const SearchOptions &options;
  std::vector<Rejection> &rejections;
  int layers;
  std::int64_t experts;
  std::vector<Parallelism> found;
};

} // namespace

std::vector<Parallelism> enumerateSpace(const ModelGraph &model,
                                        const Machine &machine,
                                        const SearchOptions &options,
                                        std::vector<Rejection> &rejections) {
  return Enumeration(model, machine, options, rejections).run();
}

bool isEven(const Parallelism &config) {
  const int layers =
      std::accumulate(config.layers.begin(), config.layers.end(), 0);
  return config.layers ==
         evenLayers(layers, static_cast<int>(config.layers.size()));
}

bool isCounted(const SearchOptions &options) {
  return options.recomputeLayers.only != std::vector{-1};
}

std::vector<int> recomputeCounts(const Parallelism &config,
                                 const SearchOptions &options) {
  bool grows = isCounted(options) && config.recompute != Recompute::selective &&
               options.recompute.allows(Recompute::full);
  if (!grows)
    return {countOf(config)};
  std::vector<int> counts;
  if (options.recompute.allows(Recompute::none))
    counts.push_back(0);
  const Choices<int> &asked = options.recomputeLayers;
  int most = *std::ranges::max_element(config.layers);
  const bool isAllOrNone = !options.countsOfUnevenCuts &&
                           allowsUnevenCut(config, options) && !isEven(config);
  for (int count = 1; count < most && !isAllOrNone; ++count)
    if (asked.allows(count))
      counts.push_back(count);
  if (asked.allows(-1) ||
      std::ranges::any_of(asked.only, [&](int count) { return count >= most; }))
    counts.push_back(-1);
  return counts;
}

Parallelism withCount(Parallelism config, int count) {
  if (config.recompute != Recompute::selective)
    config.recompute = count == 0 ? Recompute::none : Recompute::full;
  config.recomputeLayers = count == 0 ? -1 : count;
  return config;
}

int countOf(const Parallelism &config) {
  return config.recompute == Recompute::none ? 0 : config.recomputeLayers;
}

bool allowsUnevenCut(const Parallelism &config, const SearchOptions &options) {
  return options.unevenCuts && options.layers.empty() && config.pp > 1 &&
         config.virtualStages == 1;
}

bool isInSpace(const std::vector<Parallelism> &space, const Parallelism &config,
               const SearchOptions &options) {
  return std::ranges::any_of(space, [&](const Parallelism &one) {
    Parallelism like = one;
    like.layers = config.layers;
    std::vector<int> counts = recomputeCounts(like, options);
    if (!contains(counts, countOf(config)) ||
        withCount(like, countOf(config)) != config)
      return false;
    if (one.layers == config.layers)
      return true;
    int layers = std::accumulate(one.layers.begin(), one.layers.end(), 0);
    std::vector<std::vector<int>> cuts = unevenCuts(layers, one.pp);
    return allowsUnevenCut(one, options) && contains(cuts, config.layers);
  });
}

Rejection rejectionOf(const Parallelism &config, Rejection::Reason reason,
                      Seconds bound) {
  return {config, reason, bound, {}, false, {}};
}

Rejection tooLarge(const Parallelism &config, Rejection::Reason reason,
                   Bytes lowerBound) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  return {config, reason, {kNever}, lowerBound, true, {}};
}

RejectionCounts countsOf(const std::vector<Rejection> &rejections) {
  using Reason = Rejection::Reason;
  RejectionCounts counts;
  for (const Rejection &one : rejections) {
    if (one.config.microBatch == 0) // an illegal mesh, not a configuration
      continue;
    const bool isPruned =
        one.reason == Reason::bound ||
        ((one.reason == Reason::memory || one.reason == Reason::host) &&
         one.isLowerBound);
    (isPruned                       ? counts.pruned
     : one.reason == Reason::budget ? counts.unreached
                                    : counts.refused) += one.count;
  }
  return counts;
}

// The configuration that recomputes most layers needs least memory. The
// configuration that recomputes fewest layers is the fastest.
Rejection ofAllCuts(Rejection one, const std::vector<std::vector<int>> &cuts,
                    std::size_t first, const SearchOptions &options) {
  one.count = 0;
  std::map<int, std::int64_t> byLargest; // by the layers of the largest stage
  for (std::size_t cut = first; cut < cuts.size(); ++cut) {
    auto [entry, isNew] =
        byLargest.try_emplace(*std::ranges::max_element(cuts[cut]));
    if (isNew) {
      one.config.layers = cuts[cut];
      entry->second = std::ssize(recomputeCounts(one.config, options));
    }
    one.count += entry->second;
  }
  one.config.layers = cuts[first];
  const std::vector<int> counts = recomputeCounts(one.config, options);
  one.config =
      withCount(one.config, one.isLowerBound ? counts.back() : counts.front());
  return one;
}

const char *nameOf(Rejection::Reason reason) {
  constexpr const char *kNames[] = {"divisor", "memory", "host",
                                    "bound",   "pins",   "budget"};
  return kNames[static_cast<std::size_t>(reason)];
}

} // namespace mtplan::planner
