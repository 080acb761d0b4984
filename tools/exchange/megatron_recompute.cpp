//===- megatron_recompute.cpp - Megatron-LM's recomputation ---------------===//

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/exchange/megatron.h"

namespace mtplan::tools {

using planner::Parallelism;
using planner::Recompute;

namespace {

void readSelective(const MegatronFlags &flags, TrainerConfig &config) {
  config.parallelism.recompute = Recompute::selective;
  for (const char *other : {"recompute-method", "recompute-num-layers"})
    if (flags.given(other))
      config.errors.push_back(
          fmt::format("--{}: contradicts selective recomputation; it needs "
                      "--recompute-granularity full",
                      other));
  std::vector<std::string> modules = flags.list("recompute-modules");
  if (!modules.empty() && modules != std::vector<std::string>{"core_attn"})
    config.errors.push_back(
        fmt::format("--recompute-modules {}: mtplan's selective recomputation "
                    "is of the core of attention; nearest: core_attn",
                    fmt::join(modules, " ")));
}

void readFull(const MegatronFlags &flags, TrainerConfig &config) {
  Parallelism &p = config.parallelism;
  p.recompute = Recompute::full;
  if (flags.given("recompute-modules"))
    config.errors.emplace_back("--recompute-modules: contradicts "
                               "--recompute-granularity full");
  for (const char *needed : {"recompute-method", "recompute-num-layers"})
    if (!flags.given(needed))
      config.errors.push_back(fmt::format(
          "--{}: is missing; --recompute-granularity full needs it", needed));
  std::string method =
      flags.word("recompute-method", {"uniform", "block"}, "uniform");
  std::int64_t count = flags.integer("recompute-num-layers", 1, 10'000, 1);
  if (method == "uniform") {
    if (count > 1)
      config.errors.push_back(fmt::format(
          "--recompute-num-layers {} with --recompute-method uniform keeps the "
          "input of every {} layers, mtplan that of each layer; nearest: 1",
          count, count));
    return;
  }
  std::int64_t most = 0;
  for (int part : p.layers)
    most = std::max<std::int64_t>(most, part);
  if (most > 0 && count > most)
    config.errors.push_back(fmt::format(
        "--recompute-num-layers {} is more than the {} layers of a part; "
        "nearest: {}",
        count, most, most));
  p.recomputeLayers = static_cast<int>(count);
}

} // namespace

void readMegatronRecompute(const MegatronFlags &flags, TrainerConfig &config) {
  std::string granularity =
      flags.word("recompute-granularity", {"full", "selective"}, "");
  bool shorthand = flags.given("recompute-activations");
  if (shorthand && granularity == "full")
    config.errors.emplace_back("--recompute-activations means selective and "
                               "contradicts --recompute-granularity full");
  else if (shorthand || granularity == "selective")
    readSelective(flags, config);
  else if (granularity == "full")
    readFull(flags, config);
  else if (!flags.given("recompute-granularity"))
    for (const char *other :
         {"recompute-method", "recompute-num-layers", "recompute-modules"})
      if (flags.given(other))
        config.errors.push_back(
            fmt::format("--{}: needs --recompute-granularity", other));
}

} // namespace mtplan::tools
