//===- cuda_source.cpp - A plan as a program that stands alone ------------===//

#include "codegen/source/cuda_source.h"

#include <algorithm>
#include <map>

#include "codegen/source/device_text.h"
#include "codegen/source/stage_names.h"
#include "codegen/source/stage_source.h"
#include "runtime/plan/index.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

/// Calls `see(instruction)` for all of the plan.
template <typename See> void forInstructions(const Plan &plan, See see) {
  for (const Stage &stage : plan.stages)
    for (const Program &program : stage.programs)
      for (const Instruction &instruction : program.instructions)
        see(instruction);
}

/// What goes from one stage to another in a step.
struct Traffic {
  std::vector<int> sent, received; ///< channels, in order
  std::int64_t bytes = 0;
};
using TrafficByStages = std::map<std::pair<int, int>, Traffic>;

TrafficByStages trafficOf(const Plan &plan) {
  TrafficByStages all;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage &stage = plan.stages[s];
    const auto own = static_cast<int>(s);
    for (const auto *entries : {&stage.schedule, &stage.reduce, &stage.apply})
      for (const ScheduleEntry &entry : *entries)
        for (int i = 0; i < entry.count; ++i)
          for (const Instruction &instruction :
               stage.programs[indexed(entry.program)].instructions) {
            const auto *transfer = std::get_if<Transfer>(&instruction.what);
            if (!transfer)
              continue;
            if (!transfer->sends) {
              all[{transfer->stage, own}].received.push_back(transfer->channel);
              continue;
            }
            Traffic &traffic = all[{own, transfer->stage}];
            traffic.sent.push_back(transfer->channel);
            traffic.bytes += roomFor(instruction.inputs[0]);
          }
  }
  return all;
}

class ProgramSource {
public:
  explicit ProgramSource(const Plan &thePlan)
      : plan(thePlan), traffic(trafficOf(plan)) {
    std::set<std::string> taken;
    for (const Group &group : plan.groups)
      shared.groups.push_back("kGroup_" + identifierFor(group.name, taken));
    std::set<std::string> known;
    for (const std::string &stream : plan.streams)
      shared.streams.push_back("kStream_" + identifierFor(stream, known));
    int lines = 0;
    for (const auto &[ends, one] : traffic) {
      // A line keeps its order; so both ends have to have the same.
      if (one.sent != one.received)
        throw SourceError("stages " + std::to_string(ends.first) + " and " +
                          std::to_string(ends.second) +
                          " send and receive in different orders, which a "
                          "program that stands alone cannot yet");
      shared.lines[ends] = lines++;
    }
    forInstructions(plan, [&](const Instruction &instruction) {
      if (const auto *report = std::get_if<Report>(&instruction.what);
          report && std::ranges::find(shared.reports, report->label) ==
                        shared.reports.end())
        shared.reports.push_back(report->label);
    });
  }

  std::string write() {
    std::set<std::string> needed = {"runtime/cuda/standalone/train.cuh"};
    writeConstants();
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      writeStage(plan, s, shared, text, needed);
      text.line();
    }
    writeFacts();
    writeMain();
    return head() + joinedSource(needed) +
           "\n//===- The training step "
           "-------------------------------------------------===//\n\n" +
           text.text();
  }

private:
  std::string head() const {
    Text title;
    title.line("//===- train.cu - Trains " + plan.model + " on " +
               std::to_string(plan.ranks) +
               (plan.ranks == 1 ? " GPU" : " GPUs"));
    title.line("//");
    std::string mesh;
    for (const Axis &axis : plan.mesh)
      if (axis.size > 1)
        mesh += (mesh.empty() ? "" : ", ") + axis.name + " " +
                std::to_string(axis.size);
    title.comment(
        "Written by mtplan. Mesh: " + (mesh.empty() ? "one rank" : mesh) +
        "; " + std::to_string(plan.stages.size()) +
        (plan.stages.size() == 1 ? " stage, " : " stages, ") +
        std::to_string(plan.microBatches) +
        (plan.microBatches == 1 ? " micro-batch" : " micro-batches") +
        ", global batch " + std::to_string(plan.globalBatch) + ", sequence " +
        std::to_string(plan.sequence) + ".");
    title.line("//");
    title.comment("Kernels and helpers come first, as mtplan's own runtime has "
                  "them. The training step is at the end: for every stage its "
                  "buffers, a function for each direction of each segment, and "
                  "the schedule as loops.");
    title.line("//");
    title.comment("Build: cmake -B build && cmake --build build");
    title.comment("Run:   build/train --steps 100 --data synthetic");
    title.line("//");
    title.line(
        "//===-----------------------------------------------------------"
        "-----------===//");
    title.line();
    return title.text();
  }

  void writeConstants() {
    text.line("using namespace mtplan::runtime;");
    text.line("using namespace mtplan::runtime::cuda;");
    text.line();
    text.comment("Axes of the mesh, major first; groups; streams; lines from "
                 "stage to stage.");
    std::set<std::string> names;
    std::vector<std::string> axes;
    for (const Axis &axis : plan.mesh)
      axes.push_back(identifierFor(axis.name, names));
    text.line("enum Axis : int " + listText(axes) + ";");
    if (!shared.groups.empty())
      text.line("enum Group : int " + listText(shared.groups) + ";");
    text.line("enum Queue : int " + listText(shared.streams) + ";");
    std::vector<std::string> lines;
    for (const auto &[ends, one] : traffic)
      lines.push_back(nameOf(ends));
    if (!lines.empty())
      text.line("enum Lines : int " + listText(lines) + ";");
    text.line();
  }

  static std::string nameOf(const std::pair<int, int> &ends) {
    return "kLine" + std::to_string(ends.first) + "To" +
           std::to_string(ends.second);
  }

  // Of the whole micro-batch: what synthetic data are counted by.
  std::pair<std::int64_t, std::int64_t> targets() const {
    std::int64_t whole = 0, limit = 0;
    forInstructions(plan, [&](const Instruction &instruction) {
      const auto *input = std::get_if<Input>(&instruction.what);
      if (!input || input->label != "targets")
        return;
      const Tensor &tensor = instruction.outputs.front();
      whole = elementsOf(tensor);
      for (const std::vector<int> &axes : tensor.split)
        for (const int axis : axes)
          whole *= plan.mesh[indexed(axis)].size;
      limit = input->limit;
    });
    return {whole, limit};
  }

  bool computesInF16() const {
    return std::ranges::any_of(plan.stages, [](const Stage &stage) {
      return std::ranges::any_of(stage.parameters, [](const Parameter &one) {
        return one.value.type == ElementType::f16;
      });
    });
  }

  void writeFacts() {
    const auto [whole, limit] = targets();
    std::vector<std::string> reports;
    for (const std::string &label : shared.reports)
      reports.push_back(quoted(label));
    std::vector<int> speakers;
    for (const Stage &stage : plan.stages)
      speakers.push_back(stage.ranks.front());
    text.open("const StepFacts kFacts{");
    text.line(".microBatches = " + std::to_string(plan.microBatches) + ",");
    text.line(".tokens = " + std::to_string(plan.globalBatch * plan.sequence) +
              ",");
    text.line(".layers = " + std::to_string(plan.layers) + ",");
    text.line(".targets = " + std::to_string(whole) + ",");
    text.line(".limit = " + std::to_string(limit) + ",");
    text.line(".reports = " + listText(reports) + ",");
    text.line(".speakers = " + listText(speakers) + ",");
    text.line(std::string(".computesInF16 = ") +
              (computesInF16() ? "true" : "false") + "};");
    text.leave();
    text.line();
  }

  static std::string listsText(const std::vector<std::vector<int>> &lists) {
    std::vector<std::string> items;
    items.reserve(lists.size());
    for (const std::vector<int> &list : lists)
      items.push_back(listText(list));
    return listText(items);
  }

  void writeMain() {
    std::vector<int> sizes;
    for (const Axis &axis : plan.mesh)
      sizes.push_back(axis.size);
    text.comment("One rank, from its start to its end.");
    text.open("void runRank(const Start &start, const Options &options) {");
    text.line("Rank rank = startedRank(start, " + std::to_string(plan.ranks) +
              ", " + listText(sizes) + ", " +
              std::to_string(plan.streams.size()) + ");");
    for (const Group &group : plan.groups) {
      text.comment(group.name);
      text.call("join", {"rank", listsText(group.communicators)});
    }
    for (const auto &[ends, one] : traffic)
      text.call("rank.lines.push_back",
                {"lineBetween(rank, " +
                     listText(plan.stages[indexed(ends.first)].ranks),
                 listText(plan.stages[indexed(ends.second)].ranks),
                 std::to_string(one.bytes) + ")"});
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      const std::string stage = "stage" + std::to_string(s);
      if (plan.stages.size() > 1)
        text.open("if (isOneOf(rank.rank, " + listText(plan.stages[s].ranks) +
                  ")) {");
      text.line(stage + "::open(rank);");
      text.call("trainSteps",
                {"rank", "{" + stage + "::initialise",
                 stage + "::forwardAndBackward", stage + "::squares",
                 stage + "::update}", "kFacts", "options"});
      if (plan.stages.size() > 1)
        text.close();
    }
    text.close();
    text.line();
    text.open("int main(int count, char **words) {");
    text.open("try {");
    text.line("const Options options = optionsOf(count, words);");
    text.open("onEveryRank(" + std::to_string(plan.ranks) +
              ", [&](const Start &start) {");
    text.line("runRank(start, options);");
    text.close("});");
    text.leave();
    text.open("} catch (const std::exception &error) {");
    text.line("std::cerr << \"train: \" << error.what() << '\\n';");
    text.line("return 1;");
    text.close();
    text.line("return 0;");
    text.close();
  }

  const Plan &plan;
  const TrafficByStages traffic;
  SharedWords shared;
  Text text;
};

} // namespace

std::string cudaSource(const Plan &plan) { return ProgramSource(plan).write(); }

std::string cudaProject(const Plan &plan) {
  return "# Trains " + plan.model +
         R"(; written by mtplan. Needs CUDA 13 with cuBLASLt, and NCCL 2.18 or later:
# where it is not with CUDA, -DNCCL_ROOT=<folder>.
cmake_minimum_required(VERSION 3.24)
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
project(train LANGUAGES CXX CUDA)

find_package(CUDAToolkit REQUIRED)
find_package(Threads REQUIRED)
find_path(NCCL_INCLUDE nccl.h REQUIRED
  HINTS ${NCCL_ROOT}/include ${CUDAToolkit_INCLUDE_DIRS})
find_library(NCCL_LIBRARY nccl REQUIRED
  HINTS ${NCCL_ROOT}/lib ${CUDAToolkit_LIBRARY_DIR})

add_executable(train train.cu)
target_compile_options(train PRIVATE -std=c++20 --expt-relaxed-constexpr)
target_include_directories(train PRIVATE ${NCCL_INCLUDE})
target_link_libraries(train PRIVATE CUDA::cudart CUDA::cublasLt
  ${NCCL_LIBRARY} Threads::Threads)
)";
}

} // namespace mtplan::codegen
