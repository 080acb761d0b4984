//===- weight_rules.h - Whose weights other files hold ----------*- C++ -*-===//
//
// Which of our parameters are in which tensor of a file that Hugging Face's
// Transformers writes, and how they lie there. Names and layouts only; who
// reads and writes files is elsewhere.
//
// Ours are matrices [in, out] of one purpose each. Theirs are [out, in] where a
// torch.nn.Linear has them, [in, out] where GPT-2's Conv1D has, and may hold
// several of ours side by side. Rows and columns are in the same order on both
// sides: rope turns halves of a head for the Llama family and neighbours for
// GPT-J, as Transformers does for each, so that nothing needs to be permuted.
// (Meta's own Llama files turn neighbours; these are not theirs.)
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_WEIGHTS_WEIGHT_RULES_H
#define MTPLAN_RUNTIME_WEIGHTS_WEIGHT_RULES_H

#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace mtplan::runtime {

/// Weights that do not fit: what is wrong, and what would be right.
class WeightError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// One tensor of a file, and the parameters of ours that are in it.
struct WeightRule {
  std::string name;      ///< "transformer.h.3.attn.c_attn.weight"
  std::string olderName; ///< which it had in older files; empty: the same
  /// One, or several in the order in which they lie: "h.3.attn.q.weight", ...
  std::vector<std::string> labels;
  bool transposed = false; ///< [out, in] in the file, [in, out] here
  /// Dimension of the file's tensor along which the labels lie one after the
  /// other, each as long as its own; 0 where there is one label.
  int along = 0;
};

/// A tensor that a file may have beside the parameters: a copy of one of them,
/// which it must equal, or what we have no parameter for (a mask, the
/// positions, rotary frequencies, a part of the network that is not trained
/// here).
struct SkippedWeight {
  std::string name;
  std::string of; ///< label of the parameter that it is a copy of, or empty
};

/// What a file of a family may hold. Without padding: a table of tokens has as
/// many rows as there are tokens.
struct WeightTable {
  std::string family;
  std::vector<WeightRule> rules; ///< every parameter in one of them
  std::vector<SkippedWeight> skipped;
};

/// Names of the families that are known, as in config.json's model_type.
std::span<const std::string_view> weightFamilies();

/// What a file names its tensors after.
struct WeightNames {
  std::string family; ///< "llama" for "mistral", too: all names are the same
  std::string prefix; ///< "transformer.", "model.", "bert.", or nothing
  std::int64_t layers = 0;
};

/// The family's usual names: with its prefix.
WeightNames usualNames(std::string_view family, std::int64_t layers);

/// All that the names say. Throws WeightError if they are of no family, or if
/// one is missing that all of the family have.
WeightNames recogniseWeights(std::span<const std::string> names);

/// The table for a model with these parameters; `*` stands for each layer.
/// Parameters that a family may or may not have (biases, a head of its own) go
/// by the labels. Throws WeightError if a parameter has no place in the family,
/// or one is lacking.
WeightTable weightTable(const WeightNames &names,
                        std::span<const std::string> labels);

/// Throws WeightError unless the file has all that the rules ask for, and
/// nothing that is neither in them nor skipped. An older name will do.
void expectWeights(const WeightTable &table,
                   std::span<const std::string> names);

/// The rules of those tensors of a file that parameters make, by the names that
/// the file has for them; a copy has the rule of a table or a bias. All others
/// are no parameters.
std::map<std::string, WeightRule>
rulesByName(const WeightTable &table, std::span<const std::string> names);

/// Shape of a rule's tensor in the file, from those of its parameters, in the
/// order of its labels. Throws WeightError if they do not go together.
std::vector<std::int64_t>
shapeInFile(const WeightRule &rule,
            std::span<const std::vector<std::int64_t>> shapes);

/// The file of karpathy/llm.c for GPT-2: its tensors in their order, those of
/// all layers of one kind after each other. Names are the project's own, with
/// the number of the layer.
std::vector<WeightRule> llmcRules(std::int64_t layers);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_WEIGHTS_WEIGHT_RULES_H
