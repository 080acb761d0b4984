//===- wanted_epilogues.cpp - What products may do beside -----------------===//

#include "runtime/cuda/wanted_epilogues.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace mtplan::runtime::cuda {

namespace {

struct Wanted {
  bool gelu = true, sums = true;
};

Wanted wanted() {
  const char *given = std::getenv("MTPLAN_EPILOGUES");
  if (!given)
    return {};
  const std::string_view all = given;
  if (all == "0")
    return {false, false};
  Wanted found{false, false};
  for (std::size_t at = 0; at <= all.size();) {
    const std::size_t end = std::min(all.find(',', at), all.size());
    const std::string_view word = all.substr(at, end - at);
    if (word != "gelu" && word != "sums")
      throw std::runtime_error("MTPLAN_EPILOGUES is \"" + std::string(all) +
                               "\": \"gelu\", \"sums\", \"gelu,sums\" or "
                               "\"0\" is wanted");
    (word == "gelu" ? found.gelu : found.sums) = true;
    at = end + 1;
  }
  return found;
}

} // namespace

bool isWanted(const MatrixShape &shape) {
  const Wanted all = wanted();
  return (all.gelu || shape.epilogue == Epilogue::none) &&
         (all.sums || shape.sums == OperandSum::none);
}

} // namespace mtplan::runtime::cuda
