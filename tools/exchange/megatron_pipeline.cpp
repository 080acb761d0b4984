//===- megatron_pipeline.cpp - Layers of Megatron-LM's stages -------------===//
//
// Megatron-LM has four ways to assign layers to stages: evenly; evenly except
// for given numbers in the first and the last stage; evenly with the embedding
// or the loss counted as a layer; and by a layout. In two of these ways,
// versions of Megatron-LM silently dropped layers. This reader reports an error
// if the layers of the stages do not add up to the layers of the model.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cctype>
#include <cstddef>

#include <fmt/format.h>

#include "tools/exchange/megatron_flags.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::Parallelism;

namespace {

constexpr std::size_t kMostLetters = 100'000; // after expansion
constexpr std::size_t kMostDepth = 64;

// Expands brackets and repetitions, and drops commas and blanks. The result is
// empty if the text is malformed.
class Expander {
public:
  Expander(const std::string &source, std::vector<std::string> &notes)
      : text(source), errors(notes) {}

  std::string run() {
    for (; position < text.size() && errors.empty(); ++position)
      step(text[position]);
    if (errors.empty() && starts.size() > 1)
      fail(fmt::format("the bracket of column {} is not closed",
                       columns.back()));
    return errors.empty() ? letters : std::string();
  }

private:
  void fail(const std::string &what) { errors.push_back(what); }

  void step(char c) {
    if (c == ',' || std::isspace(static_cast<unsigned char>(c)))
      return;
    if (std::string("Etm|L").find(c) != std::string::npos) {
      unit = letters.size();
      letters += c;
    } else if (c == '(') {
      if (starts.size() > kMostDepth)
        return fail(
            fmt::format("column {}: more than {} brackets within each other",
                        position + 1, kMostDepth));
      starts.push_back(letters.size());
      columns.push_back(position + 1);
      unit = std::string::npos;
    } else if (c == ')') {
      if (starts.size() == 1)
        return fail(
            fmt::format("column {}: \")\" closes nothing", position + 1));
      unit = starts.back();
      starts.pop_back();
      columns.pop_back();
    } else if (c == '*') {
      repeat();
    } else {
      fail(fmt::format(
          "column {}: \"{}\" is none of E t m L | ( ) * and digits after *",
          position + 1, std::isprint(static_cast<unsigned char>(c)) ? c : '?'));
    }
    if (letters.size() > kMostLetters)
      fail(fmt::format("column {}: more than {} letters after repetition",
                       position + 1, kMostLetters));
  }

  void repeat() {
    std::size_t star = position + 1, count = 0, digits = 0;
    while (position + 1 < text.size() &&
           std::isdigit(static_cast<unsigned char>(text[position + 1]))) {
      ++position;
      ++digits;
      count =
          std::min(count * 10 + static_cast<std::size_t>(text[position] - '0'),
                   kMostLetters + 1);
    }
    if (unit == std::string::npos)
      return fail(fmt::format(
          "column {}: \"*\" has nothing before it to repeat", star));
    if (digits == 0 || count == 0)
      return fail(
          fmt::format("column {}: \"*\" needs a number of at least 1", star));
    std::string once = letters.substr(unit);
    if (once.size() * (count - 1) + letters.size() > kMostLetters)
      return fail(
          fmt::format("column {}: more than {} letters after repetition", star,
                      kMostLetters));
    for (std::size_t i = 1; i < count; ++i)
      letters += once;
    unit = std::string::npos;
  }

  const std::string &text;
  std::vector<std::string> &errors;
  std::string letters;
  std::vector<std::size_t> starts = {0}, columns;
  std::size_t position = 0;
  std::size_t unit = std::string::npos; // start of the operand of "*"
};

struct PipelinePart {
  int layers = 0;
  int predictors = 0; ///< letters m
  int embeddings = 0; ///< letters E
  int losses = 0;     ///< letters L
};

// Reads a layout. `errors` must be empty; the errors that this function adds
// name the column.
std::vector<PipelinePart> partsOf(const std::string &layout,
                                  std::vector<std::string> &errors) {
  std::vector<PipelinePart> parts(1);
  for (char c : Expander(layout, errors).run()) {
    PipelinePart &part = parts.back();
    if (c == '|')
      parts.emplace_back();
    else
      ++(c == 't'   ? part.layers
         : c == 'm' ? part.predictors
         : c == 'E' ? part.embeddings
                    : part.losses);
  }
  return parts;
}

constexpr std::int64_t kMostLayers = 10'000;

class Pipeline {
public:
  Pipeline(const MegatronFlags &given, TrainerConfig &read)
      : flags(given), config(read), p(read.parallelism),
        layers(read.model.layers) {}

  void run() {
    static const char *const ways[] = {"num-layers-per-virtual-pipeline-stage",
                                       "num-virtual-stages-per-pipeline-rank",
                                       "pipeline-model-parallel-layout"};
    std::string both;
    int count = 0;
    for (const char *way : ways)
      if (flags.given(way))
        both += fmt::format("{}--{}", count++ > 0 ? " contradicts " : "", way);
    if (count > 1)
      return fail(both + "; give one of them");
    if (flags.given(ways[2]))
      readLayout();
    else
      readCounts();
    if (p.virtualStages > 1) {
      p.schedule = planner::ScheduleKind::interleaved;
      checkInterleaved();
    }
  }

private:
  void fail(std::string message) { config.fail(std::move(message)); }

  bool uneven(const char *name) {
    if (!flags.given(name))
      return false;
    if (p.pp == 1)
      fail(fmt::format("--{} needs --pipeline-model-parallel-size above 1, but "
                       "it is 1; nearest: 2",
                       name));
    return true;
  }

  void readCounts() {
    bool first = uneven("decoder-first-pipeline-num-layers");
    bool last = uneven("decoder-last-pipeline-num-layers");
    int embedding = flags.given("account-for-embedding-in-pipeline-split");
    int loss = flags.given("account-for-loss-in-pipeline-split");
    if ((first || last) && (embedding || loss))
      return fail("--decoder-first-pipeline-num-layers and "
                  "--decoder-last-pipeline-num-layers contradict "
                  "--account-for-embedding-in-pipeline-split and "
                  "--account-for-loss-in-pipeline-split; give one kind");
    if (layers == 0) {
      if (p.pp > 1 || flags.given("num-layers-per-virtual-pipeline-stage"))
        fail("--num-layers: is missing");
      readVirtual(0);
      return;
    }
    if (p.pp == 1 && (first || last))
      return; // the error was already reported
    std::vector<int> stages = first || last
                                  ? unevenStages(first, last)
                                  : evenStages(layers + embedding + loss);
    if (stages.empty())
      return;
    if (!readVirtual(first || last ? 0 : stages[0]))
      return;
    cut(stages, embedding, loss);
  }

  std::vector<int> evenStages(std::int64_t counted) {
    if (counted % p.pp == 0)
      return std::vector<int>(static_cast<std::size_t>(p.pp),
                              static_cast<int>(counted / p.pp));
    fail(fmt::format(
        "--pipeline-model-parallel-size {} does not divide --num-layers {}{}; "
        "nearest that do: {}; or say the split by "
        "--pipeline-model-parallel-layout",
        p.pp, layers,
        counted == layers
            ? ""
            : fmt::format(" and the {} counted as layers", counted - layers),
        nearestDivisors(counted, p.pp)));
    return {};
  }

  std::vector<int> unevenStages(bool first, bool last) {
    std::int64_t ofFirst =
        flags.integer("decoder-first-pipeline-num-layers", 1, kMostLayers, 0);
    std::int64_t ofLast =
        flags.integer("decoder-last-pipeline-num-layers", 1, kMostLayers, 0);
    if ((first && ofFirst == 0) || (last && ofLast == 0))
      return {}; // the error was already reported
    std::int64_t rest = layers - ofFirst - ofLast;
    std::int64_t stages = p.pp - first - last;
    std::string taken =
        fmt::format("--num-layers {} less{}{}", layers,
                    first ? fmt::format(" {} of the first stage", ofFirst) : "",
                    last ? fmt::format("{} {} of the last stage",
                                       first ? " and" : "", ofLast)
                         : "");
    if (rest < 0 || (stages == 0 && rest != 0)) {
      fail(fmt::format(
          "{} leaves {} layers for {} stages; the two must add up to {}", taken,
          rest, stages,
          stages == 0 ? fmt::format("{}", layers)
                      : fmt::format("less than {}", layers)));
      return {};
    }
    if (stages > 0 && (rest == 0 || rest % stages != 0)) {
      fail(fmt::format("{} leaves {} layers, which do not divide by the {} "
                       "other stages; nearest --num-layers: {}",
                       taken, rest, stages,
                       offsetMultiples(stages, rest, ofFirst + ofLast)));
      return {};
    }
    std::vector<int> parts(static_cast<std::size_t>(p.pp),
                           static_cast<int>(stages > 0 ? rest / stages : 0));
    if (first)
      parts.front() = static_cast<int>(ofFirst);
    if (last)
      parts.back() = static_cast<int>(ofLast);
    return parts;
  }

  static std::string offsetMultiples(std::int64_t unit, std::int64_t wanted,
                                     std::int64_t offset) {
    std::int64_t below = wanted / unit * unit;
    if (below == 0)
      return fmt::format("{}", unit + offset);
    return fmt::format("{} and {}", below + offset, below + unit + offset);
  }

  bool readVirtual(std::int64_t perStage) {
    const char *const layersEach = "num-layers-per-virtual-pipeline-stage";
    if (!flags.given(layersEach)) {
      p.virtualStages = static_cast<int>(flags.integer(
          "num-virtual-stages-per-pipeline-rank", 1, kMostLayers, 1));
      return true;
    }
    if (layers > 0 && perStage == 0) {
      fail("--num-layers-per-virtual-pipeline-stage contradicts "
           "--decoder-first-pipeline-num-layers and "
           "--decoder-last-pipeline-num-layers; use "
           "--num-virtual-stages-per-pipeline-rank");
      return false;
    }
    std::int64_t each = flags.integer(layersEach, 1, kMostLayers, 1);
    if (perStage == 0)
      return false;
    if (perStage % each != 0) {
      fail(fmt::format("--{} {} does not divide the {} layers of a stage; "
                       "nearest that do: {}",
                       layersEach, each, perStage,
                       nearestDivisors(perStage, each)));
      return false;
    }
    p.virtualStages = static_cast<int>(perStage / each);
    return true;
  }

  // Virtual stage c of stage i has the index c * pp + i.
  void cut(const std::vector<int> &stages, int embedding, int loss) {
    auto count = static_cast<std::size_t>(p.pp);
    for (std::size_t i = 0; i < count; ++i)
      if (stages[i] % p.virtualStages != 0)
        return fail(
            fmt::format("--num-virtual-stages-per-pipeline-rank {} does not "
                        "divide the {} layers of stage {}; nearest that do: {}",
                        p.virtualStages, stages[i], i,
                        nearestDivisors(stages[i], p.virtualStages)));
    std::vector<int> parts(count * static_cast<std::size_t>(p.virtualStages));
    for (std::size_t j = 0; j < parts.size(); ++j)
      parts[j] = stages[j % count] / p.virtualStages;
    parts.front() -= embedding;
    parts.back() -= loss;
    if (parts.front() < 0 || parts.back() < 0)
      return fail("the parts of the model are too small to count the embedding "
                  "and the loss as layers; nearest: fewer stages");
    p.layers = std::move(parts);
  }

  void readLayout() {
    const char *const name = "pipeline-model-parallel-layout";
    std::vector<std::string> found;
    std::vector<PipelinePart> parts = partsOf(flags.list(name).front(), found);
    for (const std::string &line : found)
      fail(fmt::format("--{}: {}", name, line));
    for (const char *other : {"decoder-first-pipeline-num-layers",
                              "decoder-last-pipeline-num-layers",
                              "account-for-embedding-in-pipeline-split",
                              "account-for-loss-in-pipeline-split"})
      if (flags.given(other))
        fail(fmt::format("--{} contradicts --{}; give one of them", name,
                         other));
    if (!found.empty())
      return;
    auto count = static_cast<std::int64_t>(parts.size());
    if (count % p.pp != 0)
      return fail(fmt::format(
          "--{} has {} parts, which do not divide by "
          "--pipeline-model-parallel-size {}; nearest numbers of parts: {}",
          name, count, p.pp, nearestMultiples(p.pp, count)));
    int embeddings = 0, losses = 0, predictors = 0;
    std::int64_t total = 0;
    for (const PipelinePart &part : parts) {
      embeddings += part.embeddings;
      losses += part.losses;
      predictors += part.predictors;
      total += part.layers;
    }
    if (embeddings != 1 || parts.front().embeddings != 1)
      fail(fmt::format("--{} must have one E, in the first part, but has {}, "
                       "{} of them there",
                       name, embeddings, parts.front().embeddings));
    if (losses != 1 || parts.back().losses != 1)
      fail(fmt::format("--{} must have one L, in the last part, but has {}, {} "
                       "of them there",
                       name, losses, parts.back().losses));
    if (predictors > 0)
      fail(fmt::format(
          "--{} has {} m; mtplan has no layers that predict further tokens",
          name, predictors));
    if (layers > 0 && total != layers)
      fail(fmt::format(
          "--{} has {} layers, but --num-layers is {}; the two must be equal",
          name, total, layers));
    p.virtualStages = static_cast<int>(count / p.pp);
    for (const PipelinePart &part : parts)
      p.layers.push_back(part.layers);
  }

  void checkInterleaved() {
    int least = config.training.overlapPipeline ? 2 : 3;
    if (p.pp < least)
      fail(fmt::format("--num-virtual-stages-per-pipeline-rank {} needs "
                       "--pipeline-model-parallel-size of at least {}{}, but "
                       "it is {}; nearest: {}",
                       p.virtualStages, least,
                       least == 3 ? " with --no-overlap-p2p-communication" : "",
                       p.pp, least));
  }

  const MegatronFlags &flags;
  TrainerConfig &config;
  Parallelism &p;
  std::int64_t layers;
};

} // namespace

void readMegatronPipeline(const MegatronFlags &flags, TrainerConfig &config) {
  Pipeline(flags, config).run();
}

std::string writePipelineLayout(const std::vector<int> &layers) {
  std::string text = "E";
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i > 0)
      text += '|';
    if (layers[i] > 0)
      text += layers[i] == 1 ? "t" : fmt::format("t*{}", layers[i]);
  }
  return text + 'L';
}

} // namespace mtplan::tools
