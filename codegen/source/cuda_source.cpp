//===- cuda_source.cpp - A plan as a program that stands alone ------------===//

#include "codegen/source/cuda_source.h"

#include <algorithm>
#include <map>
#include <set>

#include "codegen/source/dimension_names.h"
#include "codegen/source/pass_schedule.h"
#include "codegen/source/program_head.h"
#include "codegen/source/program_headers.h"
#include "codegen/source/stage_names.h"
#include "codegen/source/stage_source.h"
#include "codegen/source/tensor_buffers.h"
#include "runtime/plan/plan_queries.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

template <typename See> void forInstructions(const Plan &plan, See see) {
  for (const Stage &stage : plan.stages)
    for (const Program &program : stage.programs)
      for (const Instruction &instruction : program.instructions)
        see(instruction);
}

/// Lists the messages from one stage to another in a step.
struct Traffic {
  std::vector<int> sent, received; ///< channels in the order of the messages
  std::int64_t bytes = 0;
  const Tensor *first = nullptr; ///< the first message
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
            if (!traffic.first)
              traffic.first = instruction.inputs.data();
          }
  }
  return all;
}

class ProgramSource {
public:
  explicit ProgramSource(const Plan &thePlan)
      : plan(thePlan), traffic(trafficOf(plan)), dimensions(plan),
        settings(plan), shared{dimensions, settings, {}, {}, {}} {
    for (const Stage &stage : plan.stages)
      for (const Arena &arena : stage.arenas)
        if (arena.memoryClass == MemoryClass::host && arena.size > 0)
          throw SourceError(
              "an optimizer that is offloaded to the host's memory cannot be "
              "written into a program that stands alone yet; plan with "
              "--offload none");
    std::set<std::string> taken;
    for (const Group &group : plan.groups)
      shared.groups.push_back("kGroup_" + identifierFor(group.name, taken));
    std::set<std::string> known;
    for (const std::string &stream : plan.streams)
      shared.streams.push_back("kStream_" + identifierFor(stream, known));
    for (const auto &[ends, one] : traffic) {
      // A connection keeps the order of messages, so sender and receiver must
      // use the same order.
      if (one.sent != one.received)
        throw SourceError("stages " + std::to_string(ends.first) + " and " +
                          std::to_string(ends.second) +
                          " send and receive in different orders, which "
                          "emitted programs do not support yet");
    }
    forInstructions(plan, [&](const Instruction &instruction) {
      if (const auto *report = std::get_if<Report>(&instruction.what);
          report && std::ranges::find(shared.reports, report->label) ==
                        shared.reports.end())
        shared.reports.push_back(report->label);
    });
  }

  std::vector<ProgramFile> write() {
    texts.needed = {"runtime/cuda/standalone/train.cuh"};
    writeStages(plan, shared, texts);
    Text &step = texts.step;
    step.line("//===- All ranks "
              "---------------------------------------------------------===//");
    step.line();
    writeFacts();
    writeMain();
    const std::vector<ProgramHeader> headers = programHeaders(texts.needed);
    std::string includes;
    for (const ProgramHeader &header : headers)
      if (header.isNeeded && header.path != kTraining)
        includes += "#include \"" + header.path + "\"\n";
    const std::string once = "#pragma once\n\n",
                      plans = "#include \"dimensions.h\"\n";
    std::vector<ProgramFile> files = {
        {"train.cu", programHead(plan, headers, texts.step.text()) +
                         "#include \"" + kTraining + "\"\n\n" + plans +
                         includes +
                         "#include \"memory.cuh\"\n"
                         "#include \"parameters.cuh\"\n\n" +
                         step.text()},
        {"dimensions.h", dimensionsFile()},
        {"memory.cuh", "// memory.cuh: where each tensor of a stage lies.\n" +
                           once + plans +
                           "#include \"products.cuh\"\n"
                           "#include \"launch.cuh\"\n\n" +
                           texts.memory.text()},
        {"parameters.cuh",
         "// parameters.cuh: initial values, and terms of the gradient "
         "norm.\n" +
             once + "#include \"kernels/adamw.cuh\"\n#include \"" + kTraining +
             "\"\n\n" + plans + "#include \"memory.cuh\"\n\n" +
             texts.parameters.text()},
        {"CMakeLists.txt", projectFile()}};
    for (const ProgramHeader &header : headers)
      files.push_back({header.path, header.text});
    return files;
  }

private:
  static constexpr const char *kTraining = "training.cuh",
                              *kStreams = "kStreams";

  static void constant(Text &text, const char *type, const std::string &name,
                       std::int64_t value, const std::string &meaning) {
    text.line(std::string("inline constexpr ") + type + " " + name + " = " +
              std::to_string(value) + ";" +
              (meaning.empty() ? "" : " // " + meaning));
  }

  std::string dimensionsFile() const {
    Text text;
    text.line(
        "// dimensions.h: the sizes of the model and of the plan, and the "
        "numbers of its");
    text.line(
        "// mesh axes, process groups, streams and lines between stages.");
    text.line("#pragma once");
    text.line();
    text.line("#include \"rank.cuh\"");
    text.line();
    text.line("using namespace mtplan::runtime;");
    text.line("using namespace mtplan::runtime::cuda;");
    text.line("using enum mtplan::runtime::ElementType;");
    text.line();
    // The sizes are in a namespace of their own, because kernels have a
    // template parameter called T.
    text.line("namespace sizes {");
    const char *const wide = "std::int64_t";
    for (const Dimension &one : dimensions.all())
      constant(text, wide, one.name, one.size, one.meaning);
    constant(text, "int", "L", plan.layers, "layers");
    constant(text, "int", "microBatches", plan.microBatches,
             "micro-batches of a step");
    for (const NamedSetting &one : settings.all())
      text.line("inline constexpr double " + one.name + " = " +
                numberText(one.value) + "; // " + one.meaning);
    text.line();
    text.comment("The mesh: ranks along each axis, major first.");
    std::vector<std::string> axes;
    for (std::size_t a = 0; a < plan.mesh.size(); ++a) {
      const auto which = static_cast<int>(a);
      constant(text, "int", dimensions.axis(which), plan.mesh[a].size, "");
      axes.push_back("kAxis_" + dimensions.axis(which));
    }
    constant(text, "int", "ranks", plan.ranks, "of all axes together");
    text.line("} // namespace sizes");
    text.line("using namespace sizes;");
    text.line();
    text.line("enum Axis : int " + listText(axes) + ";");
    if (!shared.groups.empty())
      text.line("enum Group : int " + listText(shared.groups) + ";");
    std::vector<std::string> streams = shared.streams;
    streams.push_back(kStreams); // the number of streams
    text.line("enum Queue : int " + listText(streams) + ";");
    std::vector<std::string> lines;
    for (const auto &[ends, one] : traffic)
      lines.push_back(nameOf(ends));
    if (!lines.empty()) {
      text.comment("A line is the connection over which one stage sends to "
                   "another.");
      text.line("enum Lines : int " + listText(lines) + ";");
    }
    return text.text();
  }

  static std::string nameOf(const std::pair<int, int> &ends) {
    return "kLine" + std::to_string(ends.first) + "To" +
           std::to_string(ends.second);
  }

  /// Returns the number of targets of a micro-batch over all ranks, and the
  /// exclusive upper bound of the targets.
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
    Text &text = texts.step;
    const auto [whole, limit] = targets();
    std::vector<std::string> reports;
    for (const std::string &label : shared.reports)
      reports.push_back(quoted(label));
    std::vector<int> firstRanks;
    for (const Stage &stage : plan.stages)
      firstRanks.push_back(stage.ranks.front());
    text.open("const StepFacts kFacts{");
    text.line(".microBatches = microBatches,");
    text.line(".tokens = " + tokensText() + ",");
    text.line(".layers = L,");
    text.line(".targets = " + targetsText(whole) + ",");
    text.line(".limit = " + dimensions.known("V", limit) + ",");
    text.line(".reports = " + listText(reports) + ",");
    text.line(".firstRanks = " + listText(firstRanks) + ",");
    text.line(std::string(".computesInF16 = ") +
              (computesInF16() ? "true" : "false") + "};");
    text.leave();
    text.line();
  }

  std::int64_t sizeOf(const std::string &name) const {
    const auto found =
        std::ranges::find(dimensions.all(), name, &Dimension::name);
    return found == dimensions.all().end() ? 0 : found->size;
  }

  std::string targetsText(std::int64_t targets) const {
    return sizeOf("B") * sizeOf("T") == targets ? "B * T"
                                                : std::to_string(targets);
  }

  std::string tokensText() const {
    const std::int64_t tokens = plan.globalBatch * plan.sequence;
    return plan.microBatches * sizeOf("B") * sizeOf("T") == tokens
               ? "microBatches * B * T"
               : std::to_string(tokens);
  }

  /// Returns the bytes of a step's messages: a product of sizes if all messages
  /// are as large as the first message and need no padding, else a number
  /// literal.
  std::string bytesText(int sender, const Traffic &messages) const {
    const Tensor &first = *messages.first;
    const auto count = static_cast<std::int64_t>(messages.sent.size());
    if (count * elementsOf(first) * bytesOf(first.type) != messages.bytes)
      return std::to_string(messages.bytes);
    std::vector<std::string> factors = {
        count == plan.microBatches ? "microBatches" : std::to_string(count)};
    if (count == 1)
      factors.clear();
    for (std::size_t d = 0; d < first.shape.size(); ++d)
      factors.push_back(dimensions.local(indexed(sender), first, d).text);
    factors.push_back("bytesOf(" + typeText(first.type) + ")");
    return productText(factors);
  }

  static std::string listsText(const std::vector<std::vector<int>> &lists) {
    std::vector<std::string> items;
    items.reserve(lists.size());
    for (const std::vector<int> &list : lists)
      items.push_back(listText(list));
    return listText(items);
  }

  /// Returns the axes along which the communicators of a group lie: the ranks
  /// of a communicator differ only in their coordinates on these axes. Returns
  /// no axis if a communicator lacks some of the ranks along these axes.
  std::vector<int> axesOf(const Group &group) const {
    std::vector<int> axes;
    for (std::size_t a = 0; a < plan.mesh.size(); ++a)
      if (plan.mesh[a].size > 1 &&
          coordinate(group.communicators.front().front(), a) !=
              coordinate(group.communicators.front().back(), a))
        axes.push_back(static_cast<int>(a));
    std::vector<std::vector<int>> along;
    std::map<std::vector<int>, std::size_t> found; // by the other coordinates
    for (int rank = 0; rank < plan.ranks; ++rank) {
      std::vector<int> others;
      for (std::size_t a = 0; a < plan.mesh.size(); ++a)
        if (std::ranges::find(axes, static_cast<int>(a)) == axes.end())
          others.push_back(coordinate(rank, a));
      const auto [at, isNew] = found.try_emplace(others, along.size());
      if (isNew)
        along.emplace_back();
      along[at->second].push_back(rank);
    }
    return along == group.communicators ? axes : std::vector<int>{};
  }

  int coordinate(int rank, std::size_t axis) const {
    for (std::size_t a = plan.mesh.size() - 1; a > axis; --a)
      rank /= plan.mesh[a].size;
    return rank % plan.mesh[axis].size;
  }

  std::string stageAxis() const {
    const auto pp = std::ranges::find(plan.mesh, "pp", &Axis::name);
    return "kAxis_" + dimensions.axis(static_cast<int>(pp - plan.mesh.begin()));
  }

  void writeLines(Text &text) const {
    if (traffic.empty())
      return;
    text.comment("Lines go from stage to stage. Each carries this many bytes "
                 "in a step.");
    std::vector<std::string> rows;
    std::set<std::string> bytes;
    for (const auto &[ends, one] : traffic)
      bytes.insert(bytesText(ends.first, one));
    for (const auto &[ends, one] : traffic) {
      std::vector<std::string> row = {std::to_string(ends.first),
                                      std::to_string(ends.second)};
      if (bytes.size() > 1)
        row.push_back(bytesText(ends.first, one));
      rows.push_back(listText(row));
    }
    text.open("constexpr struct {");
    text.line(bytes.size() > 1 ? "int from, to; std::int64_t bytes;"
                               : "int from, to;");
    text.leave();
    text.call("} lines[] = {", rows, "};");
    text.open("for (const auto &line : lines)");
    text.call(
        "rank.lines.push_back",
        {"lineBetween(rank, ranksAt(rank, " + stageAxis() + ", line.from)",
         "ranksAt(rank, " + stageAxis() + ", line.to)",
         (bytes.size() > 1 ? "line.bytes" : *bytes.begin()) + ")"});
    text.leave();
  }

  void writeMain() {
    Text &text = texts.step;
    text.comment("This table lists the functions of each stage.");
    text.open("const StageProgram kStages[] = {");
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      const std::string stage = "stage" + std::to_string(s) + "::";
      text.call("{",
                {stage + "open", stage + "initialise", texts.steps[s][0],
                 stage + "squares", texts.steps[s][1]},
                "},");
    }
    text.close("};");
    text.line();
    std::vector<std::string> sizes;
    for (std::size_t a = 0; a < plan.mesh.size(); ++a)
      sizes.push_back(dimensions.axis(static_cast<int>(a)));
    text.comment("Runs one rank: joins its process groups, allocates its "
                 "stage's memory, and trains.");
    text.open("void runRank(const Start &start, const Options &options) {");
    text.line("Rank rank = startedRank(start, ranks, " + listText(sizes) +
              ", " + kStreams + ");");
    if (!plan.groups.empty())
      text.comment(traffic.empty()
                       ? "Groups are in the order of enum Group."
                       : "Groups and lines are in the order of enum Group and "
                         "enum Lines.");
    for (const Group &group : plan.groups) {
      text.comment("Group " + group.name + ".");
      const std::vector<int> axes = axesOf(group);
      std::vector<std::string> constants;
      constants.reserve(axes.size());
      for (const int axis : axes)
        constants.push_back("kAxis_" + dimensions.axis(axis));
      if (axes.empty())
        text.call("join", {"rank", listsText(group.communicators)});
      else
        text.line("joinAlong(rank, " + listText(constants) + ");");
    }
    writeLines(text);
    text.line(plan.stages.size() > 1
                  ? "const StageProgram &stage = kStages[rank.at(" +
                        stageAxis() + ")];"
                  : "const StageProgram &stage = kStages[0];");
    text.line("stage.open(rank);");
    text.line("trainSteps(rank, stage, kFacts, options);");
    text.close();
    text.line();
    text.open("int main(int count, char **words) {");
    text.open("try {");
    text.line("const Options options = optionsOf(count, words);");
    text.open("onEveryRank(ranks, [&](const Start &start) {");
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

  std::string projectFile() const {
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

  const Plan &plan;
  const TrafficByStages traffic;
  const DimensionNames dimensions;
  const SettingNames settings;
  SharedNames shared;
  StageTexts texts;
};

} // namespace

std::vector<ProgramFile> cudaProgram(const Plan &plan) {
  Plan named = withTensorBuffers(plan);
  splitRecomputation(named);
  return ProgramSource(named).write();
}

} // namespace mtplan::codegen
