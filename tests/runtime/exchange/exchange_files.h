//===- exchange_files.h - Files of other tools, for tests -------*- C++ -*-===//

#ifndef MTPLAN_TESTS_RUNTIME_EXCHANGE_EXCHANGE_FILES_H
#define MTPLAN_TESTS_RUNTIME_EXCHANGE_EXCHANGE_FILES_H

#include "runtime/exchange/export.h"
#include "runtime/exchange/import.h"
#include "runtime/weights/weight_rules.h"
#include "tests/runtime/safetensors/safetensors_files.h"

namespace mtplan::runtime {

/// Returns the path of a folder in tests/parity/files.
inline std::string parityFiles(const std::string &name) {
  return std::string(MTPLAN_SOURCE_DIR) + "/tests/parity/files/" + name;
}

enum class Keeps { nothing, origin };

/// Provides weights without their original files, or (Keeps::origin) with the
/// headers of these files. It has no values of tensors that are no parameters.
class Anonymous final : public WeightSource {
public:
  explicit Anonymous(const std::string &path, Keeps keeps = Keeps::nothing)
      : known(openWeights(path)) {
    all = known->tensors();
    if (keeps == Keeps::origin)
      from = *known->origin();
  }
  std::string what() const override { return known->what(); }
  std::string model() const override { return known->model(); }
  std::int64_t bytes() const override { return known->bytes(); }
  std::vector<std::byte> read(const std::string &name) const override {
    return known->read(name);
  }
  bool hasOther(const std::string & /*name*/) const override { return false; }
  std::vector<std::byte>
  readOther(const std::string & /*name*/) const override {
    return {};
  }

private:
  std::unique_ptr<WeightSource> known;
};

} // namespace mtplan::runtime

#endif // MTPLAN_TESTS_RUNTIME_EXCHANGE_EXCHANGE_FILES_H
