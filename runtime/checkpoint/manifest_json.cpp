//===- manifest_json.cpp - What a checkpoint says of itself ---------------===//

#include <array>
#include <charconv>
#include <limits>

#include <nlohmann/json.hpp>

#include "runtime/checkpoint/digest.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/plan/node_json.h"
#include "runtime/plan/plan_json.h"

namespace mtplan::runtime {

using nlohmann::ordered_json;

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr const char *kFormat = "mtplan checkpoint";

std::string textOf(const ordered_json &json) { return json.dump(1) + "\n"; }

ordered_json jsonOf(const RunState &run) {
  ordered_json json;
  json["step"] = run.step;
  json["samples"] = run.samples;
  json["updates"] = run.updates;
  json["seed"] = std::to_string(run.seed); // not every reader has 64 bits
  if (run.scaler)
    json["loss_scale"] = {{"scale", run.scaler->scale},
                          {"clean", run.scaler->clean},
                          {"tolerance", run.scaler->tolerance}};
  json["skipped"] = run.skipped;
  json["model"] = run.model;
  json["global_batch"] = run.globalBatch;
  json["sequence"] = run.sequence;
  json["plan"] = run.plan;
  json["data"] = run.data;
  ordered_json options = ordered_json::object();
  for (const auto &[name, value] : run.options)
    options[name] = value;
  json["options"] = std::move(options);
  return json;
}

double numberOf(const Node &node) {
  if (!node.value().is_number())
    node.mustBe("a number");
  return node.value().get<double>();
}

RunState readRun(const Node &node) {
  constexpr std::array<std::string_view, 12> kNames = {
      "step",  "samples",      "updates",  "seed", "loss_scale", "skipped",
      "model", "global_batch", "sequence", "plan", "data",       "options"};
  const MemberNodes members(node, kNames);
  RunState run;
  run.step = members.integer("step", 0, kMost);
  run.samples = members.integer("samples", 0, kMost);
  run.updates = members.integer("updates", 0, kMost);
  const Node seed = members.need("seed");
  const std::string digits = seed.text();
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), run.seed);
  if (error != std::errc() || end != digits.data() + digits.size())
    seed.mustBe("a whole number below 2^64, as text");
  if (const std::optional<Node> scale = members.find("loss_scale")) {
    constexpr std::array<std::string_view, 3> kScale = {"scale", "clean",
                                                        "tolerance"};
    const MemberNodes parts(*scale, kScale);
    constexpr std::int64_t kInt = std::numeric_limits<int>::max();
    run.scaler = {numberOf(parts.need("scale")),
                  static_cast<int>(parts.integer("clean", 0, kInt)),
                  static_cast<int>(parts.integer("tolerance", -kInt, kInt))};
  }
  run.skipped = static_cast<int>(
      members.integer("skipped", 0, std::numeric_limits<int>::max()));
  run.model = members.need("model").text();
  run.globalBatch = members.integer("global_batch", 0, kMost);
  run.sequence = members.integer("sequence", 0, kMost);
  run.plan = members.need("plan").text();
  run.data = members.need("data").text();
  const Node options = members.need("options");
  if (!options.value().is_object())
    options.mustBe("an object");
  for (const auto &[name, value] : options.value().items())
    run.options[name] = Node(value, options, name).text();
  return run;
}

} // namespace

std::string manifestText(const Manifest &manifest) {
  ordered_json json;
  json["format"] = kFormat;
  json["version"] = kCheckpointVersion;
  json["checksum"] = "";
  json["run"] = jsonOf(manifest.run);
  json["files"] = ordered_json::array();
  for (const ManifestFile &file : manifest.files)
    json["files"].push_back(
        {{"name", file.name}, {"bytes", file.bytes}, {"header", file.header}});
  json["tensors"] = ordered_json::array();
  for (const ManifestTensor &tensor : manifest.tensors)
    json["tensors"].push_back({{"name", tensor.name},
                               {"file", tensor.file},
                               {"checksum", tensor.checksum}});
  json["checksum"] = textOf(digestOf(textOf(json)));
  return textOf(json);
}

Manifest parseManifest(const std::string &file, const std::string &text) {
  try {
    ordered_json json = parseStrictly(text);
    const Node root(json);
    constexpr std::array<std::string_view, 6> kNames = {
        "format", "version", "checksum", "run", "files", "tensors"};
    const MemberNodes members(root, kNames);
    if (members.need("format").text() != kFormat)
      members.need("format").mustBe(std::string("\"") + kFormat + '"');
    // What other versions have is theirs: this comes before all else.
    if (const std::int64_t version = members.integer("version", 1, kMost);
        version != kCheckpointVersion)
      members.need("version").fail("is " + std::to_string(version) +
                                   ", but this mtrun reads version " +
                                   std::to_string(kCheckpointVersion));
    const std::string checksum = members.need("checksum").text();
    Manifest manifest;
    manifest.run = readRun(members.need("run"));
    manifest.files = members.need("files").list([](const Node &node) {
      constexpr std::array<std::string_view, 3> kFile = {"name", "bytes",
                                                         "header"};
      const MemberNodes parts(node, kFile);
      return ManifestFile{parts.need("name").text(),
                          parts.integer("bytes", 0, kMost),
                          parts.need("header").text()};
    });
    manifest.tensors = members.need("tensors").list([](const Node &node) {
      constexpr std::array<std::string_view, 3> kTensor = {"name", "file",
                                                           "checksum"};
      const MemberNodes parts(node, kTensor);
      return ManifestTensor{parts.need("name").text(),
                            parts.need("file").text(),
                            parts.need("checksum").text()};
    });
    // Of the text itself: nothing in it may have changed, not even a space.
    std::string blank = text;
    if (const std::size_t at = blank.find('"' + checksum + '"');
        at != std::string::npos && !checksum.empty())
      blank.erase(at + 1, checksum.size());
    if (const std::string is = textOf(digestOf(blank)); is != checksum)
      members.need("checksum")
          .fail("says " + checksum + ", but the text has " + is +
                ": it has been damaged");
    return manifest;
  } catch (const PlanError &error) {
    throw CheckpointError(file + ": " + error.what());
  }
}

} // namespace mtplan::runtime
