// SPDX-License-Identifier: Apache-2.0
// Which arithmetic this processor gets (docs/arithmetic.md, section 3); tests may ask for less than it has.
#pragma once
#include <atomic>

#include "adx.hpp"

namespace pinzk::cpu {

// each can do what those before it can
enum class Level { portable = 0, adx = 1, lanes = 2 };

inline Level supported_level() {
#if defined(__x86_64__)
  static const Level level = [] {
    if (!Adx::available()) return Level::portable;
    const bool lanes = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512ifma") &&
                       __builtin_cpu_supports("avx512vbmi2");
    return lanes ? Level::lanes : Level::adx;
  }();
  return level;
#else
  return Level::portable;
#endif
}

// The highest level in use: what the processor supports, or less. Change it between calls only.
inline std::atomic<Level>& level_in_use() {
  static std::atomic<Level> level{supported_level()};
  return level;
}

}  // namespace pinzk::cpu
