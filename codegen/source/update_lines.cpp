//===- update_lines.cpp - Updates of one launch ---------------------------===//

#include "codegen/source/update_lines.h"

#include <algorithm>

#include "codegen/source/schedule_lines.h"
#include "runtime/backend/made_kernel.h"
#include "runtime/plan/index.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

/// Whether moments and masters are in double precision.
bool isDouble(const Instruction &adamw) {
  return adamw.outputs[1].type == ElementType::f64;
}

} // namespace

UpdateLines::UpdateLines(const Plan &thePlan, const Stage &theStage,
                         const StageNames &theNames,
                         const std::vector<std::string> &functions,
                         std::set<std::string> &taken)
    : plan(thePlan), stage(theStage), names(theNames) {
  for (const JointUpdates &found : jointUpdates(stage)) {
    const int program = stage.apply[found.entry].program;
    const auto &all = stage.programs[indexed(program)].instructions;
    const Instruction &first = all[found.first];
    // For other kernels there is none over many tensors, nor on other streams.
    if (std::get<KernelCall>(first.what).kernel != "adamw" ||
        first.stream != 0 ||
        std::any_of(all.begin() + static_cast<std::ptrdiff_t>(found.first),
                    all.begin() + static_cast<std::ptrdiff_t>(found.end),
                    [&](const Instruction &one) {
                      return isDouble(one) != isDouble(first);
                    }))
      continue;
    joints.push_back(
        {found,
         identifierFor(functions[indexed(program)] + "_parameters", taken),
         isDouble(first)});
  }
}

std::vector<ScheduleEntry> UpdateLines::schedule() const {
  std::vector<ScheduleEntry> entries = stage.apply;
  for (const Joint &joint : joints)
    if (joint.ofAllCopies)
      entries[joint.entry].count = 1;
  return entries;
}

void UpdateLines::writeLists(int program, Text &text) const {
  for (const Joint &joint : joints) {
    if (stage.apply[joint.entry].program != program)
      continue;
    text.line();
    text.comment("Lists the parameters of a layer that one launch updates: "
                 "gradient, weight, master, moments, elements, and whether "
                 "weight decay is for it.");
    text.open("inline void " + joint.list +
              "(const Run &now, std::vector<Updated> &all) {");
    for (std::size_t i = joint.first; i < joint.end; ++i) {
      const Instruction &one = stage.programs[indexed(program)].instructions[i];
      text.comment(one.label + ": " + names.shape(one.inputs[0]));
      KernelSpec spec{"adamw", one.label, {}, {}, {}};
      spec.settings = std::get<KernelCall>(one.what).settings;
      std::vector<std::string> members = {names.tensor(one.inputs[0])};
      for (const Tensor &tensor : one.outputs)
        members.push_back(names.tensor(tensor));
      members.push_back(names.elements(one.inputs[0]));
      members.push_back(spec.integer("decay", 0) != 0 ? "true" : "false");
      members.front() = "{" + members.front();
      text.call("all.push_back", members, "});");
    }
    text.close();
  }
}

const UpdateLines::Joint *UpdateLines::jointAt(int program,
                                               std::size_t i) const {
  const auto found = std::ranges::find_if(joints, [&](const Joint &one) {
    return stage.apply[one.entry].program == program && one.first == i;
  });
  return found == joints.end() ? nullptr : &*found;
}

std::size_t UpdateLines::endOfLaunch(int program, std::size_t i) const {
  const Joint *joint = jointAt(program, i);
  return joint ? joint->end : i + 1;
}

void UpdateLines::writeLaunch(int program, std::size_t i, Text &text,
                              std::set<std::string> &needed) const {
  const Joint *joint = jointAt(program, i);
  needed.insert("runtime/cuda/device/adamw.cuh");
  const ScheduleEntry &entry = stage.apply[joint->entry];
  const std::size_t each = joint->end - joint->first;
  const bool several = joint->ofAllCopies && entry.count > 1;
  text.comment(
      several
          ? "One launch updates " + std::to_string(each) + " parameters of " +
                layersText(plan, entry.count) + " layers."
          : "One launch updates " + std::to_string(each) + " parameters.");
  if (!joint->ofAllCopies)
    text.open("{");
  text.open("const auto list = [&](std::vector<Updated> &all) {");
  if (several) {
    text.open("for (int i = 0; i < " + layersText(plan, entry.count) +
              "; ++i)");
    text.line(joint->list + "({now.rank, now.layer + i" +
              (entry.step == 1 ? "" : " * " + std::to_string(entry.step)) +
              ", now.microBatch}, all);");
    text.leave();
  } else {
    text.line(joint->list + "(now, all);");
  }
  text.close("};");
  text.call(joint->isDouble ? "adamw<double>" : "adamw<float>",
            {"now.stream()",
             "dealt<Updated>(now, " + quoted(joint->list) + ", list)",
             "now.rank.numbers"});
  if (!joint->ofAllCopies)
    text.close();
}

} // namespace mtplan::codegen
