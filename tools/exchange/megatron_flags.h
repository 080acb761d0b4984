//===- megatron_flags.h - Options of Megatron-LM ----------------*- C++ -*-===//
//
// A layout is Megatron-LM's notation for an uneven pipeline, such as
// "Et*3|(tt|)*29,m|L". E is the embedding, t a layer, m a layer that predicts
// further tokens, and L the loss. A bar separates virtual stages, and *n
// repeats the preceding letter or bracket. Commas and blanks are ignored.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_MEGATRON_FLAGS_H
#define MTPLAN_TOOLS_EXCHANGE_MEGATRON_FLAGS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/exchange/shell_words.h"
#include "tools/exchange/trainer_config.h"

namespace mtplan::tools {

class MegatronFlags {
public:
  /// Skips the launcher's words, up to the first word that ends in ".py". Skips
  /// nothing if an option that affects the plan comes earlier. Options without
  /// effect on a plan go to `warnings`. Errors go to `notes`: unknown options,
  /// options that mtplan cannot plan, wrong numbers of values, and
  /// contradicting repetitions. The methods below add their errors to `notes`
  /// as well.
  MegatronFlags(const std::vector<ShellWord> &words,
                std::vector<std::string> &warnings,
                std::vector<std::string> &notes);

  bool given(std::string_view name) const;
  /// Returns the fallback if the option was not given, or on an error.
  std::int64_t integer(std::string_view name, std::int64_t least,
                       std::int64_t most, std::int64_t fallback) const;
  double number(std::string_view name, double least, double most,
                double fallback) const;
  /// Returns the option's value, which must be in `allowed`, or the fallback.
  std::string word(std::string_view name,
                   const std::vector<std::string> &allowed,
                   const std::string &fallback) const;
  std::vector<std::string> list(std::string_view name) const;

private:
  struct Use {
    std::string name;
    std::vector<std::string> values;
    std::size_t line;
  };
  const Use *find(std::string_view name) const;
  void complain(std::string message);
  void accept(Use use, std::vector<std::string> &warnings);

  std::vector<Use> uses;
  std::vector<std::string> &errors;
  std::size_t complaints = 0;
};

void readMegatronPipeline(const MegatronFlags &flags, TrainerConfig &config);

/// Writes the layout of virtual stages with these numbers of layers: {3, 2, 2,
/// 1} becomes "Et*3|t*2|t*2|tL".
std::string writePipelineLayout(const std::vector<int> &layers);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_MEGATRON_FLAGS_H
