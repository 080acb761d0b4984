//===- process_memory.cpp - Memory of this process ------------------------===//

#include "runtime/metrics/process_memory.h"

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

namespace mtplan::runtime {

ProcessMemory processMemory() {
  ProcessMemory memory;
  std::ifstream status("/proc/self/status");
  // "VmRSS:\t  123456 kB"
  const auto read = [](const std::string &line, std::string_view name,
                       std::int64_t &bytes) {
    if (!line.starts_with(name))
      return;
    const std::size_t digits = line.find_first_of("0123456789");
    if (digits == std::string::npos)
      return;
    std::int64_t kibibytes = 0;
    std::from_chars(line.data() + digits, line.data() + line.size(), kibibytes);
    bytes = kibibytes * 1024;
  };
  for (std::string line; std::getline(status, line);) {
    read(line, "VmRSS:", memory.now);
    read(line, "VmHWM:", memory.peak);
  }
  return memory;
}

} // namespace mtplan::runtime
