//===- races.cpp - Data races of kernels ----------------------------------===//

#include "tests/emulator/races.h"

#include <link.h>

#include "tests/emulator/streams.h"

namespace mtplan::emulator {

namespace {

// Gives the size in bytes of the smallest type that kernels access.
constexpr std::uintptr_t kUnit = 2;

std::string namesOf(const char *what, int one, int other, bool writes) {
  return std::string(what) + " " + std::to_string(one) + " and " +
         std::to_string(other) + " touch the same memory, which " +
         std::to_string(writes ? one : other) + " writes";
}

} // namespace

Region declaredShared() {
  static thread_local const Region region = [] {
    Region found;
    // The first entry is the program itself.
    dl_iterate_phdr(
        [](dl_phdr_info *info, std::size_t, void *to) {
          for (int i = 0; i < info->dlpi_phnum; ++i)
            if (info->dlpi_phdr[i].p_type == PT_TLS) {
              const auto from =
                  reinterpret_cast<std::uintptr_t>(info->dlpi_tls_data);
              *static_cast<Region *>(to) = {from,
                                            from + info->dlpi_phdr[i].p_memsz};
            }
          return 1;
        },
        &found);
    return found;
  }();
  return region;
}

void Accesses::beginBlock(const void *memory, std::size_t bytes) {
  ++block;
  ++meeting;
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  shared = {first, first + bytes};
}

bool Accesses::isReached(std::uintptr_t address) {
  if (arguments.from == arguments.to || arguments.has(address) ||
      known.has(address))
    return true;
  known = regionOf(address);
  return known.has(address);
}

bool Accesses::isShared(std::uintptr_t address) const {
  return shared.has(address) || declaredShared().has(address);
}

int Accesses::Touched::add(std::uint64_t now, int who, bool writes) {
  if (when != now)
    *this = {now, -1, {-1, -1}};
  int clash = -1;
  if (writer >= 0 && writer != who)
    clash = writer;
  for (const int reader : readers)
    if (writes && reader >= 0 && reader != who)
      clash = reader;
  if (writes)
    writer = who;
  else if (readers[0] < 0 || readers[0] == who)
    readers[0] = who;
  else
    readers[1] = who;
  return clash;
}

std::string Accesses::note(const void *data, std::size_t bytes, bool writes,
                           int thread) {
  const auto first = reinterpret_cast<std::uintptr_t>(data);
  const bool isOfBlock = isShared(first);
  if (!isOfBlock && !isReached(first))
    return "thread " + std::to_string(thread) +
           " touches memory of the host that is not pinned";
  for (std::uintptr_t unit = first / kUnit; unit * kUnit < first + bytes;
       ++unit) {
    Place &place = places[unit];
    if (const int other = place.byThreads.add(meeting, thread, writes);
        other >= 0)
      return namesOf("threads", thread, other, writes) +
             ", without a barrier between them" +
             (isOfBlock ? " (shared memory)" : "");
    if (!isOfBlock) {
      const int own = static_cast<int>(block);
      if (const int other = place.byBlocks.add(1, own, writes); other >= 0)
        return namesOf("blocks", own - 1, other - 1, writes);
      continue;
    }
    if (writes)
      place.writtenIn = block;
    else if (place.writtenIn != block)
      return "thread " + std::to_string(thread) +
             " reads shared memory that nobody has written";
  }
  return "";
}

} // namespace mtplan::emulator
