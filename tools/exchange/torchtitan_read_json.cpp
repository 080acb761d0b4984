//===- torchtitan_read_json.cpp - Reading torchtitan's TOML ---------------===//

#include <cmath>
#include <string_view>

#include <toml++/toml.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "tools/exchange/torchtitan.h"
#include "tools/exchange/trainer_config.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using json = base::Json;
using base::JsonFields;
using planner::Parallelism;
using planner::Precision;
using planner::Recompute;

namespace {

void failAt(const toml::source_region &where, const std::string &what,
            std::vector<std::string> &errors) {
  constexpr std::size_t kMostErrors = 50;
  if (errors.size() < kMostErrors)
    errors.push_back(fmt::format("line {}: {}", where.begin.line, what));
}

// Returns the first line with a dotted key of more than 32 parts, or 0. toml++
// does not limit the depth of keys, and frees tables recursively. Therefore a
// deep key could overflow the stack. Dots in strings also count. Separators
// reset the count, and adjacent dots count once.
std::size_t lineTooDeep(const std::string &text) {
  constexpr int kMostDots = 31;
  std::size_t line = 1;
  int dots = 0;
  char before = '\0';
  for (const char c : text) {
    if (c == '.' && before != '.' && ++dots > kMostDots)
      return line;
    if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos)
      dots = 0;
    line += c == '\n' ? 1 : 0;
    before = c;
  }
  return 0;
}

json jsonOf(const toml::node &node, std::vector<std::string> &errors) {
  if (const toml::table *table = node.as_table()) {
    json object = json::object();
    for (const auto &[key, value] : *table)
      object[std::string(key.str())] = jsonOf(value, errors);
    return object;
  }
  if (const toml::array *array = node.as_array()) {
    json list = json::array();
    for (const toml::node &element : *array)
      list.push_back(jsonOf(element, errors));
    return list;
  }
  if (const auto *text = node.as_string())
    return text->get();
  if (const auto *number = node.as_integer())
    return number->get();
  if (const auto *flag = node.as_boolean())
    return flag->get();
  if (const auto *number = node.as_floating_point();
      number && std::isfinite(number->get()))
    return number->get();
  failAt(node.source(),
         "expected a string, a number, true, false, an array or a table",
         errors);
  return nullptr;
}

// Parses TOML 1.0 to a JSON object with the tables as members. Dates, times,
// infinity and NaN are errors, because JSON cannot hold them. Every error
// starts with its line. After an error, the object is invalid.
json parseToml(const std::string &text, std::vector<std::string> &errors) {
  if (const std::size_t line = lineTooDeep(text)) {
    errors.push_back(
        fmt::format("line {}: a key has more than 32 parts", line));
    return json::object();
  }
  try {
    return jsonOf(toml::parse(text), errors);
  } catch (const toml::parse_error &error) {
    failAt(error.source(), std::string(error.description()), errors);
  }
  return json::object();
}

constexpr std::int64_t kMostRanks = 1 << 20;
constexpr std::int64_t kMostSize = (std::int64_t{1} << 31) - 1;

const TrainerNames &naming() {
  static const TrainerNames names = [] {
    TrainerNames n;
    n.assign = ": ";
    n.tp = "/parallelism/tensor_parallel_degree";
    n.pp = "/parallelism/pipeline_parallel_degree";
    n.cp = "/parallelism/context_parallel_degree";
    n.ep = "/parallelism/expert_parallel_degree";
    n.sequenceParallel = "sequence parallelism";
    n.virtualStages = "/parallelism/pipeline_parallel_layers_per_stage";
    n.microBatch = "/training/local_batch_size";
    n.globalBatch = "/training/global_batch_size";
    n.sequence = "/training/seq_len";
    n.layers = "layers";
    return n;
  }();
  return names;
}

class Reader {
public:
  Reader(const json &file, const Launch &given, TrainerConfig &read)
      : root(file, "", read.errors), launch(given), config(read),
        p(read.parallelism) {}

  void run() {
    static const json empty = json::object();
    auto section = [&](const char *key) {
      const json *value = root.find(key);
      return JsonFields(value ? *value : empty, root.pointerTo(key),
                        config.errors);
    };
    JsonFields parallelism = section("parallelism");
    JsonFields training = section("training");
    JsonFields checkpoint = section("activation_checkpoint");
    degrees(parallelism);
    config.model.sequence =
        training.integer("seq_len", 1, kMostSize, launch.sequence);
    config.model.layers = launch.layers;
    checkSplits(config, naming());
    sharding(parallelism);
    pipeline(parallelism);
    batches(parallelism, training);
    precision(training);
    recompute(checkpoint);
    for (JsonFields *fields : {&parallelism, &training, &checkpoint})
      fields->rejectOthers();
    noteIrrelevant(root,
                   {"job", "profiling", "metrics", "model", "optimizer",
                    "lr_scheduler", "checkpoint", "compile", "float8", "mx",
                    "comm", "memory_estimation", "fault_tolerance",
                    "experimental", "validation", "quantize", "debug"},
                   config);
    root.rejectOthers();
  }

private:
  void degrees(JsonFields &f) {
    auto ranks = [&](const char *key) {
      return static_cast<int>(f.integer(key, 1, kMostRanks, 1));
    };
    p.tp = ranks("tensor_parallel_degree");
    p.pp = ranks("pipeline_parallel_degree");
    p.cp = ranks("context_parallel_degree");
    p.ep = ranks("expert_parallel_degree");
    p.sequenceParallel = p.tp > 1;
    std::size_t before = config.errors.size();
    shareDevices(config, launch.gpus, naming());
    shared = config.errors.size() == before;
    noteIrrelevant(f,
                   {"disable_loss_parallel", "enable_async_tensor_parallel",
                    "context_parallel_rotate_method",
                    "enable_compiled_autograd", "expert_parallel_a2a_dtype",
                    "pipeline_parallel_schedule_csv"},
                   config);
    if (f.integer("expert_tensor_parallel_degree", 1, kMostRanks, p.tp) != p.tp)
      f.fail("expert_tensor_parallel_degree",
             fmt::format("differs from /parallelism/tensor_parallel_degree {}; "
                         "nearest: {}",
                         p.tp, p.tp));
  }

  void sharding(JsonFields &f) {
    std::int64_t replicate =
        f.integer("data_parallel_replicate_degree", 1, kMostRanks, 1);
    std::int64_t shard =
        f.integer("data_parallel_shard_degree", -1, kMostRanks, -1);
    std::size_t reshard = f.oneOf("fsdp_reshard_after_forward",
                                  {"default", "always", "never"}, 0);
    if (!shared)
      return;
    const char *key = "data_parallel_replicate_degree";
    if (shard < 1 && p.dp % replicate != 0)
      return f.fail(key, fmt::format("{} does not divide the {} data-parallel "
                                     "replicas; nearest that do: {}",
                                     replicate, p.dp,
                                     nearestDivisors(p.dp, replicate)));
    if (shard < 1)
      shard = p.dp / replicate; // -1: the remaining ranks
    if (replicate * shard != p.dp)
      return f.fail("data_parallel_shard_degree",
                    fmt::format("{} times /parallelism/{} {} is {}, not the {} "
                                "data-parallel replicas; nearest: {}",
                                shard, key, replicate, replicate * shard, p.dp,
                                p.dp % replicate == 0
                                    ? fmt::format("{}", p.dp / replicate)
                                    : fmt::format("{} with /parallelism/{} 1",
                                                  p.dp, key)));
    if (shard == 1)
      return;
    // With a pipeline, the mode "default" keeps parameters gathered after
    // forward, so that the parameters are not gathered again for every
    // micro-batch.
    p.zeroStage = reshard == 1 || (reshard == 0 && p.pp == 1) ? 3 : 2;
    p.zeroRanks = static_cast<int>(shard);
    config.training.overlapGradReduce = true;
    config.training.overlapParamGather = true;
  }

  void pipeline(JsonFields &f) {
    std::string name = f.text("pipeline_parallel_schedule", "1F1B");
    std::optional<NamedSchedule> schedule = scheduleNamed(name);
    std::int64_t each =
        f.integer("pipeline_parallel_layers_per_stage", 1, kMostRanks, 0);
    auto modules = f.elements("module_fqns_per_model_part", false);
    for (const char *key : {"pipeline_parallel_first_stage_less_layers",
                            "pipeline_parallel_last_stage_less_layers"})
      if (f.integer(key, 0, kMostRanks, 1) != 1)
        f.fail(key, "is planned as 1 only; say the split by "
                    "\"module_fqns_per_model_part\"");
    if (!schedule)
      return f.fail("pipeline_parallel_schedule",
                    fmt::format("\"{}\" is unknown; known: {}",
                                name.substr(0, 60), scheduleNames()));
    if (p.pp == 1) {
      if (launch.layers > 0)
        p.layers = {static_cast<int>(launch.layers)};
      return;
    }
    if (!schedule->note.empty())
      config.warn(
          fmt::format("/parallelism/pipeline_parallel_schedule: \"{}\" is {}",
                      name, schedule->note));
    p.schedule = schedule->kind;
    std::int64_t parts = std::int64_t{p.pp} * (schedule->manyChunks ? 2 : 1);
    if (!modules.empty()) {
      parts = static_cast<std::int64_t>(modules.size());
    } else if (each > 0) {
      if (launch.layers == 0)
        return f.fail(
            "pipeline_parallel_layers_per_stage",
            "needs the number of layers, which the file does not say");
      parts = (launch.layers + 2 + each - 1) / each;
    }
    if (parts % p.pp != 0)
      return f.fail(modules.empty() ? "pipeline_parallel_layers_per_stage"
                                    : "module_fqns_per_model_part",
                    fmt::format("makes {} parts, which do not divide by "
                                "/parallelism/pipeline_parallel_degree {}; "
                                "nearest numbers of parts: {}",
                                parts, p.pp, nearestMultiples(p.pp, parts)));
    p.virtualStages = static_cast<int>(parts / p.pp);
    if (p.virtualStages > 1 && !schedule->manyChunks)
      return f.fail("pipeline_parallel_schedule",
                    fmt::format("\"{}\" is planned with one chunk a stage, but "
                                "there are {}; nearest: \"Interleaved1F1B\"",
                                name, p.virtualStages));
    if (!modules.empty())
      countModules(f, modules);
    else if (launch.layers > 0)
      p.layers = torchtitanParts(launch.layers, static_cast<int>(parts));
    if (p.layers.empty() && launch.layers > 0)
      f.fail("pipeline_parallel_degree",
             fmt::format("{} parts are too many for {} layers, the embedding "
                         "and the head; nearest: {}",
                         parts, launch.layers, launch.layers + 2));
  }

  void countModules(
      JsonFields &f,
      const std::vector<std::pair<const json *, std::string>> &modules) {
    const char *key = "module_fqns_per_model_part";
    std::int64_t layer = 0;
    for (const auto &[part, where] : modules) {
      int count = 0;
      if (!part->is_array()) {
        f.fail(key, "must be an array of arrays of names");
        return;
      }
      for (const json &name : *part) {
        if (!name.is_string() ||
            !name.get_ref<const std::string &>().starts_with("layers."))
          continue;
        if (name != fmt::format("layers.{}", layer)) {
          f.fail(key,
                 fmt::format("the layer after {} others must be \"layers.{}\"",
                             layer, layer));
          return;
        }
        ++layer;
        ++count;
      }
      p.layers.push_back(count);
    }
    if (launch.layers > 0 && layer != launch.layers)
      f.fail(key, fmt::format("has {} layers, but the model has {}", layer,
                              launch.layers));
  }

  void batches(JsonFields &f, JsonFields &training) {
    std::int64_t local = training.integer("local_batch_size", 1, kMostSize, 8);
    std::int64_t global =
        training.integer("global_batch_size", -1, kMostSize, -1);
    std::int64_t micro =
        f.integer("pipeline_parallel_microbatch_size", 1, kMostSize, 1);
    p.microBatch = p.pp > 1 ? micro : local;
    p.globalBatch = global > 0 ? global : local * p.dp;
    if (!shared)
      return;
    if (p.pp > 1 && local % micro != 0)
      f.fail("pipeline_parallel_microbatch_size",
             fmt::format("{} does not divide /training/local_batch_size {}; "
                         "nearest that do: {}",
                         micro, local, nearestDivisors(local, micro)));
    else if (p.globalBatch % (local * p.dp) != 0)
      training.fail(
          "global_batch_size",
          fmt::format(
              "{} does not divide by {}, which is /training/local_batch_size "
              "{} times {} data-parallel replicas; nearest that do: {}",
              p.globalBatch, local * p.dp, local, p.dp,
              nearestMultiples(local * p.dp, p.globalBatch)));
    else
      checkBatches(config, naming());
  }

  void precision(JsonFields &f) {
    bool brain =
        f.oneOf("mixed_precision_param", {"bfloat16", "float32"}, 0) == 0;
    bool wide =
        f.oneOf("mixed_precision_reduce", {"float32", "bfloat16"}, 0) == 0;
    config.precision = brain ? Precision::bf16 : Precision::fp32;
    config.training.fp32Gradients = wide || !brain;
    if (f.boolean("enable_cpu_offload", false)) {
      p.offload = planner::Offload::optimizer;
      config.warn("/training/enable_cpu_offload: planned as offload of the "
                  "optimizer; torchtitan offloads parameters too");
    }
    noteIrrelevant(f,
                   {"dataset", "dataset_path", "steps", "max_norm", "seed",
                    "deterministic", "gc_freq", "gc_debug", "dtype", "compile",
                    "enable_fp8_linear", "debug_moe_force_load_balance"},
                   config);
  }

  void recompute(JsonFields &f) {
    switch (
        f.oneOf("mode", {"selective", "full", "none", "memory_budget"}, 0)) {
    case 0:
      p.recompute = Recompute::selective;
      if (f.find("selective_ac_option"))
        config.warn("/activation_checkpoint/selective_ac_option: planned as "
                    "the core of attention");
      break;
    case 1:
      p.recompute = Recompute::full;
      break;
    case 3:
      f.fail("mode",
             "\"memory_budget\" is not planned; nearest: \"selective\"");
      break;
    default:
      break;
    }
    f.find("selective_ac_option"); // marks the key as known in every mode
    noteIrrelevant(f,
                   {"early_stop", "preserve_rng_state", "determinism_check",
                    "per_op_sac_force_recompute_mm_shapes_by_fqns",
                    "memory_budget", "visualize_memory_budget_pareto"},
                   config);
  }

  JsonFields root;
  const Launch &launch;
  TrainerConfig &config;
  Parallelism &p;
  bool shared = false;
};

} // namespace

TrainerConfig readTorchtitan(const std::string &text, const Launch &launch) {
  TrainerConfig config;
  config.training.attentionDropout = config.training.hiddenDropout = 0;
  json root = parseToml(text, config.errors);
  if (config.errors.empty())
    Reader(root, launch, config).run();
  return config;
}

} // namespace mtplan::tools
