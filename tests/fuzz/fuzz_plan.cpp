//===- fuzz_plan.cpp - Fuzzes the reader of executable plans --------------===//
//
// Parsing throws an error or returns a plan, whose text reads back as the same
// plan, and which the plan check accepts or rejects.
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_json.h"

using namespace mtplan::runtime;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data,
                                      std::size_t size) {
  Plan plan;
  try {
    plan = parsePlan({reinterpret_cast<const char *>(data), size});
  } catch (const PlanError &error) {
    if (*error.what() == '\0')
      std::abort();
    return 0;
  }
  const std::string text = planText(plan);
  if (planText(parsePlan(text)) != text)
    std::abort();
  (void)checkPlan(plan);
  return 0;
}
