//===- measurements_json.cpp - Measured work and its time -----------------===//

#include "planner/fit/measurements_json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>

#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "base/json_text.h"
#include "base/nearest_word.h"
#include "planner/cost/kernel_cost.h"
#include "planner/fit/fit_machine.h"
#include "planner/machine/machine_json.h"

namespace mtplan::planner {

using json = base::Json;

namespace {

std::string integer(double number) {
  return std::to_string(static_cast<std::int64_t>(number));
}

StepKind stepOf(MeasuredKind kind) {
  return kind == MeasuredKind::allGather       ? StepKind::allGather
         : kind == MeasuredKind::reduceScatter ? StepKind::reduceScatter
         : kind == MeasuredKind::allToAll      ? StepKind::allToAll
                                               : StepKind::allReduce;
}

constexpr base::NumberRange kTime{0, 1e12, true}; // us
constexpr std::int64_t kMostBytes = 1'000'000'000'000'000;
constexpr std::int64_t kLongestSide = 10'000'000;
constexpr std::int64_t kMostTimes = 1'000'000'000;
constexpr std::int64_t kMostRanks = 1'000'000;

bool isFit(const json &value) { return value.is_string() && value == "fit"; }

/// Finds every "fit" in the machine file and replaces it by a legal number.
class FigureFinder {
public:
  FigureFinder(std::vector<Figure> &f, base::JsonErrors &e)
      : figures(f), errors(e) {}

  void find(json &machine) {
    if (!machine.is_object())
      return;
    refuseOthers(machine, "", {});
    if (auto device = machine.find("device");
        device != machine.end() && device->is_object()) {
      take(*device, "/device", kFittedDeviceKeys, FigureKind::launch, 0);
      readTiles(*device);
      refuseOthers(*device, "/device", kFittedDeviceKeys);
    }
    if (auto levels = machine.find("levels");
        levels != machine.end() && levels->is_array())
      for (std::size_t i = 0; i < levels->size(); ++i)
        readLevel((*levels)[i], "/levels/" + std::to_string(i), i);
    if (auto link = machine.find("link"); link != machine.end())
      readLevel(*link, "/link", 0);
  }

private:
  using Keys = std::span<const char *const>;

  void readLevel(json &level, const std::string &pointer, std::size_t index) {
    if (!level.is_object())
      return;
    take(level, pointer, kFittedLevelKeys, FigureKind::levelBandwidth, index);
    refuseOthers(level, pointer, kFittedLevelKeys);
  }

  // Records the members of `object` that are "fit". `keys` are the names of the
  // members, in the order of FigureKind from `first` on.
  void take(json &object, const std::string &pointer, Keys keys,
            FigureKind first, std::size_t index) {
    for (std::size_t k = 0; k < keys.size(); ++k) {
      auto member = object.find(keys[k]);
      if (member == object.end() || !isFit(*member))
        continue;
      figures.push_back(
          {static_cast<FigureKind>(static_cast<std::size_t>(first) + k), index,
           pointer + '/' + keys[k]});
      *member = {{"value", 0.5}, {"source", "to be fitted"}};
    }
  }

  // Records the tile rates that are "fit", as in [128, 128, "fit"].
  void readTiles(json &device) {
    auto tiles = device.find("tiles");
    if (tiles == device.end() || !tiles->is_object() ||
        !tiles->contains("value") || !(*tiles)["value"].is_array())
      return;
    json &rows = (*tiles)["value"];
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i].is_array() && rows[i].size() == 3 && isFit(rows[i][2])) {
        figures.push_back({FigureKind::tileRate, i,
                           "/device/tiles/value/" + std::to_string(i) + "/2"});
        rows[i][2] = 0.5;
      }
  }

  void refuseOthers(const json &object, const std::string &pointer, Keys keys) {
    for (const auto &[key, value] : object.items()) {
      bool isName = key == "name" || key == "architecture" || key == "like";
      if (!isFit(value) || isName)
        continue;
      std::string known = base::listed(
          std::vector<std::string>(keys.begin(), keys.end()), ", ");
      errors.push_back(
          "/machine" + base::childPointer(pointer, key) + ": cannot be fitted" +
          (known.empty() ? "" : "; keys that can be fitted: " + known));
    }
  }

  std::vector<Figure> &figures;
  base::JsonErrors &errors;
};

class RowReader {
public:
  RowReader(base::JsonFields &f, base::JsonErrors &e) : fields(f), errors(e) {}

  std::vector<Measurement> read() {
    each("launches", [](base::JsonFields &row, Measurement &made) {
      made.kind = MeasuredKind::launches;
      made.count = integer(row, "count", kMostTimes);
    });
    each("passes", [](base::JsonFields &row, Measurement &made) {
      made.kind = row.oneOf("kind", {"stream", "elementwise"}) == 0
                      ? MeasuredKind::stream
                      : MeasuredKind::elementwise;
      made.bytes = integer(row, "bytes", kMostBytes);
    });
    each("products", [](base::JsonFields &row, Measurement &made) {
      made.kind = MeasuredKind::product;
      made.m = integer(row, "m", kLongestSide);
      made.n = integer(row, "n", kLongestSide);
      made.k = integer(row, "k", kLongestSide);
      made.batch =
          static_cast<double>(row.integer("batch", 1, kLongestSide, 1));
      if (row.find("precision"))
        made.precision = static_cast<Precision>(
            row.oneOf("precision", {"fp32", "fp16", "bf16"}));
    });
    each("collectives", [](base::JsonFields &row, Measurement &made) {
      constexpr MeasuredKind kKinds[] = {
          MeasuredKind::allReduce, MeasuredKind::allGather,
          MeasuredKind::reduceScatter, MeasuredKind::allToAll,
          MeasuredKind::send};
      std::vector<std::string> names;
      for (MeasuredKind kind : kKinds)
        names.emplace_back(nameOf(kind));
      made.kind = kKinds[row.oneOf("kind", names)];
      made.bytes = integer(row, "bytes", kMostBytes);
      bool isSend = made.kind == MeasuredKind::send;
      made.ranks =
          isSend ? 2 : static_cast<int>(row.integer("ranks", 2, kMostRanks));
      made.stride = static_cast<int>(
          row.integer("stride", 1, kMostRanks,
                      isSend ? std::nullopt : std::optional<std::int64_t>(1)));
    });
    return std::move(rows);
  }

private:
  static double integer(base::JsonFields &row, const char *key,
                        std::int64_t most) {
    return static_cast<double>(row.integer(key, 1, most));
  }

  template <typename Read> void each(const char *key, Read readRow) {
    for (const auto &[value, pointer] : fields.elements(key, false)) {
      base::JsonFields row(*value, pointer, errors);
      Measurement made;
      made.pointer = pointer;
      readRow(row, made);
      made.seconds = row.number("us", kTime) * 1e-6;
      row.rejectOthers();
      rows.push_back(std::move(made));
    }
  }

  base::JsonFields &fields;
  base::JsonErrors &errors;
  std::vector<Measurement> rows;
};

void addLines(const std::string &text, const std::string &prefix,
              base::JsonErrors &errors) {
  std::size_t start = 0;
  while (start < text.size()) {
    std::size_t end = std::min(text.find('\n', start), text.size());
    errors.push_back(prefix + text.substr(start, end - start));
    start = end + 1;
  }
}

Measurements read(const json &file, base::JsonErrors &errors) {
  Measurements measured;
  base::JsonFields fields(file, "", errors);
  if (fields.text("source").find_first_not_of(" \t\r\n") == std::string::npos &&
      fields.find("source"))
    fields.fail("source", "must say what was measured and on which machine");
  if (const json *given = fields.need("machine")) {
    json machine = *given;
    FigureFinder(measured.figures, errors).find(machine);
    if (measured.figures.empty())
      fields.fail("machine", "has nothing to be fitted; write \"fit\" in place "
                             "of a figure, such as \"gemm_efficiency\": "
                             "\"fit\"");
    for (Figure &figure : measured.figures)
      figure.pointer = "/machine" + figure.pointer;
    try {
      measured.machine = parseMachine(machine.dump());
    } catch (const MachineError &error) {
      addLines(error.what(), "/machine", errors);
    }
  }
  measured.rows = RowReader(fields, errors).read();
  fields.rejectOthers();
  return measured;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f %%", 100 * share);
  return text;
}

// Returns the source of the fitted figures of the device or of the network,
// such as "fit of 60 measurements, 1.9 % rms: ...".
std::string sourceOf(const MachineFit &fit, bool network,
                     const std::string &source) {
  int rows = 0;
  double squares = 0.0;
  for (const FitResidual &residual : fit.residuals)
    if (isCollective(residual.kind) == network) {
      rows += residual.rows;
      squares += residual.rows * residual.rms * residual.rms;
    }
  return "fit of " + std::to_string(rows) + " measurements, " +
         percent(std::sqrt(squares / std::max(rows, 1))) + " rms: " + source;
}

} // namespace

const char *nameOf(MeasuredKind kind) {
  constexpr const char *kNames[] = {
      "launches",   "stream",         "elementwise", "product", "all_reduce",
      "all_gather", "reduce_scatter", "all_to_all",  "send"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool isCollective(MeasuredKind kind) { return kind >= MeasuredKind::allReduce; }

double Measurement::predicted(const Machine &machine) const {
  const Device &device = machine.device;
  switch (kind) {
  case MeasuredKind::launches:
    return count * device.launch.value;
  case MeasuredKind::stream:
    return (Bytes{bytes} / device.streamRate() + device.launch).value;
  case MeasuredKind::elementwise:
    return (Bytes{bytes} / device.passRate() + device.launch).value;
  case MeasuredKind::product: {
    Precision in = precision.value_or(machine.defaultPrecision);
    Seconds arithmetic = productTime({m, n, k, batch}, device, in,
                                     batch > 1 ? device.products.batched : 1.0);
    Bytes moved{batch * (m * k + k * n + m * n) * bytesOf(in)};
    return (std::max(arithmetic, moved / device.streamRate()) + device.launch)
        .value;
  }
  case MeasuredKind::send:
    return pointToPointTime(Bytes{bytes}, stride, machine).value;
  case MeasuredKind::allReduce:
  case MeasuredKind::allGather:
  case MeasuredKind::reduceScatter:
  case MeasuredKind::allToAll:
    break;
  }
  // An all-gather's payload is the shard of one rank.
  double payload = kind == MeasuredKind::allGather ? bytes / ranks : bytes;
  return collectiveTime(stepOf(kind), Bytes{payload}, {ranks, stride, 0},
                        machine)
      .value;
}

std::string Measurement::describe() const {
  switch (kind) {
  case MeasuredKind::launches:
    return integer(count) + " kernels";
  case MeasuredKind::stream:
  case MeasuredKind::elementwise:
    return std::string(nameOf(kind)) + " pass of " + integer(bytes) + " B";
  case MeasuredKind::product:
    return (batch > 1 ? integer(batch) + " products of " : "product of ") +
           integer(m) + " x " + integer(k) + " by " + integer(k) + " x " +
           integer(n) +
           (precision ? std::string(" in ") + nameOf(*precision) : "");
  case MeasuredKind::send:
    return "send of " + integer(bytes) + " B over " + std::to_string(stride) +
           " ranks";
  default:
    return std::string(nameOf(kind)) + " of " + integer(bytes) + " B over " +
           std::to_string(ranks) + " ranks" +
           (stride > 1 ? ", every " + std::to_string(stride) + "th" : "");
  }
}

Measurements parseMeasurements(const std::string &text) {
  base::JsonErrors errors;
  Measurements measured;
  try {
    measured = read(base::parseJson(text), errors);
  } catch (const base::JsonError &error) {
    throw MeasurementsError(error.what());
  }
  if (!errors.empty())
    throw MeasurementsError(base::joinLines(errors));
  return measured;
}

std::string fittedMachineText(const std::string &text, const MachineFit &fit) {
  using ordered = nlohmann::ordered_json;
  ordered file = ordered::parse(text);
  auto source = file["source"].get<std::string>();
  for (const FittedFigure &found : fit.figures) {
    ordered &place = file[ordered::json_pointer(found.figure.pointer)];
    if (found.figure.kind == FigureKind::tileRate) {
      place = found.value;
      ordered &from = file["machine"]["device"]["tiles"]["source"];
      std::string note = "; rates: " + sourceOf(fit, false, source);
      auto before = from.get<std::string>();
      if (!before.ends_with(note))
        from = before + note;
    } else {
      place = {
          {"value", found.value},
          {"source", sourceOf(fit, isOfNetwork(found.figure.kind), source)}};
    }
  }
  return file["machine"].dump(2) + '\n';
}

} // namespace mtplan::planner
