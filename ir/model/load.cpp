//===- load.cpp - Reads a model file into a module ------------------------===//

#include "ir/model/load.h"

#include <algorithm>

#include "llvm/ADT/StringExtras.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include "ir/model/fields.h"
#include "ir/model/hf_config.h"
#include "ir/model/module_facts.h"
#include "ir/mtp.h"

using namespace mlir;

namespace mtplan::ir {

namespace {

// MLIR's parser recurses at every bracket, and allocates n + 1 results for
// `%x#n`. Real models stay far below these limits.
constexpr int kMaxNesting = 256;
constexpr std::size_t kMaxResultDigits = 3;

bool isResultNumberTooLong(StringRef afterHash) {
  return afterHash.take_while(llvm::isDigit).size() > kMaxResultDigits;
}

// Returns the offset, outside strings and comments, of a bracket that is nested
// too deeply or of a result number that is too large.
std::optional<std::size_t> unparsableAt(StringRef text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        if (text[i] == '\\')
          ++i;
    } else if (c == '/' && text.substr(i).starts_with("//")) {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '#' && isResultNumberTooLong(text.substr(i + 1))) {
      return i;
    } else if (StringRef("([{<").contains(c)) {
      if (++depth > kMaxNesting)
        return i;
    } else if (StringRef(")]}").contains(c) ||
               (c == '>' && (i == 0 || text[i - 1] != '-'))) {
      depth = std::max(0, depth - 1);
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> sequenceOf(ModuleOp module) {
  std::optional<std::int64_t> sequence;
  module.walk([&](InputOp input) {
    auto type = llvm::cast<RankedTensorType>(input.getValue().getType());
    for (auto [i, name] :
         llvm::enumerate(input.getDims().getAsRange<StringAttr>()))
      if (name.getValue() == "sequence" && !sequence)
        sequence = type.getDimSize(static_cast<unsigned>(i));
  });
  return sequence;
}

std::string elementTypeOf(ModuleOp module, const ShapeOverrides &overrides,
                          Findings &findings) {
  std::string type;
  module.walk([&](ParameterOp op) {
    std::string here;
    llvm::raw_string_ostream(here)
        << llvm::cast<RankedTensorType>(op.getValue().getType())
               .getElementType();
    if (here != "bf16" && here != "f16" && here != "f32")
      findings.errors.push_back(describeLocation(op->getLoc()) +
                                ": parameters are bf16, f16 or f32, but " +
                                op.getLabel().str() + " is " + here);
    else if (type.empty())
      type = here;
    else if (type != here)
      findings.errors.push_back(describeLocation(op->getLoc()) +
                                ": all parameters have one type, but " +
                                op.getLabel().str() + " is " + here +
                                " and the first is " + type);
  });
  if (type.empty())
    type = overrides.elementType;
  if (overrides.elementTypeAsked && type != overrides.elementType)
    findings.error("", "textual IR fixes its types: parameters are " + type +
                           ", not " + overrides.elementType +
                           "; edit the file, or leave --precision out");
  return type;
}

void rejectLaterStages(ModuleOp module, Findings &findings) {
  module.walk([&](Operation *op) {
    if (llvm::isa<BackwardOp, UpdateOp>(op))
      findings.errors.push_back(
          describeLocation(op->getLoc()) + ": " +
          op->getName().getStringRef().str() +
          " found: this module is differentiated already; a model has forward "
          "operators only");
  });
  if (module.getOps<SegmentOp>().empty())
    findings.error("", "has no mtp.segment");
}

} // namespace

bool looksLikeMlir(StringRef text) {
  text = text.ltrim();
  while (text.starts_with("//"))
    text = text.substr(text.find('\n')).ltrim();
  for (StringRef start :
       {"module", "mtp.", "builtin.", "\"builtin.", "\"mtp.", "#", "!", "{-#"})
    if (text.starts_with(start))
      return true;
  return false;
}

static LoadedModel loadMlirText(MLIRContext &context, StringRef text,
                                const ShapeOverrides &overrides,
                                Findings &findings) {
  LoadedModel loaded;
  loaded.family = "mlir";
  for (auto [asked, what] :
       {std::pair(overrides.sequence.has_value(), "sequence"),
        std::pair(overrides.layers.has_value(), "number of layers")})
    if (asked)
      findings.error("", std::string("textual IR fixes its shapes: the ") +
                             what + " cannot be changed; edit the file");
  if (text.size() > kMaxJsonBytes || unparsableAt(text)) {
    std::size_t at = unparsableAt(text).value_or(0);
    findings.error(
        "", "larger than " + std::to_string(kMaxJsonBytes) +
                " bytes, nested more than " + std::to_string(kMaxNesting) +
                " levels deep or with a result number of more than " +
                std::to_string(kMaxResultDigits) + " digits, at line " +
                std::to_string(text.take_front(at).count('\n') + 1));
  }
  if (!findings.errors.empty())
    return loaded;

  OwningOpRef<ModuleOp> module;
  {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      std::string where = describeLocation(diagnostic.getLocation());
      findings.errors.push_back((where.empty() ? findings.file : where) + ": " +
                                diagnostic.str());
      return success();
    });
    // The parser does not verify, because checkModule() reports all errors and
    // the parser only the first.
    ParserConfig config(&context, /*verifyAfterParse=*/false);
    // The text is copied, because MLIR's lexer needs a zero byte at its end.
    module =
        parseSourceString<ModuleOp>(std::string(text), config, findings.file);
  }
  if (!module && findings.errors.empty())
    findings.error("", "is not a module");
  if (!findings.errors.empty() || !checkModule(*module, findings))
    return loaded;
  rejectLaterStages(*module, findings);
  loaded.elementType = elementTypeOf(*module, overrides, findings);
  if (!findings.errors.empty())
    return loaded;

  if (auto name = module->getSymName())
    loaded.name = name->str();
  loaded.sequence = sequenceOf(*module).value_or(1);
  std::int64_t longest = 1;
  for (auto segment : module->getOps<SegmentOp>())
    longest = std::max(longest, static_cast<std::int64_t>(segment.getRepeat()));
  Operation *op = *module;
  if (!op->hasAttr(kLayersAttrName))
    op->setAttr(kLayersAttrName, Builder(&context).getI64IntegerAttr(longest));
  auto layers = op->getAttrOfType<IntegerAttr>(kLayersAttrName);
  loaded.layers = layers ? layers.getInt() : 0;
  if (loaded.layers < 1 || loaded.layers > kMaxLayers) {
    findings.error("", "mtp.layers must be an integer from 1 to " +
                           std::to_string(kMaxLayers));
    return loaded;
  }
  loaded.module = std::move(module);
  return loaded;
}

namespace {

// Returns "name" for "dir/name.json".
std::string stem(StringRef fileName) {
  StringRef base = fileName.substr(fileName.find_last_of('/') + 1);
  std::string name = base.substr(0, base.rfind('.')).str();
  return name.empty() ? "model" : name;
}

bool isNamedMlir(StringRef fileName, StringRef text) {
  return fileName.ends_with(".mlir") && !text.ltrim().starts_with("{");
}

LoadedModel loadJson(MLIRContext &context, StringRef text,
                     const ShapeOverrides &overrides, Findings &findings) {
  std::string problem;
  std::optional<JsonValue> root = parseJson(text, problem);
  if (!root) {
    // The separator after the file name is ":" before "line:column" and ": "
    // before a JSON pointer.
    llvm::SmallVector<StringRef> lines;
    StringRef(problem).split(lines, '\n');
    for (StringRef line : lines)
      findings.errors.push_back(
          findings.file + (line.starts_with("/") ? ": " : ":") + line.str());
    return {};
  }
  if (!findings.expectObject(*root, ""))
    return {};
  if (root->find("model_type"))
    return loadHfConfig(context, *root, overrides, findings);
  if (root->find("mtplan"))
    return loadNative(context, *root, overrides, findings);
  findings.error("", "has neither \"model_type\", as a Hugging Face config "
                     "has, nor \"mtplan\", as mtplan's own format has");
  return {};
}

void checkOverrides(const ShapeOverrides &overrides, Findings &findings) {
  auto check = [&](std::optional<std::int64_t> value, const char *what,
                   std::int64_t limit) {
    if (value && (*value < 1 || *value > limit))
      findings.error(
          "", std::string("the ") + what + " asked for must be from 1 to " +
                  std::to_string(limit) + ", but is " + std::to_string(*value));
  };
  check(overrides.sequence, "sequence", kSizeLimit - 1);
  check(overrides.layers, "number of layers", kMaxLayers);
  if (overrides.elementType != "bf16" && overrides.elementType != "f16" &&
      overrides.elementType != "f32")
    findings.error("", unknownName("element type", overrides.elementType,
                                   {"bf16", "f16", "f32"}));
}

} // namespace

std::optional<LoadedModel> loadModel(MLIRContext &context, StringRef text,
                                     StringRef fileName,
                                     const ShapeOverrides &overrides,
                                     std::vector<std::string> &errors) {
  context.getOrLoadDialect<MtpDialect>();
  Findings findings;
  findings.file = fileName.str();
  checkOverrides(overrides, findings);
  if (text.trim().empty())
    findings.error("", "is empty: neither JSON nor textual IR");

  LoadedModel loaded;
  if (findings.errors.empty())
    loaded = looksLikeMlir(text) || isNamedMlir(fileName, text)
                 ? loadMlirText(context, text, overrides, findings)
                 : loadJson(context, text, overrides, findings);
  // loadMlirText() has already checked textual IR.
  if (findings.errors.empty() && loaded.family != "mlir")
    checkModule(*loaded.module, findings);
  if (!findings.errors.empty()) {
    errors.insert(errors.end(), findings.errors.begin(), findings.errors.end());
    return std::nullopt;
  }
  loaded.parameters = countParameters(*loaded.module);
  if (loaded.name.empty())
    loaded.name = stem(fileName);
  loaded.notes = std::move(findings.notes);
  return loaded;
}

} // namespace mtplan::ir
