//===- plan_read_json.cpp - Reads an executable plan ----------------------===//

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include <nlohmann/json.hpp>

#include "base/json_node.h"
#include "base/json_text.h"
#include "runtime/plan/plan_json.h"
#include "runtime/plan/plan_words.h"

namespace mtplan::runtime {

using base::JsonMembers;
using base::JsonNode;

namespace {

int readIndex(const JsonNode &node) { return node.count(0, kMostIndex); }

Setting readSetting(const std::string &name, const JsonNode &node) {
  const auto &value = node.value();
  if (value.is_number_float())
    return {name, value.get<double>()};
  if (value.is_number_integer())
    return {name, node.integer(INT64_MIN, INT64_MAX)};
  if (value.is_string())
    return {name, value.get<std::string>()};
  node.mustBe("a whole number, a number with a point, or a string");
}

KernelCall readKernel(const JsonMembers &members) {
  KernelCall call;
  call.kernel = members.need("kernel").text();
  if (std::optional<JsonNode> settings = members.find("settings")) {
    if (!settings->value().is_object())
      settings->mustBe("an object");
    for (const auto &[name, value] : settings->value().items())
      call.settings.push_back(
          readSetting(name, JsonNode(value, *settings, name)));
  }
  return call;
}

Collective readCollective(const JsonMembers &members) {
  Collective call;
  call.kind = static_cast<CollectiveKind>(
      members.need("collective").oneOf(kCollectiveKinds));
  call.group = members.index("group");
  // Rejects the member if this kind of collective does not read it.
  auto reads = [&](std::string_view name, bool does) {
    if (std::optional<JsonNode> member = members.find(name); member && !does)
      member->fail("is not read by " + std::string(wordOf(call.kind)) +
                   "; leave it out");
    return does;
  };
  if (reads("reduction", reduces(call.kind)))
    call.reduction =
        static_cast<Reduction>(members.need("reduction").oneOf(kReductions));
  if (reads("gathered", gathers(call.kind)))
    call.gathered = members.index("gathered");
  if (reads("scattered", scatters(call.kind)))
    call.scattered = members.index("scattered");
  return call;
}

Transfer readTransfer(const JsonMembers &members) {
  bool sends = members.has("send_to");
  return {sends, members.index(sends ? "send_to" : "receive_from"),
          members.index("channel")};
}

Input readInput(const JsonMembers &members) {
  Input input;
  input.label = members.need("input").text();
  input.dims = members.need("dims").list([](const JsonNode &dim) {
    return std::string(kInputDims[dim.oneOf(kInputDims)]);
  });
  if (members.has("limit"))
    input.limit = members.integer("limit", 0, kMostElements);
  return input;
}

// Holds the member that identifies a kind of instruction, and the members that
// only this kind may have.
struct Kind {
  std::string_view key;
  std::vector<std::string_view> others;
};

const std::vector<Kind> &kinds() {
  static const std::vector<Kind> kKinds = {
      {"kernel", {"settings"}},
      {"collective",
       {"group", "reduction", "gathered", "scattered", "overlapped"}},
      {"send_to", {"channel"}},
      {"receive_from", {"channel"}},
      {"input", {"dims", "limit"}},
      {"report", {}}};
  return kKinds;
}

const Kind &kindOf(const JsonNode &node) {
  std::string all;
  const Kind *found = nullptr;
  for (const Kind &kind : kinds()) {
    ((all += all.empty() ? "\"" : ", \"") += kind.key) += '"';
    if (!node.value().contains(kind.key))
      continue;
    if (found)
      node.fail("has both \"" + std::string(found->key) + "\" and \"" +
                std::string(kind.key) + "\"; it does one thing");
    found = &kind;
  }
  if (!found)
    node.fail("does nothing: it needs one of " + all);
  return *found;
}

} // namespace

Tensor readTensor(const JsonNode &node) {
  static constexpr std::string_view kNames[] = {"buffer", "entry", "entry_step",
                                                "type",   "shape", "split"};
  JsonMembers members(node, kNames);
  Tensor tensor;
  tensor.buffer = members.index("buffer");
  tensor.entry = members.index("entry", 0);
  if (std::optional<JsonNode> step = members.find("entry_step"))
    tensor.entryStep = step->count(-kMostCopies, kMostCopies);
  tensor.type =
      static_cast<ElementType>(members.need("type").oneOf(kElementTypes));
  tensor.shape = members.need("shape").list(
      [](const JsonNode &size) { return size.integer(1, kMostElements); });
  if (std::optional<JsonNode> split = members.find("split"))
    tensor.split =
        split->list([](const JsonNode &dim) { return dim.list(readIndex); });
  return tensor;
}

Instruction readInstruction(const JsonNode &node) {
  if (!node.value().is_object())
    node.mustBe("an object");
  const Kind &kind = kindOf(node);
  std::vector<std::string_view> names = {"label",  "inputs", "outputs",
                                         "stream", "waits",  kind.key};
  names.insert(names.end(), kind.others.begin(), kind.others.end());
  JsonMembers members(node, names);

  Instruction made;
  made.label = members.need("label").text();
  if (kind.key == "kernel")
    made.what = readKernel(members);
  else if (kind.key == "collective")
    made.what = readCollective(members);
  else if (kind.key == "input")
    made.what = readInput(members);
  else if (kind.key == "report")
    made.what = Report{members.need("report").text()};
  else
    made.what = readTransfer(members);
  if (std::optional<JsonNode> inputs = members.find("inputs"))
    made.inputs = inputs->list(readTensor);
  if (std::optional<JsonNode> outputs = members.find("outputs"))
    made.outputs = outputs->list(readTensor);
  made.stream = members.index("stream");
  if (std::optional<JsonNode> waits = members.find("waits"))
    made.waits = waits->list(readIndex);
  if (std::optional<JsonNode> overlapped = members.find("overlapped"))
    made.overlapped = overlapped->boolean();
  return made;
}

using base::JsonMembers;
using base::JsonNode;

namespace {

std::string readText(const JsonNode &node) { return node.text(); }

int readRank(const JsonNode &node) { return node.count(0, kMostRanks - 1); }

Axis readAxis(const JsonNode &node) {
  static constexpr std::string_view kNames[] = {"name", "size"};
  JsonMembers members(node, kNames);
  return {members.need("name").text(), members.count("size", kMostRanks)};
}

Group readGroup(const JsonNode &node) {
  static constexpr std::string_view kNames[] = {"name", "communicators"};
  JsonMembers members(node, kNames);
  Group group;
  group.name = members.need("name").text();
  group.communicators =
      members.need("communicators").list([](const JsonNode &one) {
        return one.list(readRank);
      });
  return group;
}

Arena readArena(const JsonNode &node) {
  static constexpr std::string_view kNames[] = {"class", "size"};
  JsonMembers members(node, kNames);
  return {static_cast<MemoryClass>(members.need("class").oneOf(kMemoryClasses)),
          members.integer("size", 0, kMostBytes)};
}

std::int64_t readOffset(const JsonMembers &members, std::string_view name) {
  std::optional<JsonNode> member = members.find(name);
  if (!member)
    return 0;
  std::int64_t bytes = member->integer(0, kMostBytes);
  if (bytes % kAlignment != 0)
    member->fail("must be a multiple of " + std::to_string(kAlignment) +
                 " bytes, got " + std::to_string(bytes) + "; the next is " +
                 std::to_string((bytes / kAlignment + 1) * kAlignment));
  return bytes;
}

Buffer readBuffer(const JsonNode &node) {
  static constexpr std::string_view kNames[] = {
      "name",    "arena",        "offset", "size",
      "entries", "entry_stride", "slots",  "slot_stride"};
  JsonMembers members(node, kNames);
  Buffer buffer;
  buffer.name = members.need("name").text();
  buffer.arena = members.index("arena");
  (void)members.need("offset");
  buffer.offset = readOffset(members, "offset");
  buffer.size = members.integer("size", 1, kMostBytes);
  buffer.entries = members.count("entries", kMostPieces, 1);
  buffer.entryStride = readOffset(members, "entry_stride");
  buffer.slots = members.count("slots", kMostPieces, 1);
  buffer.slotStride = readOffset(members, "slot_stride");
  return buffer;
}

Parameter readParameter(const JsonNode &node) {
  static constexpr std::string_view kNames[] = {"label",
                                                "init",
                                                "first_copy",
                                                "copies",
                                                "value",
                                                "gradient",
                                                "master",
                                                "first_moment",
                                                "second_moment",
                                                "alike",
                                                "counted_elsewhere",
                                                "unpadded"};
  JsonMembers members(node, kNames);
  Parameter parameter;
  parameter.label = members.need("label").text();
  parameter.init = kInits[members.need("init").oneOf(kInits)];
  parameter.firstCopy = members.index("first_copy", 0);
  parameter.copies = members.count("copies", kMostCopies, 1);
  parameter.value = readTensor(members.need("value"));
  parameter.gradient = readTensor(members.need("gradient"));
  if (std::optional<JsonNode> master = members.find("master"))
    parameter.master = readTensor(*master);
  parameter.firstMoment = readTensor(members.need("first_moment"));
  parameter.secondMoment = readTensor(members.need("second_moment"));
  if (std::optional<JsonNode> alike = members.find("alike"))
    parameter.alike = alike->list(readIndex);
  if (std::optional<JsonNode> counted = members.find("counted_elsewhere"))
    parameter.countedElsewhere = counted->boolean();
  if (std::optional<JsonNode> unpadded = members.find("unpadded"))
    parameter.unpadded = unpadded->list(
        [](const JsonNode &size) { return size.integer(1, kMostElements); });
  return parameter;
}

Batch readBatch(const JsonNode &node) {
  static constexpr std::string_view kNames[] = {"instructions",
                                                "of_all_copies"};
  JsonMembers members(node, kNames);
  Batch batch;
  batch.instructions = members.need("instructions").list(readIndex);
  if (std::optional<JsonNode> copies = members.find("of_all_copies"))
    batch.ofAllCopies = copies->boolean();
  return batch;
}

Program readProgram(const JsonNode &node) {
  static constexpr std::string_view kNames[] = {"name", "first_copy",
                                                "instructions", "batches"};
  JsonMembers members(node, kNames);
  Program program;
  program.name = members.need("name").text();
  program.firstCopy = members.index("first_copy", 0);
  program.instructions = members.need("instructions").list(readInstruction);
  if (std::optional<JsonNode> batches = members.find("batches"))
    program.batches = batches->list(readBatch);
  return program;
}

ScheduleEntry readEntry(const JsonNode &node) {
  std::size_t size = node.size();
  if (size < 2 || size > 5)
    node.fail("must have 2 to 5 numbers, [program, micro-batch, first, count, "
              "step], got " +
              std::to_string(size));
  ScheduleEntry entry;
  entry.program = readIndex(node.at(0));
  entry.microBatch = node.at(1).count(0, kMostMicroBatches - 1);
  if (size > 2)
    entry.first = node.at(2).count(0, kMostCopies - 1);
  if (size > 3)
    entry.count = node.at(3).count(1, kMostCopies);
  if (size > 4)
    entry.step = node.at(4).count(-1, 1);
  if (entry.step == 0)
    node.at(4).fail("must be 1, or -1 in backward, got 0");
  return entry;
}

Stage readStage(const JsonNode &node) {
  static constexpr std::string_view kNames[] = {
      "ranks",    "arenas",   "buffers", "parameters",
      "programs", "schedule", "reduce",  "apply"};
  JsonMembers members(node, kNames);
  Stage stage;
  stage.ranks = members.need("ranks").list(readRank);
  stage.arenas = members.need("arenas").list(readArena);
  stage.buffers = members.need("buffers").list(readBuffer);
  stage.parameters = members.need("parameters").list(readParameter);
  stage.programs = members.need("programs").list(readProgram);
  stage.schedule = members.need("schedule").list(readEntry);
  stage.reduce = members.need("reduce").list(readEntry);
  stage.apply = members.need("apply").list(readEntry);
  return stage;
}

Plan readPlan(const JsonNode &node) {
  static constexpr std::string_view kNames[] = {
      "version",  "model",   "ranks",         "mesh",
      "groups",   "streams", "micro_batches", "global_batch",
      "sequence", "layers",  "stages"};
  // The version is checked first, because other versions have other members.
  if (!node.value().is_object())
    node.mustBe("an object");
  if (auto found = node.value().find("version"); found != node.value().end()) {
    JsonNode version(*found, node, "version");
    if (std::int64_t given = version.integer(0, kMostIndex);
        given != kPlanVersion)
      version.fail("is " + std::to_string(given) +
                   ", but this program reads version " +
                   std::to_string(kPlanVersion) + "; compile the plan again");
  } else if (!node.value().contains("stages")) { // e.g. a model file
    throw PlanError("is no plan: it has neither a version nor stages; `mtplan "
                    "MODEL -o FOLDER` writes one");
  }
  JsonMembers members(node, kNames);
  Plan plan;
  plan.version = members.index("version");
  plan.model = members.need("model").text();
  plan.ranks = members.count("ranks", kMostRanks);
  plan.mesh = members.need("mesh").list(readAxis);
  plan.groups = members.need("groups").list(readGroup);
  plan.streams = members.need("streams").list(readText);
  plan.microBatches = members.count("micro_batches", kMostMicroBatches);
  plan.globalBatch = members.integer("global_batch", 1, kMostSamples);
  plan.sequence = members.integer("sequence", 1, kMostSamples);
  plan.layers = members.integer("layers", 1, kMostCopies);
  plan.stages = members.need("stages").list(readStage);
  return plan;
}

[[noreturn]] void fail(const std::filesystem::path &path,
                       const std::string &what, int error) {
  throw PlanError(path.string() + ": " + what + ": " +
                  std::generic_category().message(error));
}

struct Close {
  void operator()(std::FILE *file) const {
    std::fclose(file); // NOLINT: an error after reading is harmless
  }
};

std::string readWhole(const std::filesystem::path &path) {
  // fopen opens a folder without an error, but reading the folder fails.
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored))
    fail(path, "cannot be read", EISDIR);
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file)
    fail(path, "cannot be opened", errno);
  std::string text;
  char block[1 << 16];
  while (std::size_t got = std::fread(block, 1, sizeof block, file.get()))
    text.append(block, got);
  if (std::ferror(file.get()) != 0)
    fail(path, "cannot be read", errno);
  return text;
}

} // namespace

Plan parsePlan(const std::string &text) {
  // These limits of nesting and of members per object are far above what any
  // valid plan needs.
  constexpr base::JsonLimits kLimits = {.depth = 32, .members = 256};
  try {
    const base::Json root = base::parseJson(text, kLimits);
    return readPlan(JsonNode(root));
  } catch (const base::JsonError &error) {
    throw PlanError(error.what());
  }
}

Plan readPlanFile(const std::filesystem::path &path) {
  const std::string text = readWhole(path);
  try {
    return parsePlan(text);
  } catch (const PlanError &error) {
    throw PlanError(path.string() + ": " + error.what());
  }
}

} // namespace mtplan::runtime
