//===- path_bound.cpp - A lower bound of a step by its paths --------------===//

#include "planner/search/bound/path_bound.h"

#include <algorithm>
#include <array>
#include <map>

#include "planner/integers.h"

namespace mtplan::planner {

namespace {

constexpr std::size_t kPhases = 3;

/// Holds one value each for forward, the gradients of inputs and the gradients
/// of weights, for one micro-batch in one virtual stage. Without a zero-bubble
/// schedule, the second value is for all of backward.
using PerPhase = std::array<double, kPhases>;

/// Describes compute that a plan must add to the least times of some phases.
/// The plan may distribute this compute over the phases in any way.
struct Spare {
  double seconds = 0.0;                                    ///< per micro-batch
  std::vector<std::pair<std::size_t, std::size_t>> places; ///< part and phase
};

int repeatsOf(const std::vector<SliceTimes> &slices) {
  int repeats = 0;
  for (const SliceTimes &slice : slices)
    repeats += slice.count;
  return repeats;
}

template <typename Problem> auto &chunkOf(Problem &problem, std::size_t part) {
  const std::size_t stages = problem.stages.size();
  return problem.stages[part % stages].chunks[part / stages];
}

class Game {
public:
  Game(const LeastStep &theLeast, const std::vector<Seconds> &compute)
      : least(theLeast.problem), schedule(scheduleOf(least.shape)),
        leastGraph(stepGraphOf(least, schedule, true)),
        partCount(at(least.shape.stages * least.shape.chunks)),
        added(partCount), counts(partCount) {
    const std::size_t phases =
        least.shape.kind == ScheduleKind::zeroBubble ? kPhases : kPhases - 1;
    const std::size_t stages = at(least.shape.stages);
    std::vector<Spare> ofStage(stages);
    std::vector<double> counted(stages); // the compute of one micro-batch
    for (std::size_t part = 0; part < partCount; ++part) {
      const PerPhase times = phasesOf(chunkOf(least, part));
      double sum = times[0] + times[1];
      if (!theLeast.withoutWeights.empty())
        addSpare(part, 2, theLeast.withoutWeights[part].value, sum);
      sum += times[2];
      addSpare(part, phases, theLeast.compute[part].value, sum);
      counted[part % stages] += sum;
      for (std::size_t phase = 0; phase < phases; ++phase)
        ofStage[part % stages].places.emplace_back(part, phase);
    }
    for (std::size_t stage = 0; stage < stages; ++stage) {
      ofStage[stage].seconds =
          compute[stage].value / least.shape.microBatches - counted[stage];
      if (ofStage[stage].seconds > 0.0)
        spares.push_back(std::move(ofStage[stage]));
    }
    for (const Spare &spare : spares) // the first distribution is even
      for (auto [part, phase] : spare.places)
        added[part][phase] +=
            spare.seconds / static_cast<double>(spare.places.size());
  }

  // Adds a longest path against the mean distribution. Then adds to this mean
  // the distribution that is best against the mean of all paths. Returns the
  // bound.
  double play() {
    addPath();
    ++rounds;
    for (PerPhase &times : added)
      for (double &seconds : times)
        seconds *= rounds / (rounds + 1.0);
    double bound = length;
    for (const Spare &spare : spares) {
      const auto [part, phase] =
          *std::ranges::min_element(spare.places, {}, [&](const auto &place) {
            return counts[place.first][place.second];
          });
      bound += spare.seconds * counts[part][phase];
      added[part][phase] += spare.seconds / (rounds + 1.0);
    }
    return bound / rounds;
  }

private:
  PerPhase phasesOf(const ChunkTimes &chunk) const {
    PerPhase times{};
    for (const SliceTimes &slice : chunk.slices) {
      const Seconds weights = least.shape.kind == ScheduleKind::zeroBubble
                                  ? slice.weightGradient
                                  : Seconds{};
      times[0] += slice.count * slice.forward.value;
      times[1] += slice.count * (slice.backward - weights).value;
      times[2] += slice.count * weights.value;
    }
    return times;
  }

  // Raises `sum`, the least sum of the first `phases` phases, to `needed`.
  void addSpare(std::size_t part, std::size_t phases, double needed,
                double &sum) {
    if (needed <= sum)
      return;
    Spare &spare = spares.emplace_back(Spare{needed - sum, {}});
    for (std::size_t phase = 0; phase < phases; ++phase)
      spare.places.emplace_back(part, phase);
    sum = needed;
  }

  // Returns the step with all compute distributed as `added` says.
  StepProblem distributed() const {
    StepProblem problem = least;
    for (std::size_t part = 0; part < partCount; ++part) {
      std::vector<SliceTimes> &slices = chunkOf(problem, part).slices;
      const double repeats = std::max(repeatsOf(slices), 1);
      const auto [forward, inputs, weights] = added[part];
      for (SliceTimes &slice : slices) {
        slice.forward += Seconds{forward / repeats};
        slice.backward += Seconds{(inputs + weights) / repeats};
        slice.weightGradient += Seconds{weights / repeats};
      }
    }
    return problem;
  }

  void addPath() {
    const StepGraph graph = stepGraphOf(distributed(), schedule, false);
    const std::vector<int> path =
        criticalPath(graph.graph, timelineOf(graph.graph));
    // `single` counts, by part and phase, how often each segment's own task is
    // on the path.
    std::map<std::pair<std::size_t, std::size_t>, std::map<int, int>> single;
    for (int task : path) {
      length += leastGraph.graph.durationOf(task).value;
      const StepTask &what = leastGraph.tasks[at(task)];
      if (what.role > StepRole::weightGradient)
        continue;
      const std::size_t part = at(what.chunk * least.shape.stages + what.stage);
      const auto phase = static_cast<std::size_t>(what.role);
      if (what.segment < 0)
        counts[part][phase] += 1.0;
      else
        ++single[{part, phase}][what.segment];
    }
    // A plan may spend all additional compute in one segment. Only the smallest
    // count over the segments therefore gives a lower bound.
    for (const auto &[place, segments] : single)
      if (std::ssize(segments) == repeatsOf(chunkOf(least, place.first).slices))
        counts[place.first][place.second] +=
            std::ranges::min_element(segments, {}, [](const auto &one) {
              return one.second;
            })->second;
  }

  const StepProblem &least;
  const Schedule schedule;
  const StepGraph leastGraph;
  const std::size_t partCount;
  std::vector<Spare> spares;
  std::vector<PerPhase> added; ///< of `spares`, by part: the mean of all rounds
  std::vector<PerPhase> counts; ///< tasks on the paths of all rounds, by part
  double length = 0.0;          ///< of all rounds' paths, by least times
  int rounds = 0;
};

} // namespace

Seconds pathBound(const LeastStep &least, const std::vector<Seconds> &compute,
                  Seconds enough, int rounds) {
  // More rounds without progress are of little use.
  constexpr int kPatience = 2;
  // This limits the tasks of all rounds together; more would take too long.
  constexpr double kMostTasks = 2e5;
  const ScheduleShape &shape = least.problem.shape;
  const double tasks = 4.0 * shape.microBatches * shape.stages * shape.chunks;
  rounds = static_cast<int>(std::min<double>(rounds, kMostTasks / tasks));
  if (rounds == 0)
    return {};
  Game game(least, compute);
  Seconds best;
  int raised = 0;
  for (int round = 0; round < rounds && round - raised <= kPatience; ++round) {
    const Seconds bound{game.play()};
    if (bound > best * (1.0 + 1e-4))
      raised = round;
    best = std::max(best, bound);
    if (best >= enough)
      break;
  }
  return best;
}

} // namespace mtplan::planner
