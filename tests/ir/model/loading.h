//===- loading.h - Loads models in tests ------------------------*- C++ -*-===//

#ifndef MTPLAN_TESTS_IR_MODEL_LOADING_H
#define MTPLAN_TESTS_IR_MODEL_LOADING_H

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "ir/model/load.h"
#include "ir/mtp.h"
#include "tests/base/test_helpers.h"

namespace mtplan::ir {

inline std::string sourcePath(const std::string &path) {
  return std::string(MTPLAN_SOURCE_DIR) + '/' + path;
}

inline std::string readText(const std::string &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Returns the .json files of a folder of the repository, sorted.
inline std::vector<std::string> jsonFiles(const std::string &folder) {
  std::vector<std::string> paths;
  for (const auto &entry :
       std::filesystem::directory_iterator(sourcePath(folder)))
    if (entry.path().extension() == ".json")
      paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// Holds a loaded model, or its errors, with its MLIR context.
struct Loading {
  mlir::MLIRContext context;
  std::vector<std::string> errors;
  std::optional<LoadedModel> model;

  explicit Loading(const std::string &text,
                   const ShapeOverrides &overrides = {},
                   const std::string &fileName = "m.json") {
    context.getOrLoadDialect<MtpDialect>();
    model = loadModel(context, text, fileName, overrides, errors);
  }

  static std::string example(const std::string &name) {
    return readText(sourcePath("examples/" + name + ".json"));
  }

  std::string allErrors() const {
    std::string all;
    for (const std::string &error : errors)
      all += error + '\n';
    return all;
  }

  /// Returns the module as text.
  std::string print() const {
    std::string text;
    llvm::raw_string_ostream stream(text);
    model->module.get().print(stream);
    return text;
  }

  /// Returns the labels of the operators of a segment, in order.
  std::vector<std::string> labels(llvm::StringRef segmentName) const {
    std::vector<std::string> found;
    for (auto segment : model->module.get().getOps<SegmentOp>())
      if (segment.getSymName() == segmentName)
        segment.walk(
            [&](ComputeOp op) { found.push_back(op.getLabel().str()); });
    return found;
  }
};

} // namespace mtplan::ir

#endif // MTPLAN_TESTS_IR_MODEL_LOADING_H
