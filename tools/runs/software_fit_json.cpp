//===- software_fit_json.cpp - The software file of a fit -----------------===//

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/machine/software_json.h"
#include "tools/runs/software_fit.h"

namespace mtplan::tools {

using json = nlohmann::ordered_json;

namespace {

/// Copies fitted values into the base file.
class Merge {
public:
  Merge(const SoftwareFit &theFit, std::string theOrigin)
      : fit(theFit), origin(std::move(theOrigin)) {}

  // Copies the values that differ between `before` and `fitted`, which have
  // the same members. A quantity is an object with a value and its source.
  void into(json &file, const json &before, const json &fitted,
            const std::string &pointer) {
    for (const auto &[key, member] : fitted.items()) {
      const std::string at = pointer + '/' + key;
      const json old = before.value(key, json::object());
      if (member.is_array())
        for (std::size_t i = 0; i < member.size(); ++i)
          into(file[key][i], old[i], member[i], at);
      if (!member.is_object())
        continue;
      if (!member.contains("value"))
        into(file[key], old, member, at);
      else if (!old.contains("value") || old["value"] != member["value"])
        file[key] = {{"value", rounded(member["value"])},
                     {"source", sourceOf(at)}};
    }
  }

private:
  static double rounded(const json &value) {
    return std::stod(fmt::format("{:.4g}", value.get<double>()));
  }

  std::string sourceOf(const std::string &pointer) const {
    const std::vector<SoftwareFigure> &figures = softwareFigures(fit.quantity);
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
  const auto formatted = [&](const planner::Software &software) {
    return json::parse(planner::formatSoftware(software, origin));
  };
  Merge(fit, origin)
      .into(file, formatted(planner::parseSoftware(baseText)),
            formatted(fit.software), "");
  file.erase("accuracy"); // of the base, not of the fitted figures
  file["name"] = name;
  return file.dump(2) + '\n';
}

} // namespace mtplan::tools
