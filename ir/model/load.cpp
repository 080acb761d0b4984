//===- load.cpp - From what people have on disk to a module -----*- C++ -*-===//

#include "ir/model/load.h"

#include "ir/model/fields.h"
#include "ir/model/hf_config.h"
#include "ir/model/mlir_text.h"
#include "ir/model/module_facts.h"
#include "ir/model/native.h"
#include "ir/mtp.h"

namespace mtplan::ir {

namespace {

// "dir/name.json" -> "name"
std::string stem(llvm::StringRef fileName) {
  llvm::StringRef base = fileName.substr(fileName.find_last_of('/') + 1);
  std::string name = base.substr(0, base.rfind('.')).str();
  return name.empty() ? "model" : name;
}

// What begins like neither is what its name says.
bool isNamedMlir(llvm::StringRef fileName, llvm::StringRef text) {
  return fileName.ends_with(".mlir") && !text.ltrim().starts_with("{");
}

LoadedModel loadJson(mlir::MLIRContext &context, llvm::StringRef text,
                     const ShapeOverrides &overrides, Findings &findings) {
  std::string problem;
  std::optional<JsonValue> root = parseJson(text, problem);
  if (!root) {
    // "line:column: what" joins the file's name, "/pointer: what" follows it.
    llvm::SmallVector<llvm::StringRef> lines;
    llvm::StringRef(problem).split(lines, '\n');
    for (llvm::StringRef line : lines)
      findings.errors.push_back(
          findings.file + (line.starts_with("/") ? ": " : ":") + line.str());
    return {};
  }
  if (root->kind != JsonValue::Kind::object) {
    findings.error("", "must be an object, but is " + root->describe());
    return {};
  }
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

std::optional<LoadedModel> loadModel(mlir::MLIRContext &context,
                                     llvm::StringRef text,
                                     llvm::StringRef fileName,
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
  // Textual IR has been checked already, before it was looked into.
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
