//===- batch_triple.cpp - Batch sizes that agree --------------------------===//

#include "tools/exchange/batch_triple.h"

#include <fmt/format.h>

#include "tools/text/nearest_numbers.h"

namespace mtplan::tools {

namespace {

// Computes the quotient if `unit` divides the global batch.
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

} // namespace

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
  errors.push_back(fmt::format("{}: {} is not {} {} times {} {} times {}; "
                               "nearest: {}",
                               triple.global.name, global, triple.micro.name,
                               micro, triple.steps.name, steps, ranks,
                               product));
  return false;
}

} // namespace mtplan::tools
