//===- plan_names.cpp - Groups, channels and streams of a plan ------------===//

#include "codegen/plan_names.h"

#include <array>
#include <string_view>

#include "ir/decisions.h"

using namespace mlir;

namespace mtplan::codegen {

PlanNames::PlanNames(ModuleOp theModule, runtime::Plan &thePlan)
    : module(theModule),
      mesh(module->getAttrOfType<ir::MeshAttr>(ir::kMeshAttrName)),
      plan(thePlan) {}

int PlanNames::groupOver(StringRef axis, ArrayRef<int64_t> among) {
  std::string name = axis.str();
  for (int64_t place : among)
    name += " " + std::to_string(place);
  auto [found, isNew] =
      groups.try_emplace(name, static_cast<int>(plan.groups.size()));
  if (!isNew)
    return found->second;
  runtime::Group group{name, {}};
  int along = mesh.axis(axis);
  for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    if (mesh.coordinate(rank, along) != 0)
      continue;
    std::vector<int> members;
    for (int64_t member : mesh.group(rank, along))
      if (among.empty() ||
          llvm::is_contained(among, mesh.coordinate(member, along)))
        members.push_back(static_cast<int>(member));
    group.communicators.push_back(std::move(members));
  }
  plan.groups.push_back(std::move(group));
  return found->second;
}

int PlanNames::channelOf(StringRef label) {
  return channels.try_emplace(label.str(), static_cast<int>(channels.size()))
      .first->second;
}

int PlanNames::streamOf(StringRef name) {
  const auto *found = llvm::find(ir::kStreams, std::string_view(name));
  return static_cast<int>(std::distance(ir::kStreams.begin(), found));
}

void PlanNames::writeStreams() {
  // The stream "compute" counts as used in every plan.
  std::array<bool, ir::kStreams.size()> isUsed{true};
  const auto forEach = [&](auto act) {
    for (runtime::Stage &stage : plan.stages)
      for (runtime::Program &program : stage.programs)
        for (runtime::Instruction &instruction : program.instructions)
          act(instruction.stream);
  };
  forEach([&](int stream) { isUsed[static_cast<std::size_t>(stream)] = true; });
  std::array<int, ir::kStreams.size()> numbers{};
  for (std::size_t stream = 0; stream < numbers.size(); ++stream) {
    numbers[stream] = static_cast<int>(plan.streams.size());
    if (isUsed[stream])
      plan.streams.emplace_back(ir::kStreams[stream]);
  }
  forEach(
      [&](int &stream) { stream = numbers[static_cast<std::size_t>(stream)]; });
}

} // namespace mtplan::codegen
