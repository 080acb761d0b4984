//===- weight_rules.h - Maps parameters to tensors of files -----*- C++ -*-===//
//
// States which parameters of mtplan are in which tensor of a file that
// Transformers writes, and how they are stored there. Names and layouts only;
// files are read and written elsewhere.
//
// Parameters of mtplan are matrices [in, out] with one purpose each. Tensors of
// Transformers are [out, in] for a torch.nn.Linear and [in, out] for GPT-2's
// Conv1D, and may concatenate several parameters. Rows and columns have the
// same order on both sides: rope rotates halves of a head for the Llama family
// and adjacent pairs for GPT-J, as Transformers does, so that nothing is
// permuted. (Meta's own Llama files rotate adjacent pairs; these are not
// supported.)
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

/// Reports weights that do not fit: what is wrong, and what would be right.
class WeightError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// One tensor of a file, and the parameters in it.
struct WeightRule {
  std::string name;      ///< "transformer.h.3.attn.c_attn.weight"
  std::string olderName; ///< its name in older files; empty: the same
  /// One label, or several in the order in which they are concatenated:
  /// "h.3.attn.q.weight", ...
  std::vector<std::string> labels;
  bool transposed = false; ///< [out, in] in the file, [in, out] here
  /// Dimension of the file's tensor along which the parameters are
  /// concatenated; 0 if there is one label.
  int along = 0;
};

/// A tensor that a file may have beside the parameters: a copy of a parameter,
/// which it must equal, or a tensor without a parameter (a mask, the positions,
/// rotary frequencies, a part of the network that is not trained here).
struct SkippedWeight {
  std::string name;
  std::string of; ///< label of the parameter it copies, or empty
};

/// The tensors that a file of a family may hold, without padding: a token
/// embedding has as many rows as there are tokens.
struct WeightTable {
  std::string family;
  std::vector<WeightRule> rules; ///< every parameter is in one of them
  std::vector<SkippedWeight> skipped;
};

/// Returns the names of the known families, as in model_type of config.json.
std::span<const std::string_view> weightFamilies();

/// The naming scheme of a file's tensors.
struct WeightNames {
  std::string family; ///< "llama" for "mistral", too: all names are the same
  std::string prefix; ///< "transformer.", "model.", "bert.", or nothing
  std::int64_t layers = 0;
};

/// Returns the family's usual scheme, with its prefix.
WeightNames usualNames(std::string_view family, std::int64_t layers);

/// Returns everything that the names tell. Throws WeightError if they fit no
/// family, or if a tensor is missing that every file of the family has.
WeightNames recogniseWeights(std::span<const std::string> names);

/// Returns the table for a model with these parameters; `*` stands for each
/// layer. The labels decide about optional parameters (biases, a head of its
/// own). Throws WeightError if a parameter has no place in the family, or if
/// one is missing.
WeightTable weightTable(const WeightNames &names,
                        std::span<const std::string> labels);

/// Throws WeightError unless the file has all tensors that the rules need, and
/// nothing that is neither in them nor skipped. An older name is accepted.
void expectWeights(const WeightTable &table,
                   std::span<const std::string> names);

/// Returns the rules of the tensors that parameters make, by their names in the
/// file; a copy has the rule of a table or a bias. All other tensors are no
/// parameters.
std::map<std::string, WeightRule>
rulesByName(const WeightTable &table, std::span<const std::string> names);

/// Returns the shape of a rule's tensor in the file, from the shapes of its
/// parameters in the order of its labels. Throws WeightError if they do not
/// fit.
std::vector<std::int64_t>
shapeInFile(const WeightRule &rule,
            std::span<const std::vector<std::int64_t>> shapes);

/// Returns the tensors of llm.c's file for GPT-2 in its order, those of all
/// layers of one kind together, with llm.c's own names and the number of the
/// layer.
std::vector<WeightRule> llmcRules(std::int64_t layers);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_WEIGHTS_WEIGHT_RULES_H
