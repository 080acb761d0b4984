//===- weight_rules.h - Maps parameters to tensors of files -----*- C++ -*-===//
//
// A rule names a tensor in a file of Transformers or llm.c, the parameters of
// mtplan that the tensor contains, and their layout. The rules state names and
// layouts only. runtime/exchange reads and writes the files.
//
// The weight of a linear operator is a matrix [in, out] in mtplan. In
// Transformers it is [out, in] for a torch.nn.Linear and [in, out] for GPT-2's
// Conv1D, and one tensor may concatenate several parameters. Rows and columns
// are never permuted: as in Transformers, RoPE rotates halves of a head for the
// Llama family and adjacent pairs for GPT-J. (Meta's own Llama files rotate
// adjacent pairs and are not supported.)
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

/// Reports weights that do not match a model or a family.
class WeightError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Describes one tensor of a file, and the parameters that the tensor contains.
struct WeightRule {
  std::string name;      ///< "transformer.h.3.attn.c_attn.weight"
  std::string olderName; ///< name in older files; "": the same
  /// Lists the parameters in the order of concatenation: "h.3.attn.q.weight",
  /// ...
  std::vector<std::string> labels;
  bool transposed = false; ///< [out, in] in the file, [in, out] here
  /// The parameters are concatenated along this dimension of the file's tensor;
  /// 0 if there is one label.
  int along = 0;
};

/// Describes a tensor of a file that is not read as a parameter. The tensor is
/// a copy of a parameter, with the same elements, or it has no parameter (an
/// attention mask, position ids, rotary frequencies, an unsupported head).
struct SkippedWeight {
  std::string name;
  std::string of; ///< label of the copied parameter, or ""
};

/// Describes the tensors of a model in a family's files. The tensors have no
/// padding: a token embedding has one row for each token.
struct WeightTable {
  std::string family;
  std::vector<WeightRule> rules; ///< each parameter is in exactly one rule
  std::vector<SkippedWeight> skipped;
};

/// Returns the names of the known families, as in model_type of config.json.
std::span<const std::string_view> weightFamilies();

/// Describes the naming scheme of a file's tensors.
struct WeightNames {
  std::string family; ///< "llama" also stands for "mistral": equal names
  std::string prefix; ///< "transformer.", "model.", "bert.", or ""
  std::int64_t layers = 0;
};

/// Returns the family's usual scheme, with its prefix.
/// \throws WeightError if there is no such family
WeightNames usualNames(std::string_view family, std::int64_t layers);

/// Recognises the naming scheme of a file by its tensor names.
/// \throws WeightError if the names match no family, or if a tensor is missing
/// that all files of the family contain
WeightNames recogniseWeights(std::span<const std::string> names);

/// Returns the table for a model with these parameters. A `*` in a label stands
/// for all layers. The labels also tell which optional parameters the model has
/// (biases, an untied head).
/// \throws WeightError if the family has no tensor for a parameter, or if a
/// required parameter is missing
WeightTable weightTable(const WeightNames &names,
                        std::span<const std::string> labels);

/// Checks that `names` match the table. Older names are accepted.
/// \throws WeightError if a tensor of the rules is missing from `names`, or if
/// a name is neither in the rules nor skipped
void expectWeights(const WeightTable &table,
                   std::span<const std::string> names);

/// Maps the tensors' actual names in the file to rules. A copy of a parameter
/// maps to the rule of the parameter. Tensors without parameters are not in the
/// map.
std::map<std::string, WeightRule>
rulesByName(const WeightTable &table, std::span<const std::string> names);

/// Returns the shape of a rule's tensor in the file, given the shapes of its
/// parameters in the order of the labels.
/// \throws WeightError if the parameters cannot be concatenated
std::vector<std::int64_t>
shapeInFile(const WeightRule &rule,
            std::span<const std::vector<std::int64_t>> shapes);

/// Returns the tensors of llm.c's file for GPT-2 in the file's order: kind by
/// kind, each kind with all its layers. A name has the layer number: "qkvw.3".
std::vector<WeightRule> llmcRules(std::int64_t layers);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_WEIGHTS_WEIGHT_RULES_H
