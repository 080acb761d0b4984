//===- limits.cpp - Which meshes a model and a machine allow --------------===//

#include "tools/limits.h"

#include <algorithm>
#include <optional>

#include "tools/exchange/neighbours.h"

namespace mtplan::tools {

using planner::SearchOptions;

namespace {

std::string text(std::int64_t number) { return std::to_string(number); }

const char *const kNearest = "nearest that do: ";

/// A degree that somebody fixed.
struct Degree {
  const char *name;
  std::int64_t size;
};

void checkMesh(const SearchOptions &options, std::vector<std::string> &errors) {
  std::vector<Degree> fixed;
  bool isOpen = false; // some degree takes what the others leave
  auto note = [&](const char *name, std::optional<int> size) {
    isOpen = isOpen || !size;
    // A pipeline or a context of one is not worth a word.
    if (size &&
        (*size > 1 || name == std::string("tp") || name == std::string("dp")))
      fixed.push_back({name, *size});
  };
  auto only = [](const planner::Choices<int> &choices) {
    return choices.only.size() == 1 ? std::optional<int>(choices.only[0])
                                    : std::nullopt;
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
