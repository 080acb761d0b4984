//===- trainer_check.cpp - Checks that all trainers share -----------------===//

#include "tools/exchange/trainer_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "tools/text/nearest_numbers.h"

namespace mtplan::tools {

using planner::Parallelism;

namespace {

class Checker {
public:
  Checker(TrainerConfig &checked, const TrainerNames &words)
      : config(checked), names(words) {}

  void fail(std::string message) {
    config.errors.push_back(std::move(message));
  }

  // `divisor` must divide `number`; the message suggests other divisors.
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
      std::vector<std::int64_t> allowed = divisorsOf(m.kvHeads);
      for (std::int64_t d : divisorsOf(std::max(m.heads, std::int64_t{1})))
        if (d % m.kvHeads == 0 && d > m.kvHeads)
          allowed.push_back(d);
      fail(fmt::format("{} neither divides {} {} nor is a multiple of it; "
                       "nearest that do: {}",
                       names.say(names.tp, p.tp), names.kvHeads, m.kvHeads,
                       nearestOf(allowed, p.tp)));
    }
    if (p.sequenceParallel && p.tp == 1)
      fail(fmt::format("{} needs {} above 1, but it is 1; nearest: 2",
                       names.sequenceParallel, names.tp));
    if (p.sequenceParallel && m.sequence > 0 &&
        m.sequence % (std::int64_t{p.tp} * p.cp) != 0)
      fail(fmt::format(
          "{} with {} and {} does not divide {} {}; nearest {} "
          "that divides: {}",
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
      fail(fmt::format("{} {} does not divide by {}, twice {}; nearest that "
                       "do: {}",
                       names.sequence, sequence, pieces,
                       names.say(names.cp, p.cp),
                       nearestMultiples(pieces, sequence)));
  }

  void experts() {
    const Parallelism &p = config.parallelism;
    const ModelFacts &m = config.model;
    if (m.expertsPerToken > 0 && m.expertsPerToken > m.experts)
      fail(fmt::format("{} is more than the experts there are, {} {}; nearest: "
                       "{}",
                       names.say(names.topk, m.expertsPerToken), names.experts,
                       m.experts, m.experts));
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
    config.errors.push_back(
        fmt::format("{} GPUs in {} stages; there must be 1 to {} GPUs and at "
                    "least 1 stage",
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
  config.errors.push_back(fmt::format(
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
    config.errors.push_back(fmt::format(
        "{} does not divide by {}, which is {} times {} data-parallel "
        "replicas; nearest that do: {}",
        names.say(names.globalBatch, p.globalBatch), unit,
        names.say(names.microBatch, p.microBatch), p.dp,
        nearestMultiples(unit, p.globalBatch)));
    return;
  }
  if (p.schedule == planner::ScheduleKind::interleaved &&
      p.microBatches() % p.pp != 0)
    config.errors.push_back(fmt::format(
        "{} makes {} micro-batches a replica, which do not divide by {}, as "
        "{} needs; nearest that do: {}",
        names.say(names.globalBatch, p.globalBatch), p.microBatches(),
        names.say(names.pp, p.pp),
        names.say(names.virtualStages, p.virtualStages),
        nearestMultiples(unit * p.pp, p.globalBatch)));
}

} // namespace mtplan::tools
