//===- enumerate.cpp - Ways to share the devices out ----------------------===//

#include "planner/search/enumerate.h"

#include <algorithm>
#include <numeric>

#include "planner/divisors.h"
#include "planner/search/cuts.h"
#include "planner/search/pipeline_parts.h"
#include "planner/search/recompute.h"
#include "planner/search/replicas.h"

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
          Parallelism how;
          how.tp = static_cast<int>(tp);
          how.pp = static_cast<int>(pp);
          how.cp = static_cast<int>(cp);
          how.dp = static_cast<int>(options.devices / tp / pp / cp);
          how.microBatch = 0;
          how.globalBatch = options.globalBatch;
          if (isAskedFor(how) && isLegal(how) && replicasMayShare(how))
            addExperts(how);
        }
    return std::move(found);
  }

private:
  // "510 and 513": global batches that so many replicas can share.
  std::string batchesNear(std::int64_t dp) const {
    std::int64_t below = options.globalBatch / dp * dp;
    return nearestOf({std::max(below, dp), below + dp}, {options.globalBatch});
  }

  bool isAskedFor(const Parallelism &how) const {
    return (!options.tp || *options.tp == how.tp) &&
           (!options.dp || *options.dp == how.dp) &&
           options.pp.allows(how.pp) && options.cp.allows(how.cp);
  }

  bool isLegal(const Parallelism &how) {
    std::string violated = violatedDivisor(how.tp);
    if (!violated.empty())
      return refuse(how, Rejection::Reason::divisor,
                    violated + " do not divide by tp " +
                        std::to_string(how.tp));
    if (how.tp == 1 && splitsArePinned() && mayBeSplit())
      return refuse(how, Rejection::Reason::pins,
                    "a pin asks for a split, and tp 1 splits nothing");
    if (options.globalBatch % how.dp != 0)
      return refuse(how, Rejection::Reason::divisor,
                    "global batch " + std::to_string(options.globalBatch) +
                        " does not divide by dp " + std::to_string(how.dp) +
                        "; nearest that do: " + batchesNear(how.dp));
    if (how.pp > layers)
      return refuse(how, Rejection::Reason::divisor,
                    std::to_string(layers) + " layers do not fill pp " +
                        std::to_string(how.pp));
    if (how.pp > 1 && !layersHandOnAlike() &&
        options.schedule.only == std::vector{ScheduleKind::interleaved})
      return refuse(how, Rejection::Reason::divisor,
                    "encoder and decoder layers hand on different values and "
                    "cannot take turns on a stage: interleaved needs layers of "
                    "one kind");
    // Zigzag: every context rank has an early and a late piece of a sequence.
    if (how.cp > 1 && model.sequence % (2 * how.cp) != 0)
      return refuse(how, Rejection::Reason::divisor,
                    "sequence " + std::to_string(model.sequence) +
                        " does not divide by twice cp " +
                        std::to_string(how.cp));
    return true;
  }

  bool refuse(const Parallelism &how, Rejection::Reason reason,
              std::string detail) {
    rejections.push_back({how, reason, {}, {}, false, std::move(detail)});
    return false;
  }

  // Dimensions that a split over `tp` would have to divide and does not.
  // Whoever asks for a degree by name expects the split that goes with it; left
  // free, the other splits may still make it worth while.
  std::string violatedDivisor(int tp) const {
    if (!options.tp)
      return {};
    for (const Divisor &divisor : options.divisors)
      if (divisor.size % tp != 0 &&
          std::ranges::find(options.tensorSplits, divisor.split) !=
              options.tensorSplits.end())
        return std::to_string(divisor.size) + " " + divisor.name;
    return {};
  }

  // Whether a pin says what the tensor axis must divide.
  bool splitsArePinned() const {
    if (!options.pins)
      return false;
    for (const auto &segment : options.pins->ops)
      for (const std::string &word : segment)
        if (!word.empty() && word != "replicated")
          return true;
    return std::ranges::any_of(options.pins->parameters, [](const auto &pin) {
      return pin && std::ranges::find(*pin, "tp") != pin->end();
    });
  }

  // Whether nobody asked for a mesh without a tensor axis.
  bool mayBeSplit() const {
    return options.devices > 1 && !options.tp &&
           (!options.dp || *options.dp < options.devices);
  }

  // Whether there are numbers, of those asked for, of replicas that share a set
  // of experts, and a copy of what ZeRO splits if nothing but that will do.
  bool replicasMayShare(const Parallelism &how) {
    std::string against = againstExpertRanks(options.ep, experts, how.dp);
    bool asked = options.zeroStage.only.size() == 1;
    if (against.empty() && !options.zeroStage.allows(0) &&
        (how.dp * how.cp > 1 || asked))
      against = againstZeroRanks(
          options.zeroRanks, expertRanks(options.ep, experts, how.dp), how.dp);
    return against.empty() ||
           refuse(how, Rejection::Reason::divisor, std::move(against));
  }

  void addExperts(Parallelism how) {
    for (int ep : expertRanks(options.ep, experts, how.dp)) {
      how.ep = ep;
      addBatches(how);
    }
  }

  void addBatches(Parallelism how) {
    for (std::int64_t b : divisorsOf(options.globalBatch / how.dp))
      if (!options.microBatch || *options.microBatch == b) {
        how.microBatch = b;
        addSchedules(how);
      }
  }

  void addSchedules(Parallelism how) {
    constexpr ScheduleKind kKinds[] = {
        ScheduleKind::oneForwardOneBackward, ScheduleKind::interleaved,
        ScheduleKind::zeroBubble, ScheduleKind::gpipe};
    if (how.pp == 1) {
      how.layers = {layers};
      addStages(how);
      return;
    }
    for (ScheduleKind kind : kKinds) {
      if (!options.schedule.allows(kind))
        continue;
      how.schedule = kind;
      bool chunked = kind == ScheduleKind::interleaved;
      if (chunked && !layersHandOnAlike())
        continue;
      for (int v = chunked ? 2 : 1; v == 1 || (chunked && v * how.pp <= layers);
           ++v) {
        how.virtualStages = v;
        if (options.virtualStages.allows(v) &&
            (!chunked ||
             ((!options.layers.empty() || fillsChunks(layers, v * how.pp)) &&
              how.microBatches() % how.pp == 0)) &&
            (options.layers.empty() ||
             static_cast<int>(options.layers.size()) == v * how.pp)) {
          how.layers = options.layers.empty() ? evenLayers(layers, v * how.pp)
                                              : options.layers;
          addStages(how);
        }
        if (!chunked)
          break;
      }
    }
  }

  // Whether any layer could follow any other, as far as shapes go: chunks of a
  // stage are solved as one chain.
  bool layersHandOnAlike() const {
    const SegmentGraph *first = nullptr;
    auto shapeAt = [](const SegmentGraph &segment, std::size_t i) {
      return segment.tensors[static_cast<std::size_t>(segment.carriedIn[i])]
          .shape;
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

  void addStages(Parallelism how) {
    bool asked = options.zeroStage.only.size() == 1;
    for (int stage = 0; stage <= 3; ++stage) {
      bool pointless = stage > 0 && how.dp * how.cp == 1;
      bool perMicroBatch = stage > 1 && how.pp > 1;
      if (!options.zeroStage.allows(stage) ||
          ((pointless || perMicroBatch) && !asked))
        continue;
      how.zeroStage = stage;
      for (int sharing : zeroRanksOf(how, machine, options.zeroRanks)) {
        how.zeroRanks = sharing;
        addRecomputations(how);
      }
    }
    if (asked || how.dp * how.cp > 1 || options.zeroStage.allows(0))
      return;
    // Without replicas every stage is the same.
    how.zeroStage = 0;
    addRecomputations(how);
  }

  void addRecomputations(Parallelism how) {
    bool asked = options.recompute.only.size() == 1;
    bool counted = isCounted(options);
    for (Recompute recompute :
         {Recompute::none, Recompute::selective, Recompute::full}) {
      // Of a kernel that keeps no scores there is nothing to save.
      bool pointless = recompute == Recompute::selective &&
                       keepsAllTensors(recompute, *options.software) &&
                       !options.software->attention.keepsScores;
      if (!options.recompute.allows(recompute) || (pointless && !asked))
        continue;
      how.recompute = recompute;
      for (Offload offload : {Offload::none, Offload::optimizer}) {
        if (!options.offload.allows(offload))
          continue;
        how.offload = offload;
        if (recompute != Recompute::full || !counted)
          addTiles(how);
        else if (!options.recompute.allows(Recompute::none))
          if (std::vector<int> counts = recomputeCounts(how, options);
              !counts.empty())
            addTiles(withCount(how, counts.front()));
      }
    }
  }

  // More tiles only take longer, so where they are left open a few will do to
  // find what fits.
  void addTiles(Parallelism how) {
    static const std::vector<int> kOne{1}, kFew{1, 2, 4, 8, 16, 32};
    const std::vector<int> &asked =
        options.tiles.only.empty() ? kFew : options.tiles.only;
    for (int tiles : how.zeroStage == 3 ? asked : kOne) {
      how.tiles = tiles;
      if (options.tiles.allows(tiles))
        found.push_back(how);
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

bool isCounted(const SearchOptions &options) {
  return options.recomputeLayers.only != std::vector{-1};
}

std::vector<int> recomputeCounts(const Parallelism &how,
                                 const SearchOptions &options) {
  bool grows = isCounted(options) && how.recompute != Recompute::selective &&
               options.recompute.allows(Recompute::full);
  if (!grows)
    return {countOf(how)};
  std::vector<int> counts;
  if (options.recompute.allows(Recompute::none))
    counts.push_back(0);
  const Choices<int> &asked = options.recomputeLayers;
  int most = *std::ranges::max_element(how.layers);
  for (int count = 1; count < most; ++count)
    if (asked.allows(count))
      counts.push_back(count);
  if (asked.allows(-1) ||
      std::ranges::any_of(asked.only, [&](int count) { return count >= most; }))
    counts.push_back(-1);
  return counts;
}

Parallelism withCount(Parallelism how, int count) {
  if (how.recompute != Recompute::selective)
    how.recompute = count == 0 ? Recompute::none : Recompute::full;
  how.recomputeLayers = count == 0 ? -1 : count;
  return how;
}

int countOf(const Parallelism &how) {
  return how.recompute == Recompute::none ? 0 : how.recomputeLayers;
}

bool isCutAnyhow(const Parallelism &how, const SearchOptions &options) {
  return options.unevenCuts && options.layers.empty() && how.pp > 1 &&
         how.virtualStages == 1;
}

bool isInSpace(const std::vector<Parallelism> &space, const Parallelism &how,
               const SearchOptions &options) {
  return std::ranges::any_of(space, [&](const Parallelism &one) {
    Parallelism like = one;
    like.layers = how.layers;
    std::vector<int> counts = recomputeCounts(like, options);
    if (std::ranges::find(counts, countOf(how)) == counts.end() ||
        withCount(like, countOf(how)) != how)
      return false;
    if (one.layers == how.layers)
      return true;
    int layers = std::accumulate(one.layers.begin(), one.layers.end(), 0);
    std::vector<std::vector<int>> cuts = unevenCuts(layers, one.pp);
    return isCutAnyhow(one, options) &&
           std::ranges::find(cuts, how.layers) != cuts.end();
  });
}

} // namespace mtplan::planner
