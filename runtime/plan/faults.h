//===- faults.h - Errors found by a check -----------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_FAULTS_H
#define MTPLAN_RUNTIME_PLAN_FAULTS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtplan::runtime {

inline std::string pointerPart(std::string_view part) {
  return '/' + std::string(part);
}
inline std::string pointerPart(std::size_t part) {
  return '/' + std::to_string(part);
}

/// Returns the JSON pointer of a member of a plan: at("stages", 0, "buffers",
/// 3).
template <typename... Parts> std::string at(const Parts &...parts) {
  return (pointerPart(parts) + ...);
}

/// Formats a shape: "[2, 6]"
std::string written(const std::vector<std::int64_t> &shape);

class Faults {
public:
  void add(const std::string &pointer, const std::string &what) {
    constexpr std::size_t kMost = 100;
    if (list.size() < kMost)
      list.push_back(pointer + ": " + what);
    else if (list.size() == kMost)
      list.emplace_back(": there are more faults");
  }

  bool any() const { return !list.empty(); }
  std::vector<std::string> take() { return std::move(list); }

private:
  std::vector<std::string> list;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_FAULTS_H
