//===- manifest_json.cpp - Reads and writes manifest.json -----------------===//

#include <array>
#include <charconv>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/json_node.h"
#include "base/json_text.h"
#include "runtime/checkpoint/durable_file.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/data/digest.h"

namespace mtplan::runtime {

using base::JsonMembers;
using base::JsonNode;
using nlohmann::ordered_json;

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr const char *kFormat = "mtplan checkpoint";

std::string dumped(const ordered_json &json) { return json.dump(1) + "\n"; }

ordered_json jsonOf(const RunState &run) {
  ordered_json json;
  json["step"] = run.step;
  json["samples"] = run.samples;
  json["updates"] = run.updates;
  json["seed"] = std::to_string(run.seed); // readers may lack 64-bit integers
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

RunState readRun(const JsonNode &node) {
  constexpr std::array<std::string_view, 12> kNames = {
      "step",  "samples",      "updates",  "seed", "loss_scale", "skipped",
      "model", "global_batch", "sequence", "plan", "data",       "options"};
  const JsonMembers members(node, kNames);
  RunState run;
  run.step = members.integer("step", 0, kMost);
  run.samples = members.integer("samples", 0, kMost);
  run.updates = members.integer("updates", 0, kMost);
  const JsonNode seed = members.need("seed");
  const std::string digits = seed.text();
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), run.seed);
  if (error != std::errc() || end != digits.data() + digits.size())
    seed.mustBe("a whole number below 2^64, as text");
  if (const std::optional<JsonNode> scale = members.find("loss_scale")) {
    constexpr std::array<std::string_view, 3> kScale = {"scale", "clean",
                                                        "tolerance"};
    const JsonMembers parts(*scale, kScale);
    constexpr std::int64_t kInt = std::numeric_limits<int>::max();
    run.scaler = {parts.need("scale").number(),
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
  const JsonNode options = members.need("options");
  if (!options.value().is_object())
    options.mustBe("an object");
  for (const auto &[name, value] : options.value().items())
    run.options[name] = JsonNode(value, options, name).text();
  return run;
}

// Returns an error if the text does not have the checksum that it states, else
// "".
std::string damageOf(const std::string &text, const std::string &checksum) {
  std::string blank = text;
  if (const std::size_t at = blank.find('"' + checksum + '"');
      at != std::string::npos && !checksum.empty())
    blank.erase(at + 1, checksum.size());
  const std::string is = textOf(digestOf(blank));
  return is == checksum ? ""
                        : "says " + checksum + ", but the text has " + is +
                              ": it has been damaged";
}

// Checks format, version and checksum, which all versions have.
void checkVersion(const std::string &file, const JsonNode &root,
                  const std::string &text) {
  if (!root.value().is_object())
    root.mustBe("an object");
  std::vector<std::string> names;
  for (const auto &[name, value] : root.value().items())
    names.push_back(name);
  const std::vector<std::string_view> any(names.begin(), names.end());
  const JsonMembers members(root, any);
  const JsonNode format = members.need("format");
  if (format.text() != kFormat)
    format.mustBe(std::string("\"") + kFormat + '"');
  const std::int64_t version = members.integer("version", 1, kMost);
  const JsonNode checksum = members.need("checksum");
  const std::string damage = damageOf(text, checksum.text());
  if (version != kCheckpointVersion) {
    const std::string what = "is " + std::to_string(version) +
                             ", but this mtrun reads version " +
                             std::to_string(kCheckpointVersion);
    if (damage.empty())
      throw ForeignVersion(file + ": /version: " + what);
    members.need("version").fail(what + "; and the text does not have the "
                                        "checksum that it says: it has been "
                                        "damaged");
  }
  if (!damage.empty())
    checksum.fail(damage);
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
  json["checksum"] = textOf(digestOf(dumped(json)));
  return dumped(json);
}

Manifest parseManifest(const std::string &file, const std::string &text) {
  // A valid manifest stays far below these limits.
  constexpr base::JsonLimits kLimits = {.depth = 32, .members = 256};
  try {
    const base::Json json = base::parseJson(text, kLimits);
    const JsonNode root(json);
    checkVersion(file, root, text);
    constexpr std::array<std::string_view, 6> kNames = {
        "format", "version", "checksum", "run", "files", "tensors"};
    const JsonMembers members(root, kNames);
    Manifest manifest;
    manifest.run = readRun(members.need("run"));
    manifest.files = members.need("files").list([](const JsonNode &node) {
      constexpr std::array<std::string_view, 3> kFile = {"name", "bytes",
                                                         "header"};
      const JsonMembers parts(node, kFile);
      return ManifestFile{parts.need("name").text(),
                          parts.integer("bytes", 0, kMost),
                          parts.need("header").text()};
    });
    manifest.tensors = members.need("tensors").list([](const JsonNode &node) {
      constexpr std::array<std::string_view, 3> kTensor = {"name", "file",
                                                           "checksum"};
      const JsonMembers parts(node, kTensor);
      return ManifestTensor{parts.need("name").text(),
                            parts.need("file").text(),
                            parts.need("checksum").text()};
    });
    return manifest;
  } catch (const base::JsonError &error) {
    throw CheckpointError(file + ": " + error.what());
  }
}

} // namespace mtplan::runtime
