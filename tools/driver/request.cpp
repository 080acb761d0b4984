//===- request.cpp - What a plan is asked for -----------------------------===//

#include "tools/driver/request.h"

namespace mtplan::tools {

using planner::Split;

const char *nameOf(ExportKind kind) {
  constexpr const char *kNames[] = {
      "megatron", "deepspeed", "torchtitan", "accelerate",      "hf-tp-plan",
      "jax",      "shardy",    "dtensor",    "mesh-tensorflow", "constraints"};
  return kNames[static_cast<int>(kind)];
}

const char *nameOf(Objective objective) {
  constexpr const char *kNames[] = {"step-time", "memory", "gpus"};
  return kNames[static_cast<int>(objective)];
}

const char *nameOf(Stage stage) {
  switch (stage) {
  case Stage::model:
    return "model";
  case Stage::differentiated:
    return "differentiated";
  case Stage::planned:
    return "planned";
  case Stage::partitioned:
    return "partitioned";
  }
  return "?";
}

std::vector<Split> defaultSplits() {
  return {Split::column,   Split::row,   Split::head,  Split::vocab,
          Split::sequence, Split::batch, Split::expert};
}

} // namespace mtplan::tools
