//===- prediction_json.cpp - The predicted step, as a file ----------------===//

#include <cmath>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/exchange/prediction.h"

namespace mtplan::tools {

using nlohmann::json;

namespace {

constexpr int kPredictionVersion = 1;

// The readers here throw std::runtime_error if the JSON does not have the form
// that textOf() writes.
double numberOf(const json &value) {
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    throw std::runtime_error("expected a number, got " + value.dump());
  return value.get<double>();
}

int indexOf(const json &value) {
  const double number = numberOf(value);
  if (!value.is_number_integer() || number < -1 || number > 1e8)
    throw std::runtime_error("an index is wanted, not " + value.dump());
  return value.get<int>();
}

std::string wordOf(const json &value) {
  if (!value.is_string())
    throw std::runtime_error("a text is wanted, not " + value.dump());
  return value.get<std::string>();
}

const json &listOf(const json &all, const char *name, std::size_t width) {
  const auto found = all.find(name);
  if (found == all.end() || !found->is_array())
    throw std::runtime_error(fmt::format("no list \"{}\"", name));
  for (const json &row : *found)
    if (!row.is_array() || row.size() != width)
      throw std::runtime_error(
          fmt::format("a row of \"{}\" is not a list of {}", name, width));
  return *found;
}

} // namespace

std::filesystem::path predictionFileOf(const std::filesystem::path &planned) {
  std::error_code none; // an inaccessible path counts as a file
  return (std::filesystem::is_directory(planned, none)
              ? planned
              : planned.parent_path()) /
         kPredictionFile;
}

std::string textOf(const Prediction &prediction) {
  std::string text =
      fmt::format("{{\"version\": {},\n\"step\": {}", kPredictionVersion,
                  json(prediction.step).dump());
  const auto list = [&](const char *name, const auto &rows, auto &&rowOf) {
    text += fmt::format(",\n\"{}\": [", name);
    for (std::size_t i = 0; i < rows.size(); ++i)
      text += (i == 0 ? "\n" : ",\n") + rowOf(rows[i]).dump();
    text += "]";
  };
  list("classes", prediction.classes, [](const auto &row) {
    return json::array({row.first, row.second});
  });
  list("streams", prediction.streams, [](const PredictedStream &row) {
    return json::array({row.stage, row.stream, row.name});
  });
  list("tasks", prediction.tasks, [](const PredictedTask &row) {
    return json::array({row.stage, row.stream, row.start, row.duration,
                        row.what, row.microBatch, row.segment});
  });
  return text + "}\n";
}

Prediction parsePrediction(const std::string &text) {
  json all = json::parse(text, nullptr, false);
  if (!all.is_object())
    throw std::runtime_error("no JSON object");
  const json version = all.value("version", json());
  if (version != kPredictionVersion)
    throw std::runtime_error(fmt::format("version {}, {} is known",
                                         version.dump(), kPredictionVersion));
  Prediction prediction;
  prediction.step = numberOf(all.value("step", json()));
  for (const json &row : listOf(all, "classes", 2))
    prediction.classes.emplace_back(wordOf(row[0]), numberOf(row[1]));
  for (const json &row : listOf(all, "streams", 3))
    prediction.streams.push_back(
        {indexOf(row[0]), indexOf(row[1]), wordOf(row[2])});
  for (const json &row : listOf(all, "tasks", 7))
    prediction.tasks.push_back(
        {indexOf(row[0]), indexOf(row[1]), numberOf(row[2]), numberOf(row[3]),
         wordOf(row[4]), indexOf(row[5]), indexOf(row[6])});
  return prediction;
}

} // namespace mtplan::tools
