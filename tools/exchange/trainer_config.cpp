//===- trainer_config.cpp - Checks that all trainers share ----------------===//

#include "tools/exchange/trainer_config.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_fields.h"
#include "planner/integers.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::Parallelism;

namespace {

class Checker {
public:
  Checker(TrainerConfig &checked, const TrainerNames &words)
      : config(checked), names(words) {}

  void fail(std::string message) { config.fail(std::move(message)); }

  void divides(const std::string &divisorName, std::int64_t divisor,
               const std::string &numberName, std::int64_t number) {
    if (number > 0 && number % divisor != 0)
      fail(fmt::format("{} does not divide {} {}; nearest that do: {}",
                       names.say(divisorName, divisor), numberName, number,
                       nearestDivisors(number, divisor)));
  }

  void tensor() {
    const Parallelism &p = config.parallelism;
    const ModelFacts &m = config.model;
    divides(names.tp, p.tp, names.heads, m.heads);
    divides(names.tp, p.tp, names.ffn, m.ffn);
    if (m.kvHeads > 0 && m.kvHeads != m.heads && m.kvHeads % p.tp != 0 &&
        p.tp % m.kvHeads != 0) {
      std::vector<std::int64_t> allowed = planner::divisorsOf(m.kvHeads);
      for (std::int64_t d :
           planner::divisorsOf(std::max(m.heads, std::int64_t{1})))
        if (d % m.kvHeads == 0 && d > m.kvHeads)
          allowed.push_back(d);
      fail(fmt::format("{} neither divides {} {} nor is a multiple of it; "
                       "nearest that do: {}",
                       names.say(names.tp, p.tp), names.kvHeads, m.kvHeads,
                       planner::nearestOf(allowed, {p.tp})));
    }
    if (p.sequenceParallel && p.tp == 1)
      fail(fmt::format("{} needs {} above 1, but it is 1; nearest: 2",
                       names.sequenceParallel, names.tp));
    if (p.sequenceParallel && m.sequence > 0 &&
        m.sequence % (std::int64_t{p.tp} * p.cp) != 0)
      fail(fmt::format(
          "{} with {} and {} does not divide {} {}; nearest {} that divides: "
          "{}",
          names.sequenceParallel, names.say(names.tp, p.tp),
          names.say(names.cp, p.cp), names.sequence, m.sequence, names.sequence,
          nearestMultiples(std::int64_t{p.tp} * p.cp, m.sequence)));
  }

  void heads() {
    const ModelFacts &m = config.model;
    if (m.headWidth == 0 && m.heads > 0)
      divides(names.heads, m.heads, names.hidden, m.hidden);
    if (m.kvHeads > 0)
      divides(names.kvHeads, m.kvHeads, names.heads, m.heads);
  }

  void context() {
    const Parallelism &p = config.parallelism;
    std::int64_t sequence = config.model.sequence;
    std::int64_t pieces = 2 * std::int64_t{p.cp};
    if (p.cp > 1 && sequence > 0 && sequence % pieces != 0)
      fail(fmt::format(
          "{} {} does not divide by {}, twice {}; nearest that do: {}",
          names.sequence, sequence, pieces, names.say(names.cp, p.cp),
          nearestMultiples(pieces, sequence)));
  }

  void experts() {
    const Parallelism &p = config.parallelism;
    const ModelFacts &m = config.model;
    if (m.expertsPerToken > 0 && m.expertsPerToken > m.experts)
      fail(fmt::format(
          "{} is more than the number of experts, {} {}; nearest: {}",
          names.say(names.topk, m.expertsPerToken), names.experts, m.experts,
          m.experts));
    if (p.ep == 1)
      return;
    if (m.experts == 0 && m.layers > 0 && !names.experts.empty())
      fail(fmt::format("{} needs {}, which is not given; nearest without: 1",
                       names.say(names.ep, p.ep), names.experts));
    divides(names.ep, p.ep, names.experts, m.experts);
    if (p.dp % p.ep != 0)
      fail(fmt::format("{} does not divide the {} data-parallel replicas; "
                       "nearest that do: {}",
                       names.say(names.ep, p.ep), p.dp,
                       nearestDivisors(p.dp, p.ep)));
    if (p.tp > 1 && !p.sequenceParallel)
      fail(fmt::format("{} with {} needs {}", names.say(names.ep, p.ep),
                       names.say(names.tp, p.tp), names.sequenceParallel));
  }

private:
  TrainerConfig &config;
  const TrainerNames &names;
};

// Divides the global batch by `unit`. Returns false, with an error, if `unit`
// does not divide the batch.
bool divide(const BatchTriple &triple, std::int64_t unit,
            const std::string &unitName, std::int64_t &quotient,
            std::vector<std::string> &errors) {
  if (triple.global.value % unit == 0) {
    quotient = triple.global.value / unit;
    return true;
  }
  errors.push_back(fmt::format(
      "{}: {} does not divide by {}, which is {}; nearest that do: {}",
      triple.global.name, triple.global.value, unit, unitName,
      nearestMultiples(unit, triple.global.value)));
  return false;
}

// Returns "none", "full" or "full of 3 layers a virtual stage".
std::string recomputationText(const Parallelism &p) {
  if (p.recompute == planner::Recompute::none || p.recomputeLayers == 0)
    return nameOf(planner::Recompute::none);
  const int most = p.layers.empty() ? 0 : std::ranges::max(p.layers);
  if (p.recomputeLayers < 0 || (most > 0 && p.recomputeLayers >= most))
    return nameOf(p.recompute);
  return fmt::format("{} of {} layers a virtual stage", nameOf(p.recompute),
                     p.recomputeLayers);
}

} // namespace

std::string TrainerNames::say(const std::string &name,
                              std::int64_t value) const {
  return fmt::format("{}{}{}", name, assign, value);
}

void shareDevices(TrainerConfig &config, std::int64_t gpus,
                  const TrainerNames &names) {
  Parallelism &p = config.parallelism;
  p.dp = 1;
  constexpr std::int64_t kMostGpus = 1 << 20;
  if (gpus < 1 || gpus > kMostGpus || p.pp < 1) {
    config.fail(fmt::format(
        "{} GPUs in {} stages; there must be 1 to {} GPUs and at least 1 stage",
        gpus, p.pp, kMostGpus));
    p.pp = 1;
    return;
  }
  std::int64_t product = std::int64_t{p.tp} * p.pp * p.cp;
  if (gpus % product == 0) {
    p.dp = static_cast<int>(gpus / product);
    return;
  }
  std::string factors = names.say(names.tp, p.tp);
  if (p.pp > 1)
    factors += " times " + names.say(names.pp, p.pp);
  if (p.cp > 1)
    factors += " times " + names.say(names.cp, p.cp);
  config.fail(fmt::format(
      "{}{} does not divide the {} GPUs; nearest numbers of GPUs: {}", factors,
      p.pp > 1 || p.cp > 1 ? fmt::format(" is {}, which", product) : "", gpus,
      nearestMultiples(product, gpus)));
}

void checkSplits(TrainerConfig &config, const TrainerNames &names) {
  Checker checker(config, names);
  checker.heads();
  checker.tensor();
  checker.context();
  checker.experts();
}

void checkBatches(TrainerConfig &config, const TrainerNames &names) {
  const Parallelism &p = config.parallelism;
  std::int64_t unit = p.microBatch * p.dp;
  if (p.globalBatch % unit != 0) {
    config.fail(fmt::format("{} does not divide by {}, which is {} times {} "
                            "data-parallel replicas; nearest that do: {}",
                            names.say(names.globalBatch, p.globalBatch), unit,
                            names.say(names.microBatch, p.microBatch), p.dp,
                            nearestMultiples(unit, p.globalBatch)));
    return;
  }
  if (p.schedule == planner::ScheduleKind::interleaved &&
      p.microBatches() % p.pp != 0)
    config.fail(fmt::format("{} makes {} micro-batches a replica, which do not "
                            "divide by {}, as {} needs; nearest that do: {}",
                            names.say(names.globalBatch, p.globalBatch),
                            p.microBatches(), names.say(names.pp, p.pp),
                            names.say(names.virtualStages, p.virtualStages),
                            nearestMultiples(unit * p.pp, p.globalBatch)));
}

bool completeTriple(BatchTriple &triple, std::int64_t replicas,
                    std::vector<std::string> &errors) {
  std::int64_t &global = triple.global.value, &micro = triple.micro.value,
               &steps = triple.steps.value;
  std::string ranks = fmt::format("{} data-parallel replicas", replicas);
  if (global == 0 && micro == 0) {
    errors.push_back(fmt::format("{}: is missing; give it or {}",
                                 triple.global.name, triple.micro.name));
    return false;
  }
  if (global == 0) {
    steps = steps == 0 ? 1 : steps;
    global = micro * steps * replicas;
    return true;
  }
  if (micro == 0 && steps == 0)
    steps = 1;
  if (micro == 0)
    return divide(
        triple, steps * replicas,
        fmt::format("{} {} times {}", triple.steps.name, steps, ranks), micro,
        errors);
  if (steps == 0)
    return divide(
        triple, micro * replicas,
        fmt::format("{} {} times {}", triple.micro.name, micro, ranks), steps,
        errors);
  std::int64_t product = micro * steps * replicas;
  if (product == global)
    return true;
  errors.push_back(
      fmt::format("{}: {} is not {} {} times {} {} times {}; nearest: {}",
                  triple.global.name, global, triple.micro.name, micro,
                  triple.steps.name, steps, ranks, product));
  return false;
}

void refuseSequenceSplit(int tensorRanks, const std::string &trainer,
                         Exported &out) {
  out.refuse(fmt::format("{} tensor ranks hold all positions, but the plan's "
                         "{} split the sequence; nearest: --sequence-parallel "
                         "off",
                         trainer + (trainer.ends_with('s') ? "'" : "'s"),
                         tensorRanks));
}

void refuseOtherPlan(const Parallelism &planned, const TrainerConfig &read,
                     const std::string &trainer, Exported &out) {
  for (const std::string &error : read.errors)
    out.refuse(error);
  if (!read.errors.empty())
    return;
  const Parallelism &other = read.parallelism;
  auto compare = [&](const char *what, auto ours, auto theirs) {
    if (ours != theirs)
      out.refuse(fmt::format("{} would run {} {}, but the plan has {}", trainer,
                             what, theirs, ours));
  };
  compare("data-parallel replicas", planned.dp, other.dp);
  compare("tensor ranks", planned.tp, other.tp);
  compare("pipeline stages", planned.pp, other.pp);
  compare("context ranks", planned.cp, other.cp);
  compare("expert ranks", planned.ep, other.ep);
  compare("virtual stages", planned.virtualStages, other.virtualStages);
  compare("micro-batch", planned.microBatch, other.microBatch);
  compare("global batch", planned.globalBatch, other.globalBatch);
  if (planned.dp > 1) {
    compare("ZeRO stage", planned.zeroStage, other.zeroStage);
    compare("ZeRO ranks", planned.zeroRanks, other.zeroRanks);
  }
  if (planned.pp > 1) {
    compare("schedule", std::string(nameOf(planned.schedule)),
            std::string(nameOf(other.schedule)));
    if (!other.layers.empty())
      compare("layers per virtual stage",
              fmt::format("{}", fmt::join(planned.layers, ", ")),
              fmt::format("{}", fmt::join(other.layers, ", ")));
  }
  compare("recomputation", recomputationText(planned),
          recomputationText(other));
  compare("offloading", std::string(nameOf(planned.offload)),
          std::string(nameOf(other.offload)));
}

void noteIrrelevant(base::JsonFields &from,
                    const std::vector<std::string> &keys,
                    TrainerConfig &config) {
  for (const std::string &key : keys)
    if (from.find(key))
      config.warn(from.pointerTo(key) + ": has no effect on the plan");
}

} // namespace mtplan::tools
