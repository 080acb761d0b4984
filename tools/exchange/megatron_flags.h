//===- megatron_flags.h - Megatron-LM's options as they were given -*- C++
//-*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_MEGATRON_FLAGS_H
#define MTPLAN_TOOLS_EXCHANGE_MEGATRON_FLAGS_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/exchange/shell_words.h"

namespace mtplan::tools {

/// What was given, sorted into planned, irrelevant and refused. Names are
/// without the leading dashes.
class MegatronFlags {
public:
  /// Everything up to the first word that ends in ".py" is the launcher's and
  /// is passed over. Unknown options, options mtplan cannot plan, wrong numbers
  /// of values and contradicting repetitions go to `notes`, as do the
  /// complaints of all that follows; options that change nothing planned to
  /// `warnings`.
  MegatronFlags(const std::vector<ShellWord> &words,
                std::vector<std::string> &warnings,
                std::vector<std::string> &notes);

  bool given(std::string_view name) const;
  /// The value as a whole number; else an error and the fallback.
  std::int64_t integer(std::string_view name, std::int64_t least,
                       std::int64_t most, std::int64_t fallback) const;
  double number(std::string_view name, double least, double most,
                double fallback) const;
  /// The value, one of `allowed`; else an error and the fallback.
  std::string word(std::string_view name,
                   const std::vector<std::string> &allowed,
                   const std::string &fallback) const;
  /// All values, however many.
  std::vector<std::string> list(std::string_view name) const;

private:
  struct Use {
    std::string name;
    std::vector<std::string> values;
    std::size_t line;
  };
  const Use *find(std::string_view name) const;
  void complain(std::string message);
  void take(Use use, std::vector<std::string> &warnings);

  std::vector<Use> uses;
  std::vector<std::string> &errors;
  std::size_t complaints = 0;
};

/// The whole of `text` as a number; nothing if it is none or not finite.
std::optional<std::int64_t> wholeNumber(std::string_view text);
std::optional<double> finiteNumber(std::string_view text);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_MEGATRON_FLAGS_H
