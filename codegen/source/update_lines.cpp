//===- update_lines.cpp - Updates of one launch ---------------------------===//

#include "codegen/source/update_lines.h"

#include <algorithm>

#include "runtime/backend/kernel.h"
#include "runtime/plan/plan_queries.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

bool isDouble(const Instruction &adamw) {
  return adamw.outputs[1].type == ElementType::f64;
}

} // namespace

UpdateLines::UpdateLines(const Stage &theStage, const StageNames &theNames,
                         const std::vector<std::string> &functions,
                         std::set<std::string> &taken)
    : stage(theStage), names(theNames) {
  for (std::size_t e = 0; e < stage.apply.size(); ++e) {
    const std::size_t program = indexed(stage.apply[e].program);
    const auto &all = stage.programs[program].instructions;
    for (const Batch &batch : stage.programs[program].batches) {
      const std::size_t begin = indexed(batch.instructions.front()),
                        end = indexed(batch.instructions.back()) + 1;
      const auto *call = std::get_if<KernelCall>(&all[begin].what);
      // Only AdamW has a multi-tensor kernel. A launch of this kernel has one
      // precision and runs on the first stream.
      if (!call || call->kernel != "adamw" || all[begin].stream != 0 ||
          std::any_of(all.begin() + static_cast<std::ptrdiff_t>(begin),
                      all.begin() + static_cast<std::ptrdiff_t>(end),
                      [&](const Instruction &one) {
                        return isDouble(one) != isDouble(all[begin]);
                      }))
        continue;
      launches.push_back(
          {e, begin, end, batch.ofAllCopies,
           identifierFor(functions[program] + "_parameters", taken),
           isDouble(all[begin])});
    }
  }
}

std::vector<ScheduleEntry> UpdateLines::schedule() const {
  std::vector<ScheduleEntry> entries = stage.apply;
  for (const Launch &launch : launches)
    if (launch.ofAllCopies)
      entries[launch.entry].count = 1;
  return entries;
}

void UpdateLines::writeTables(Text &text) const {
  for (const Launch &launch : launches) {
    text.line();
    text.comment(std::string("Parameters ") +
                 (launch.ofAllCopies ? "of a layer " : "") +
                 "that one launch updates: gradient, weight, master, moments, "
                 "elements, and whether weight decay applies.");
    text.open("static constexpr UpdatedBuffers " + launch.table + "[] = {");
    const auto program = indexed(stage.apply[launch.entry].program);
    for (std::size_t i = launch.first; i < launch.end; ++i) {
      const Instruction &one = stage.programs[program].instructions[i];
      KernelSpec spec{"adamw", one.label, {}, {}, {}};
      spec.settings = std::get<KernelCall>(one.what).settings;
      std::vector<std::string> members = {names.bufferOf(one.inputs[0])};
      for (const Tensor &tensor : one.outputs)
        members.push_back(names.bufferOf(tensor));
      members.push_back(names.elements(one.inputs[0]));
      members.push_back(spec.integer("decay", 0) != 0 ? "true" : "false");
      text.call("{", members, "},");
    }
    text.close("};");
  }
}

const UpdateLines::Launch *UpdateLines::launchAt(int program,
                                                 std::size_t i) const {
  const auto found = std::ranges::find_if(launches, [&](const Launch &one) {
    return stage.apply[one.entry].program == program && one.first == i;
  });
  return found == launches.end() ? nullptr : &*found;
}

std::size_t UpdateLines::endOfLaunch(int program, std::size_t i) const {
  const Launch *launch = launchAt(program, i);
  return launch ? launch->end : i + 1;
}

void UpdateLines::writeLaunch(int program, std::size_t i, Text &text,
                              std::set<std::string> &needed) const {
  const Launch *launch = launchAt(program, i);
  needed.insert("runtime/cuda/device/adamw.cuh");
  needed.insert("runtime/cuda/standalone/updates.cuh");
  const ScheduleEntry &entry = stage.apply[launch->entry];
  const bool several = launch->ofAllCopies && entry.count > 1;
  text.comment(several ? "One launch updates these parameters of all layers."
                       : "One launch updates these parameters.");
  std::vector<std::string> arguments = {
      "now", quoted(launch->table), "buf::" + launch->table,
      "std::size(buf::" + launch->table + ")"};
  if (several)
    arguments.push_back(names.layers(entry.count));
  text.call(launch->isDouble ? "updateAll<double>" : "updateAll<float>",
            arguments);
}

} // namespace mtplan::codegen
