//===- software_json.cpp - Software files, both directions ----------------===//

#include "planner/machine/software_json.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "base/json_text.h"
#include "planner/machine/preset_files_json.h"

namespace mtplan::planner {

using json = base::Json;
using ordered = nlohmann::ordered_json;

namespace {

constexpr double kMicro = 1e-6, kMega = 1e6, kGB = 1e9;
constexpr base::NumberRange kBytes{0, 1e4, false}; // per element or parameter
constexpr base::NumberRange kKernels{0, 1e4, false};
constexpr base::NumberRange kShare{0, 1, true};
constexpr base::NumberRange kPart{0, 1, false};
constexpr base::NumberRange kDelay{0, 1e6, true};     // us
constexpr base::NumberRange kBucket{0, 1e6, false};   // MB
constexpr base::NumberRange kBandwidth{0, 1e6, true}; // 10^9 bytes/s
constexpr base::NumberRange kSlowdown{0, 100, true};
constexpr base::NumberRange kReached{0, 10, true};
constexpr base::NumberRange kAccuracy{0, 100, true};
constexpr base::NumberRange kReads{0, 16, false};
constexpr base::NumberRange kTransfers{1, 16, false};
constexpr base::NumberRange kHead{1, 65'536, false};
constexpr std::int64_t kMostKeys = 1'000'000'000;
/// The order is that of SelectiveRule.
const std::vector<std::string> kSelectiveRules = {"attention",
                                                  "every_second_product"};

// Each visit() lists the members of one object. `file` is an ObjectReader,
// which reads the members, or an ObjectWriter, which writes them.
template <typename File> void visit(File &file, Pass &pass) {
  file.number("forward_bytes", kBytes, pass.forwardBytes);
  file.number("backward_bytes", kBytes, pass.backwardBytes);
  file.number("forward_kernels", kKernels, pass.forwardKernels);
  file.number("backward_kernels", kKernels, pass.backwardKernels);
  file.rare("kept_bytes", kBytes, pass.kept, 0.0);
}

template <typename File> void visit(File &file, Passes &passes) {
  file.object("layer_norm", passes.layerNorm);
  file.object("rms_norm", passes.rmsNorm);
  file.object("residual", passes.residual);
  file.object("activation", passes.activation);
  file.object("gated_activation", passes.gated);
  file.object("rope", passes.rope);
  file.object("dropout", passes.dropout);
  file.object("bias_gradient", passes.biasGradient);
}

template <typename File> void visit(File &file, ScoreTraffic &scores) {
  file.number("fused_forward_bytes", kBytes, scores.fusedForward);
  file.number("fused_backward_bytes", kBytes, scores.fusedBackward);
  file.number("unfused_forward_bytes", kBytes, scores.unfusedForward);
  file.number("unfused_backward_bytes", kBytes, scores.unfusedBackward);
  file.number("dropout_bytes", kBytes, scores.dropout);
  file.number("saved_bytes", kBytes, scores.saved);
  file.count("fused_multiple", scores.fusedMultiple);
  file.count("fused_longest", scores.fusedLongest);
}

template <typename File> void visit(File &file, AttentionKernel &attention) {
  file.kernel(attention);
  file.number("copy_forward_bytes", kBytes, attention.copyForward);
  file.number("copy_backward_bytes", kBytes, attention.copyBackward);
  file.rare("copy_kept_bytes", kBytes, attention.copyKept, 0.0);
  file.number("forward_kernels", kKernels, attention.forwardKernels);
  file.number("backward_kernels", kKernels, attention.backwardKernels);
}

template <typename File> void visit(File &file, KernelFusions &fusions) {
  file.texts("devices", fusions.devices);
  for (const Precision precision :
       {Precision::fp32, Precision::fp16, Precision::bf16})
    file.texts(nameOf(precision), fusions.kernels[storedAs(precision)]);
  file.rareFlag("messages", fusions.messages);
}

template <typename File> void visit(File &file, ParameterTraffic &parameters) {
  file.number("gradient_bytes", kBytes, parameters.gradient);
  file.number("optimizer_bytes", kBytes, parameters.optimizer);
  file.number("sweep_bytes", kBytes, parameters.sweep);
  file.rare("norm_reads", kReads, parameters.normReads, 0.0);
  file.number("accumulation_bytes", kBytes, parameters.accumulation);
  file.number("shard_copy_bytes", kBytes, parameters.shardCopies);
  file.number("bucket_MB", kBucket, parameters.bucket.value, kMega);
  file.rare("gathered_fp8_share", kShare, parameters.gatheredFp8, 1.0);
  file.rare("flat_ring_GBps", kBandwidth, parameters.flatRing.value, 0.0, kGB);
  file.rare("per_sharer_us", kDelay, parameters.perSharer.value, 0.0, kMicro);
}

template <typename File> void visit(File &file, CastTraffic &casts) {
  file.number("input_bytes", kBytes, casts.input);
  file.number("normalised_input_bytes", kBytes, casts.normalised);
  file.number("weight_bytes", kBytes, casts.weight);
  file.number("gradient_bytes", kBytes, casts.gradient);
}

template <typename File> void visit(File &file, TensorTraffic &tensor) {
  file.number("copies", kBytes, tensor.copies);
  file.rare("slowdown", kSlowdown, tensor.slowdown, 1.0);
  file.rare("slowdown_across_nodes", kSlowdown, tensor.slowdownAcrossNodes,
            1.0);
  file.number("hidden_forward", kPart, tensor.hiddenForward);
  file.number("hidden_backward", kPart, tensor.hiddenBackward);
  file.rare("fp8_share", kShare, tensor.fp8, 1.0);
}

template <typename File> void visit(File &file, OverlapRules &overlap) {
  file.flag("point_to_point", overlap.pointToPoint);
  file.flag("gather", overlap.gather);
  file.flag("reduce", overlap.reduce);
  file.number("tax", kPart, overlap.tax);
  file.number("tax_one_rank_per_node", kPart, overlap.taxOneRankPerNode);
}

template <typename File> void visit(File &file, HostLaunch &host) {
  auto delay = [&](const char *key, Seconds &time) {
    file.rare(key, kDelay, time.value, 0.0, kMicro);
  };
  delay("kernel_us", host.kernel);
  delay("collective_us", host.collective);
  delay("per_rank_across_nodes_us", host.perRankAcrossNodes);
  delay("per_rank_pipelined_us", host.perRankPipelined);
  delay("per_rank_pipelined_across_nodes_us", host.perRankPipelinedAcrossNodes);
  delay("message_us", host.message);
  delay("step_us", host.step);
  delay("sharded_step_us", host.shardedStep);
}

template <typename File> void visit(File &file, FrameworkMemory &memory) {
  file.rareFlag("saves_as_produced", memory.savesAsProduced);
  file.rare("cross_entropy_bytes", kBytes, memory.crossEntropy, 0.0);
  file.rare("bucket_bytes", kBytes, memory.buckets, 0.0);
  file.rare("cached_share", kPart, memory.cached, 0.0);
}

template <typename File> void visit(File &file, ReachedRates &reached) {
  file.rare("products", kReached, reached.products, 1.0);
  file.rare("network", kReached, reached.network, 1.0);
}

template <typename File> void visit(File &file, Accuracy &accuracy) {
  file.text("device", accuracy.device);
  file.count("runs", accuracy.runs);
  file.count("most_devices", accuracy.mostDevices);
  file.number("low", kAccuracy, accuracy.low);
  file.number("high", kAccuracy, accuracy.high);
}

template <typename File> void visit(File &file, Software &software) {
  file.text("name", software.name);
  file.object("attention", software.attention);
  file.object("passes", software.passes);
  file.number("cross_entropy_bytes", kBytes, software.crossEntropy);
  file.flag("joins_products", software.batchesProducts);
  file.rareObject("joins", software.fusions);
  file.rareObject("fp8_casts", software.casts);
  file.object("parameters", software.parameters);
  file.flag("stops_recompute_early", software.stopsRecomputeEarly);
  file.selective(software.selective);
  file.object("tensor_collectives", software.tensor);
  file.object("overlap", software.overlap);
  file.number("pipeline_transfers", kTransfers, software.transfers);
  file.flag("scatters_sends", software.scattersSends);
  file.delay("blocking_launch_us", software.blockingLaunch);
  file.rareObject("host", software.host);
  file.rareObject("memory", software.memory);
  file.rareObject("reached_rates", software.reached);
  file.accuracy(software.accuracy);
}

class ObjectReader {
public:
  ObjectReader(const json &object, const std::string &pointer,
               base::JsonErrors &e)
      : fields(object, pointer, e), errors(e) {}

  template <typename Part> void read(Part &part) {
    visit(*this, part);
    fields.plain.rejectOthers();
  }

  void text(const char *key, std::string &value) {
    value = fields.plain.text(key);
  }
  void number(const char *key, const base::NumberRange &range, double &value,
              double unit = 1.0) {
    value = unit * fields.number(key, range);
  }
  /// Reads an optional number, which is `usual` if it is missing.
  void rare(const char *key, const base::NumberRange &range, double &value,
            double usual, double unit = 1.0) {
    std::optional<double> given = fields.optional(key, range);
    value = given ? unit * *given : usual;
  }
  void count(const char *key, int &value) {
    value = static_cast<int>(fields.count(key, kMostKeys));
  }
  void flag(const char *key, bool &value) { value = fields.flag(key); }
  /// Reads an optional flag, which is false if it is missing.
  void rareFlag(const char *key, bool &value) {
    value = fields.plain.find(key) && fields.flag(key);
  }
  void texts(const char *key, std::vector<std::string> &value) {
    value = fields.texts(key);
  }
  void delay(const char *key, std::optional<Seconds> &value) {
    if (std::optional<double> us = fields.optional(key, kDelay))
      value = Seconds{kMicro * *us};
  }
  template <typename Part> void object(const char *key, Part &part) {
    if (const json *member = fields.plain.need(key))
      ObjectReader(*member, fields.plain.pointerTo(key), errors).read(part);
  }

  void selective(SelectiveRule &rule) {
    rule = SelectiveRule(
        fields.plain.oneOf("selective_recompute", kSelectiveRules));
  }

  template <typename Part> void rareObject(const char *key, Part &part) {
    if (fields.plain.find(key))
      object(key, part);
  }

  void accuracy(std::vector<Accuracy> &list) {
    for (auto &[entry, pointer] : fields.plain.elements("accuracy", false))
      ObjectReader(*entry, pointer, errors).read(list.emplace_back());
    for (auto one = list.begin(); one != list.end(); ++one) {
      if (one->low > one->high)
        fields.plain.fail("accuracy", "low must be at most high");
      if (std::any_of(list.begin(), one, [&](const Accuracy &earlier) {
            return earlier.device == one->device &&
                   earlier.mostDevices >= one->mostDevices;
          }))
        fields.plain.fail("accuracy", "entries of one device must have "
                                      "ascending most_devices");
    }
  }

  void kernel(AttentionKernel &attention) {
    attention.keepsScores =
        fields.plain.oneOf("kernel", {"fused", "scores"}) == 1;
    if (attention.keepsScores) {
      object("scores", attention.scores);
      return;
    }
    fields.plain.need("head_sizes");
    std::vector<int> sizes;
    for (double size : fields.numbers("head_sizes", kHead))
      sizes.push_back(static_cast<int>(size));
    if (std::ranges::adjacent_find(sizes, std::greater_equal<>()) !=
        sizes.end())
      fields.plain.fail("head_sizes", "must be in strictly ascending order");
    if (!sizes.empty())
      attention.headSizes = std::move(sizes);
    for (auto &[entry, pointer] : fields.plain.elements("rates", true)) {
      ObjectReader reader(*entry, pointer, errors);
      AttentionRate rate;
      reader.text("device", rate.device);
      reader.number("forward", kShare, rate.forward);
      reader.number("backward", kShare, rate.backward);
      reader.fields.plain.rejectOthers();
      attention.rates.push_back(rate);
    }
  }

private:
  SourcedFields fields;
  base::JsonErrors &errors;
};

class ObjectWriter {
public:
  explicit ObjectWriter(const std::string &from) : source(from) {}

  template <typename Part> ordered write(Part part) {
    visit(*this, part);
    return std::move(file);
  }

  void text(const char *key, const std::string &value) { file[key] = value; }
  void number(const char *key, const base::NumberRange &, double value,
              double unit = 1.0) {
    file[key] = quantity(value / unit);
  }
  void rare(const char *key, const base::NumberRange &, double value,
            double usual, double unit = 1.0) {
    if (value != usual)
      file[key] = quantity(value / unit);
  }
  void count(const char *key, int value) { file[key] = quantity(value); }
  void flag(const char *key, bool value) { file[key] = quantity(value); }
  void rareFlag(const char *key, bool value) {
    if (value)
      flag(key, value);
  }
  void texts(const char *key, const std::vector<std::string> &value) {
    file[key] = quantity(value);
  }
  void delay(const char *key, const std::optional<Seconds> &value) {
    if (value)
      file[key] = quantity(value->value / kMicro);
  }
  template <typename Part> void object(const char *key, const Part &part) {
    file[key] = ObjectWriter(source).write(part);
  }

  void selective(SelectiveRule rule) {
    file["selective_recompute"] = kSelectiveRules[std::size_t(rule)];
  }

  template <typename Part> void rareObject(const char *key, const Part &part) {
    if (part != Part{})
      object(key, part);
  }

  void accuracy(const std::vector<Accuracy> &list) {
    for (const Accuracy &one : list)
      file["accuracy"].push_back(ObjectWriter(source).write(one));
  }

  void kernel(const AttentionKernel &attention) {
    file["kernel"] = attention.keepsScores ? "scores" : "fused";
    if (attention.keepsScores) {
      object("scores", attention.scores);
      return;
    }
    file["head_sizes"] = quantity(attention.headSizes);
    file["rates"] = ordered::array();
    for (const AttentionRate &rate : attention.rates)
      file["rates"].push_back({{"device", rate.device},
                               {"forward", quantity(rate.forward)},
                               {"backward", quantity(rate.backward)}});
  }

private:
  template <typename Value> ordered quantity(const Value &value) const {
    return ordered{{"value", value}, {"source", source}};
  }

  std::string source;
  ordered file;
};

} // namespace

Software parseSoftware(const std::string &text) {
  Software software;
  base::JsonErrors errors;
  try {
    json file = base::parseJson(text);
    ObjectReader(file, "", errors).read(software);
  } catch (const base::JsonError &error) {
    throw SoftwareError(error.what());
  }
  if (!errors.empty())
    throw SoftwareError(base::joinLines(errors));
  return software;
}

std::string formatSoftware(const Software &software,
                           const std::string &source) {
  return ObjectWriter(source).write(software).dump(2) + '\n';
}

std::vector<std::string> softwareNames() { return namesOf(softwarePresets()); }

std::string softwareText(const std::string &nameOrPath) {
  std::optional<std::string> text = textOf(softwarePresets(), nameOrPath);
  if (!text)
    throw SoftwareError(notFound("software", softwarePresets(), nameOrPath));
  return *text;
}

Software loadSoftware(const std::string &nameOrPath) {
  return parseSoftware(softwareText(nameOrPath));
}

const Software &defaultSoftware() {
  static const Software software = loadSoftware("mtplan");
  return software;
}

} // namespace mtplan::planner
