//===- limits.cpp - Which meshes a model and a machine allow --------------===//

#include "tools/limits.h"

#include <algorithm>
#include <optional>

namespace mtplan::tools {

using planner::SearchOptions;

namespace {

std::string text(std::int64_t number) { return std::to_string(number); }

// "nearest that do: 2 and 4", of the divisors of `number` around `wanted`.
std::string nearestDivisors(std::int64_t number, std::int64_t wanted) {
  std::int64_t below = 0, above = 0;
  for (std::int64_t d = 1; d <= number && above == 0; ++d)
    if (number % d == 0)
      (d < wanted ? below : above) = d;
  std::string list = below ? text(below) : "";
  if (below && above)
    list += " and ";
  if (above)
    list += text(above);
  return "nearest that do: " + list;
}

// "nearest that do: 496 and 504", of the multiples of `unit` around `wanted`.
std::string nearestMultiples(std::int64_t unit, std::int64_t wanted) {
  std::int64_t below = wanted / unit * unit;
  std::string list = "nearest that do: ";
  if (below)
    list += text(below) + " and ";
  return list + text(below + unit);
}

void checkMesh(const SearchOptions &options, std::vector<std::string> &errors) {
  auto checkAxis = [&](const char *name, std::optional<int> size) {
    if (size && options.devices % *size != 0)
      errors.push_back(std::string(name) + ' ' + text(*size) +
                       " does not divide the " + text(options.devices) +
                       " GPUs; " + nearestDivisors(options.devices, *size));
  };
  std::size_t before = errors.size();
  checkAxis("tp", options.tp);
  checkAxis("dp", options.dp);
  if (!options.tp || !options.dp || errors.size() != before)
    return;
  std::int64_t product = std::int64_t{*options.tp} * *options.dp;
  if (product != options.devices)
    errors.push_back(
        "tp " + text(*options.tp) + " times dp " + text(*options.dp) + " is " +
        text(product) + ", not the " + text(options.devices) +
        " GPUs; with tp " + text(*options.tp) + ", dp must be " +
        text(options.devices / *options.tp) + "; with dp " + text(*options.dp) +
        ", tp must be " + text(options.devices / *options.dp));
}

void checkDivisors(const SearchOptions &options,
                   std::vector<std::string> &errors) {
  if (!options.tp)
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

// dp, if what is fixed leaves no choice.
std::optional<std::int64_t> onlyDp(const SearchOptions &options) {
  if (options.dp)
    return *options.dp;
  if (options.tp && options.devices % *options.tp == 0)
    return options.devices / *options.tp;
  return std::nullopt;
}

void checkBatch(const SearchOptions &options,
                std::vector<std::string> &errors) {
  std::int64_t batch = options.globalBatch;
  std::optional<std::int64_t> dp = onlyDp(options);
  if (dp && batch % *dp != 0) {
    errors.push_back("global batch " + text(batch) + " does not divide by dp " +
                     text(*dp) + "; " + nearestMultiples(*dp, batch));
    return;
  }
  if (!options.microBatch)
    return;
  std::int64_t samples = *options.microBatch;
  if (dp && batch / *dp % samples != 0) {
    errors.push_back("micro-batch " + text(samples) + " does not divide the " +
                     text(batch / *dp) +
                     " samples of a replica (global batch " + text(batch) +
                     " over dp " + text(*dp) + "); " +
                     nearestDivisors(batch / *dp, samples));
  } else if (!dp && batch % samples != 0) {
    errors.push_back("micro-batch " + text(samples) +
                     " does not divide global batch " + text(batch) + "; " +
                     nearestDivisors(batch, samples));
  }
}

} // namespace

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

void checkLimits(const SearchOptions &options,
                 std::vector<std::string> &errors) {
  checkMesh(options, errors);
  checkDivisors(options, errors);
  checkBatch(options, errors);
}

} // namespace mtplan::tools
