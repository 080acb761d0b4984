//===- software_fit_json.cpp - The software file of a fit -----------------===//

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/machine/software_json.h"
#include "tools/runs/software_fit.h"

namespace mtplan::tools {

using json = nlohmann::ordered_json;

namespace {

/// Copies the values of a fitted file into the base file.
class Merge {
public:
  Merge(const SoftwareFit &theFit, std::string theOrigin)
      : fit(theFit), origin(std::move(theOrigin)) {}

  // Copies the values that differ from the base. A quantity is an object with
  // a value and its source.
  void into(json &base, const json &fitted, const std::string &pointer) {
    for (const auto &[key, member] : fitted.items()) {
      const std::string at = pointer + '/' + key;
      if (member.is_array())
        for (std::size_t i = 0; i < member.size(); ++i)
          into(base[key][i], member[i], at);
      if (!member.is_object())
        continue;
      if (!member.contains("value")) {
        if (!base.contains(key))
          base[key] = json::object();
        into(base[key], member, at);
      } else if (!base.contains(key) || base[key]["value"] != member["value"]) {
        base[key] = {{"value", rounded(member["value"])},
                     {"source", sourceOf(at)}};
      }
    }
  }

private:
  static double rounded(const json &value) {
    return std::stod(fmt::format("{:.4g}", value.get<double>()));
  }

  std::string sourceOf(const std::string &pointer) const {
    const std::vector<SoftwareFigure> &figures = softwareFigures();
    for (std::size_t f = 0; f < figures.size(); ++f)
      if (figures[f].changes(pointer))
        return fmt::format("{}, standard error {:.0f} %", origin,
                           100 * fit.figures[f].deviation);
    return origin;
  }

  const SoftwareFit &fit;
  std::string origin;
};

} // namespace

std::string fittedSoftwareText(const std::string &baseText,
                               const SoftwareFit &fit, const std::string &name,
                               const std::string &origin) {
  json file = json::parse(baseText);
  Merge(fit, origin)
      .into(file, json::parse(planner::formatSoftware(fit.software, origin)),
            "");
  file["name"] = name;
  return file.dump(2) + '\n';
}

} // namespace mtplan::tools
