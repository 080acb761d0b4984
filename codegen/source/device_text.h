//===- device_text.h - Source of the runtime as text ------------*- C++ -*-===//
//
// What a program that stands alone has in common with the runtime is the same
// text: of headers under runtime/ that need nothing but CUDA and each other.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_SOURCE_DEVICE_TEXT_H
#define MTPLAN_CODEGEN_SOURCE_DEVICE_TEXT_H

#include <set>
#include <span>
#include <string>

namespace mtplan::codegen {

struct SourceFile {
  const char *path; ///< "runtime/cuda/device/norm.cuh"
  const char *text;
};

/// All that there are, by path (written by embed_source.cmake).
std::span<const SourceFile> sourceFiles();

/// These files and what they include, each once and after what it needs; with
/// a header its .cpp. Guards and includes are gone; <headers> come first, once.
/// \throws std::logic_error if one includes what is not there
std::string joinedSource(const std::set<std::string> &paths);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_DEVICE_TEXT_H
