//===- replay.cpp - Runs a fuzz target over its seeds -----------*- C++ -*-===//
//
// The main of replay_<target> runs every stored input, so that builds without
// libFuzzer test them too. Each name is printed first, because an input fails
// by crashing.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data,
                                      std::size_t size);

int main(int argc, char **argv) {
  std::vector<std::filesystem::path> inputs;
  for (int i = 1; i < argc; ++i)
    for (const auto &entry : std::filesystem::directory_iterator(argv[i]))
      if (entry.is_regular_file())
        inputs.push_back(entry.path());
  std::sort(inputs.begin(), inputs.end());
  if (inputs.empty()) {
    std::fprintf(stderr, "usage: %s <folder with files>...\n", argv[0]);
    return 2;
  }
  for (const std::filesystem::path &path : inputs) {
    std::printf("%s\n", path.c_str());
    std::fflush(stdout);
    std::ifstream file(path, std::ios::binary);
    // The buffer ends at the last byte, without even a zero, like libFuzzer's.
    std::vector<char> text((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    text.shrink_to_fit();
    if (file.bad()) {
      std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
      return 1;
    }
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t *>(text.data()),
                           text.size());
  }
  std::printf("%zu inputs\n", inputs.size());
  return 0;
}
