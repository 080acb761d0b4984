//===- instruction_json.cpp - Reads instructions --------------------------===//

#include "runtime/plan/instruction_json.h"

#include <algorithm>

#include <nlohmann/json.hpp>

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
  // Rejects a member that this kind of collective does not read.
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

// A kind of instruction: the member that identifies it, and its other members.
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

} // namespace mtplan::runtime
